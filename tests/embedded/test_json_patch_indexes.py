"""JSON patches of lists: which indexes there are, also from the end, as the API server's library (v4) counts them."""

from __future__ import annotations

from typing import Any

import pytest

from wukong.embedded.store.patch.json_patch import apply_json_patch
from wukong.errors import Invalid


def patched(op: str, path: str, **fields: Any) -> Any:
    """The list [a, b] after one operation on it; a word for what is refused."""
    document = {"list": ["a", "b"]}
    try:
        return apply_json_patch(document, [{"op": op, "path": f"/list/{path}", **fields}])["list"]
    except Invalid:
        return "refused"


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ("0", ["x", "a", "b"]),
        ("2", ["a", "b", "x"]),
        ("-", ["a", "b", "x"]),
        ("3", "refused"),
        ("-1", ["a", "b", "x"]),  # counted in the list as it will be
        ("-3", ["x", "a", "b"]),
        ("-4", "refused"),
        ("one", "refused"),
    ],
)
def test_what_is_added_goes_before_its_index(index: str, expected: Any) -> None:
    assert patched("add", index, value="x") == expected


@pytest.mark.parametrize(("index", "left"), [("0", ["b"]), ("1", ["a"]), ("-1", ["a"]), ("-2", ["b"])])
def test_what_is_removed_tested_and_replaced_is_counted_in_the_list_as_it_is(index: str, left: list[str]) -> None:
    (value,) = {"a", "b"} - set(left)
    assert patched("remove", index) == left
    assert patched("test", index, value=value) == ["a", "b"]
    assert patched("test", index, value="other") == "refused"
    assert patched("replace", index, value="x") == ["x" if entry == value else entry for entry in ("a", "b")]


@pytest.mark.parametrize("index", ["2", "-3", "-9", "-"])
def test_an_index_beyond_either_end_is_refused(index: str) -> None:
    for op in ("remove", "test", "replace"):
        assert patched(op, index, value=None) == "refused"


@pytest.mark.parametrize(
    "operations", [None, {}, "x", [1], [{"op": "remove"}, 1], [{"op": "remove"}], [{"path": "/a"}]]
)
def test_what_is_no_list_of_operations_is_refused(operations: Any) -> None:
    with pytest.raises(Invalid):
        apply_json_patch({"a": 1}, operations)


def test_a_copy_is_not_the_same_object() -> None:
    result = apply_json_patch({"a": {"b": [1]}}, [{"op": "copy", "from": "/a", "path": "/c"}])
    result["c"]["b"].append(2)
    assert result["a"] == {"b": [1]}


def test_a_step_that_leads_nowhere_is_refused_and_a_missing_field_is_null() -> None:
    for path in ("/a/b/c", "/x/y", "/list/0/z", "/list/5/z", "/list/one/z"):
        with pytest.raises(Invalid, match=f"doc is missing path: {path}"):
            apply_json_patch({"a": {}, "list": [1]}, [{"op": "add", "path": path, "value": 1}])
    assert apply_json_patch({"a": {}}, [{"op": "test", "path": "/a/b", "value": None}]) == {"a": {}}
    assert apply_json_patch({"a": {}}, [{"op": "replace", "path": "/a/b", "value": 1}]) == {"a": {"b": 1}}
    for op in ("remove", "move"):
        with pytest.raises(Invalid):
            apply_json_patch({"a": {}}, [{"op": op, "path": "/a/b", "from": "/a/b"}])
    with pytest.raises(Invalid, match="leaves no object"):
        apply_json_patch({"a": 1}, [{"op": "replace", "path": "", "value": 5}])
