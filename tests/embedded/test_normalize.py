"""Whether a document is in the form in which the API server stores it can be told without normalizing it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wukong.embedded.store.normalize import (
    EMPTY_LIST_STAYS,
    MAPS,
    ZERO_IS_ABSENT,
    NormalForms,
    is_normal,
    normalize,
)

NAMES = st.sampled_from(sorted({*MAPS, *ZERO_IS_ABSENT, *EMPTY_LIST_STAYS, "name", "spec", "restartCount", "a:b", '"'}))
LEAVES = st.sampled_from([None, "", "x", '":0', '":{}', 0, -0.0, 1, 0.5, False, True])
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@given(document=st.dictionaries(NAMES, VALUES, max_size=4))
def test_what_is_taken_for_normal_stays_as_it_is_when_normalized(document: dict[str, Any]) -> None:
    if is_normal(document):
        assert normalize(document) == document


@given(
    documents=st.lists(st.dictionaries(NAMES, VALUES, max_size=4), max_size=4),
    others=st.lists(st.tuples(NAMES, NAMES), max_size=4),
)
def test_documents_that_share_values_are_as_normal_as_each_alone(
    documents: list[dict[str, Any]], others: list[tuple[str, str]]
) -> None:
    normal_forms = NormalForms()
    values = [value for document in documents for value in document.values()]
    shared = [{left: value, right: value} for (left, right), value in zip(others, values, strict=False)]
    for document in (*documents, *shared, *documents):
        if normal_forms.has(document):
            assert normalize(document) == document
        else:
            assert not is_normal(document)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"status": {"containerStatuses": [{"restartCount": 0, "ready": False, "state": {"running": {}}}]}}, True),
        ({"metadata": {"labels": {"app": "web"}}}, True),
        ({"metadata": {"labels": {}}}, False),
        ({"spec": {"paused": False}}, False),
        ({"spec": {"hostPort": 0}}, False),
        ({"spec": {"requests": {"cpu": "1000m"}}}, False),
        ({"spec": {"tolerations": []}}, False),
        ({"spec": {"nodeName": ""}}, False),
        ({"spec": {"nodeName": None}}, False),
    ],
)
def test_most_of_what_a_running_pod_has_is_known_to_be_normal(document: dict[str, Any], expected: bool) -> None:
    assert is_normal(document) == expected
