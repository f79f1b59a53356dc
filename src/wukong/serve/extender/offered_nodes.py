"""The nodes a request offers, as rows of a fleet: name lists and node lists, each node once. serve.extender calls it.

Names stay what they came as, quoted JSON strings in bytes: split off the text, looked up, joined into the answer.
Nothing here decides, and nothing of a node is read but its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from wukong.errors import InputError

Rows = npt.NDArray[np.intp]
UNKNOWN = -1  # the row that stands for a node the fleet does not know
SCORES = range(11)  # what an extender may answer


class NodeRows(Protocol):
    @property
    def names(self) -> list[str]: ...

    @property
    def row_of(self) -> dict[str, int]: ...


class Offer(NamedTuple):
    """What is offered, in the order it came; a node named twice counts once."""

    rows: Rows
    names: list[bytes]  # quoted
    items: list[msgspec.Raw] | None = None  # the node objects, where they were sent


class _Meta(msgspec.Struct):
    name: str


class _Head(msgspec.Struct):
    metadata: _Meta


_strings = msgspec.json.Decoder(list[str])
_head = msgspec.json.Decoder(_Head)
# How Go writes a node: the name first, or kind and apiVersion before it. Any other order is read properly.
_usual_head = re.compile(
    rb'\{(?:"kind":"Node","apiVersion":"v1",)?"metadata":\{"name":("[0-9A-Za-z._-]+")(?=[,}])'
).match


class FleetNames:
    """The names of a fleet, encoded once: a fleet lasts longer than a request."""

    def __init__(self, fleet: NodeRows) -> None:
        self.fleet = fleet
        self.names = list(fleet.names)
        self._quoted = [msgspec.json.encode(name) for name in self.names]
        self._row = {quoted: row for row, quoted in enumerate(self._quoted)}
        self._scored: npt.NDArray[np.object_] | None = None

    def offer_names(self, names_json: bytes) -> Offer:
        """Of a JSON list of names."""
        names = names_json[1:-1].split(b",")
        try:
            # Every piece is a known name in quotes, hence free of commas and escapes: so the list is just that.
            return self._drop_duplicates(np.fromiter(map(self._row.__getitem__, names), np.intp, len(names)), names)
        except KeyError:
            return self._offer_decoded(names_json)

    def offer_items(self, items: list[msgspec.Raw]) -> Offer:
        """Of nodes sent in full."""
        names = [
            match[1] if (match := _usual_head(item)) else _name_of(item, index) for index, item in enumerate(items)
        ]
        return self._drop_duplicates(self._rows_of(names), names, items)

    def encode_scores(self) -> npt.NDArray[np.object_]:
        """`[score, row]` → `{"Host":…,"Score":…}`; the last row is for a node that has none."""
        if self._scored is None:
            self._scored = np.empty((len(SCORES), len(self._quoted) + 1), dtype=np.object_)
            for score in SCORES:
                self._scored[score, :-1] = [encode_host_priority(quoted, score) for quoted in self._quoted]
        return self._scored

    def _offer_decoded(self, names_json: bytes) -> Offer:
        """For lists with unknown nodes, white space or escapes: decoded and encoded again."""
        try:
            names = [msgspec.json.encode(name) for name in _strings.decode(names_json)]
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(f"NodeNames: expected a list of names: {error}.") from None
        return self._drop_duplicates(self._rows_of(names), names)

    def _rows_of(self, names: Iterable[bytes]) -> Rows:
        row = self._row.get
        return np.array([row(name, UNKNOWN) for name in names], dtype=np.intp)

    def _drop_duplicates(self, rows: Rows, names: list[bytes], items: list[msgspec.Raw] | None = None) -> Offer:
        if not self._has_duplicates(rows, names):
            return Offer(rows, names, items)
        first = {name: index for index, name in reversed(list(enumerate(names)))}
        places = sorted(first.values())
        return Offer(rows[places], [names[index] for index in places], items and [items[index] for index in places])

    def _has_duplicates(self, rows: Rows, names: list[bytes]) -> bool:
        seen = np.zeros(len(self._quoted) + 1, dtype=np.bool_)
        seen[rows] = True
        if seen[UNKNOWN]:
            return len(set(names)) < len(names)
        return bool(np.count_nonzero(seen) < len(rows))


class FleetNamesCache:
    """The names of the fleet that was asked about last."""

    def __init__(self) -> None:
        self._fleet_names: FleetNames | None = None

    def of(self, fleet: NodeRows) -> FleetNames:
        fleet_names = self._fleet_names
        if fleet_names is None or (fleet_names.fleet is not fleet and fleet_names.names != fleet.names):
            fleet_names = self._fleet_names = FleetNames(fleet)
        fleet_names.fleet = fleet  # figures change often, names seldom
        return fleet_names


def encode_host_priority(quoted: bytes, score: int) -> bytes:
    return b'{"Host":%b,"Score":%d}' % (quoted, score)


def _name_of(item: msgspec.Raw, index: int) -> bytes:
    try:
        return msgspec.json.encode(_head.decode(item).metadata.name)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"Nodes.items[{index}]: expected a node with metadata.name: {error}.") from None
