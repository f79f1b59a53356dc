"""An object without a name cannot be told from others: it is unreadable, as a struct and as a document."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wukong.api.core import Pod
from wukong.api.unreadable import Unreadable, read_document, read_json


@pytest.mark.parametrize("metadata", [{"name": ""}, {"name": None}, {"name": 5}, {"name": ["a"]}, {}, None, 5])
def test_what_has_no_name_is_unreadable(metadata: Any) -> None:
    document = {"metadata": metadata}
    for read in (dict, Pod):
        assert isinstance(read_json(json.dumps(document).encode(), read), Unreadable)
        assert isinstance(read_document(document, read), Unreadable)


def test_what_has_a_name_is_read() -> None:
    document = {"metadata": {"name": "a"}}
    assert read_document(document, dict) == read_json(json.dumps(document).encode(), dict) == document
    pod = read_document(document, Pod)
    assert isinstance(pod, Pod)
    assert pod.metadata.name == "a"
