"""A patch merged in one pass makes what the general way makes: merged, then brought into normal form."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from wukong.api.kinds import PODS
from wukong.embedded.store.kinds import Kinds
from wukong.embedded.store.normalize import MAPS, normalize
from wukong.embedded.store.patch.patch import apply_patch, apply_plain_patch
from wukong.errors import Invalid
from wukong.ports import Document, PatchBody

POD = Kinds().of(PODS)
SCALARS = st.sampled_from(["", "a", "b", 0, 1, 2.5, True, False, None])
KEYED = {"conditions": "type", "containers": "name", "env": "name"}
TEXTS = st.sampled_from(["", "a", "b", "1", None])
AMOUNTS = st.sampled_from(["1", "1000m", 2, "nonsense"])
PLAIN_NAMES = ("phase", "hostNetwork", "observedGeneration", "nodeName", "x")
NAMES_OF_PARTS = ("spec", "state", *KEYED, "labels", "limits", "args", "any")


@st.composite
def maps(draw: st.DrawFn, depth: int = 3) -> Document:
    """A document, or a patch of one: fields that are treated by their names, with values of any type."""
    document: Document = {name: draw(SCALARS) for name in draw(st.sets(st.sampled_from(PLAIN_NAMES), max_size=3))}
    if draw(st.integers(0, 30)) == 0:
        document["$patch"] = draw(st.sampled_from(["replace", "delete", "merge"]))
    if depth == 0:
        return document
    for name in draw(st.sets(st.sampled_from(NAMES_OF_PARTS), max_size=3)):
        document[name] = draw(values(name, depth - 1))
    return document


def values(name: str, depth: int) -> st.SearchStrategy[Any]:
    if name in KEYED:
        item = st.tuples(st.sampled_from(["p", "q", "r", None]), maps(depth)).map(
            lambda pair: pair[1] | ({KEYED[name]: pair[0]} if pair[0] else {})
        )
        return st.lists(item, max_size=3) | st.none()
    if name in MAPS:
        return st.dictionaries(st.sampled_from("abc"), TEXTS if name == "labels" else AMOUNTS, max_size=3) | st.none()
    if name == "args":
        return st.lists(SCALARS | maps(0), max_size=3)
    return maps(depth) if name != "any" else SCALARS | maps(depth) | st.lists(maps(depth), max_size=2)


def a_stored_form(document: Document) -> Document | None:
    """A document as it is stored: in normal form, without nulls in lists and without directives."""
    try:
        normalized = normalize(document)
    except Invalid:
        return None
    return normalized if "None" not in str(normalized) and "$patch" not in str(normalized) else None


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(maps(), maps(), st.sampled_from(["merge", "strategic"]))
def test_one_pass_makes_what_merging_and_normalizing_make(first: Document, body: Document, type_: Any) -> None:
    document = a_stored_form(first)
    if document is not None:
        check(document, body, type_)


CONDITIONS = st.lists(
    st.builds(lambda kind, status: {"type": kind, "status": status}, st.sampled_from("ABCDE"), TEXTS),
    max_size=4,
    unique_by=lambda condition: condition["type"],
)


@settings(max_examples=200, deadline=None)
@given(CONDITIONS, CONDITIONS)
def test_items_of_a_list_are_merged_by_key_in_the_same_order(first: list[Document], second: list[Document]) -> None:
    check(normalize({"status": {"conditions": first}}), {"status": {"conditions": second}}, "strategic")


def check(document: Document, body: Document, type_: Any) -> None:
    patch, stored = PatchBody(type_, body), copy.deepcopy(document)
    sent = copy.deepcopy(body)
    merged = apply_plain_patch(POD, document, patch)
    event("plain" if merged is not None else "not plain")
    assert (document, body) == (stored, sent)
    if merged is None:
        return
    expected = normalize(apply_patch(POD, document, patch), document)
    assert merged == expected
    assert repr(_sorted(merged)) == repr(_sorted(expected))  # 1, 1.0 and True are equal in Python
    assert (merged is document) == (repr(_sorted(merged)) == repr(_sorted(document)))
    assert not set(map(id, _containers(merged))) & set(map(id, _containers(body)))  # nothing of the patch is kept


@pytest.mark.parametrize(
    "body",
    [
        {"spec": {"$patch": "delete"}},
        {"metadata": {"finalizers": ["a/b"]}},
        {"spec": {"args": [["a"]]}},
        {"spec": {"args": [None]}},
        {"status": {"conditions": [{"status": "True"}]}},
        {"status": {"conditions": [{"type": "A"}, {"type": "A"}]}},
        {"spec": {"args": ("a",)}},
        {"spec": {"limits": {"cpu": "much"}}},
        ["no map"],
    ],
)
def test_what_is_not_plain_is_left_to_the_general_way(body: Any) -> None:
    document = {"metadata": {"finalizers": ["c/d"]}, "status": {"conditions": [{"type": "B", "status": "True"}]}}
    assert apply_plain_patch(POD, document, PatchBody("strategic", body)) is None


def _containers(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        yield value
        for entry in value.values() if isinstance(value, dict) else value:
            yield from _containers(entry)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(entry) for name, entry in sorted(value.items())}
    return [_sorted(entry) for entry in value] if isinstance(value, list) else value
