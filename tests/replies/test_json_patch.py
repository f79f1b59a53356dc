"""A JSON patch makes one document of another, and says nothing about what is alike."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wukong.embedded.store.patch.json_patch import apply_json_patch
from wukong.replies.admission.json_patch import build_json_patch

LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b/~"])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab/~"), inner, max_size=3)
)
DOCUMENTS = st.dictionaries(st.sampled_from(["a", "b", "c/d", "e~f"]), VALUES, max_size=4)


@pytest.mark.parametrize(
    ("before", "after", "operations"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({}, {"a": {"b": 1}}, [{"op": "add", "path": "/a", "value": {"b": 1}}]),
        ({"a": {}}, {"a": {"x/y~z": 1}}, [{"op": "add", "path": "/a/x~1y~0z", "value": 1}]),
        ({"a": 1, "b": 2}, {"b": 3}, [{"op": "remove", "path": "/a"}, {"op": "replace", "path": "/b", "value": 3}]),
        ({"a": [1]}, {"a": [1, 2, 3]}, [{"op": "add", "path": "/a/-", "value": n} for n in (2, 3)]),
        ({"a": [{"b": [1]}]}, {"a": [{"b": [1, 2]}]}, [{"op": "add", "path": "/a/0/b/-", "value": 2}]),
        ({"a": [1, 2]}, {"a": [1]}, [{"op": "replace", "path": "/a", "value": [1]}]),
        ({"a": None}, {"a": {"b": 1}}, [{"op": "replace", "path": "/a", "value": {"b": 1}}]),
        ({"a": True}, {"a": 1}, [{"op": "replace", "path": "/a", "value": 1}]),
    ],
)
def test_only_what_differs_is_named(before: Any, after: Any, operations: Any) -> None:
    assert build_json_patch(before, after) == operations


@given(DOCUMENTS, DOCUMENTS)
def test_the_patch_makes_the_one_of_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    kept = copy.deepcopy(before)
    patched = apply_json_patch(copy.deepcopy(before), build_json_patch(before, after))
    assert repr(_sort(patched)) == repr(_sort(after))
    assert before == kept


def _sort(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sort(value[key]) for key in sorted(value)}
    return [_sort(entry) for entry in value] if isinstance(value, list) else value
