"""The nodes that a request offers: by name or in full, each once, known or not."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np
import pytest

from wukong.errors import InputError
from wukong.serve.extender.offered_nodes import UNKNOWN, FleetNames, FleetNamesCache
from wukong.serve.extender.response import encode_priorities


class Names(NamedTuple):
    names: list[str]

    @property
    def row_of(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.names)}


FLEET = FleetNames(Names(["a", "b", "c"]))


@pytest.mark.parametrize(
    ("offered", "names", "rows"),
    [
        (b'["c","a"]', ["c", "a"], [2, 0]),
        (b'["c","a","c"]', ["c", "a"], [2, 0]),
        (b'["x","a","x","y","a"]', ["x", "a", "y"], [UNKNOWN, 0, UNKNOWN]),
        (b'[ "b" , "\\u0061" ]', ["b", "a"], [1, 0]),
        (b"[]", [], []),
    ],
)
def test_names_are_rows_in_their_order_each_once(offered: bytes, names: list[str], rows: list[int]) -> None:
    offer = FLEET.offer_names(offered)
    assert [msgspec.json.decode(name) for name in offer.names] == names
    assert offer.rows.tolist() == rows
    assert offer.items is None


@pytest.mark.parametrize("offered", [b'["a",1]', b'{"a":1}', b'["a"', b'["\xff"]'])
def test_what_is_no_list_of_names_is_said(offered: bytes) -> None:
    with pytest.raises(InputError, match="NodeNames: expected a list of names"):
        FLEET.offer_names(offered)


def test_nodes_in_full_are_known_by_their_names_however_they_are_written() -> None:
    texts = [
        b'{"metadata":{"name":"b","labels":{}}}',
        b'{"kind":"Node","apiVersion":"v1","metadata":{"name":"c"}}',
        b'{"spec":{},"metadata":{"labels":{"name":"no"},"name":"a"}}',
        b'{"metadata":{"name":"b"}}',
        b'{"metadata":{"name":"x\\u0079"}}',
    ]
    items = [msgspec.Raw(text) for text in texts]
    offer = FLEET.offer_items(items)
    assert [msgspec.json.decode(name) for name in offer.names] == ["b", "c", "a", "xy"]
    assert offer.rows.tolist() == [1, 2, 0, UNKNOWN]
    assert offer.items == [items[0], items[1], items[2], items[4]]
    with pytest.raises(InputError, match=r"Nodes\.items\[1\]: expected a node with metadata\.name"):
        FLEET.offer_items([items[0], msgspec.Raw(b'{"metadata":{}}')])


def test_every_score_from_0_to_10_has_its_text_for_nodes_known_or_not() -> None:
    offer = FLEET.offer_names(b'["a","x","c"]')
    for scores in ([0, 5, 10], [10, 0, 1]):
        hosts = msgspec.json.decode(encode_priorities(offer, FLEET, np.array(scores)))
        assert hosts == [{"Host": name, "Score": score} for name, score in zip("axc", scores, strict=True)]


def test_names_are_encoded_again_only_when_they_change() -> None:
    cache, fleet = FleetNamesCache(), Names(["a", "b"])
    first = cache.of(fleet)
    again = Names(["a", "b"])
    assert cache.of(fleet) is first
    assert cache.of(again) is first
    assert first.fleet is again
    assert cache.of(Names(["b", "a"])) is not first
