"""What a node costs per hour: by its label, by the user's price file, or by the built-in table. Used by fleet.py.

A price file, every part of it optional:

    asOf: 2026-11-01
    prices:
    - {instanceType: m5.large, perHour: 0.096}                                  # on-demand, anywhere
    - {instanceType: m5.large, capacity: spot, zone: us-east-1a, perHour: 0.031}
    nodes: {bare-metal-1: 0.42}

Reading the file itself is done above; here are only its bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from wukong.api.decode import readable
from wukong.api.documents import load_yaml
from wukong.errors import InputError
from wukong.placement.price_table import AS_OF, SPOT_SHARE, find_list_price

PRICE_LABEL = "placement.novasphere.dev/price-per-hour"
TYPE_LABELS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
ZONE_LABEL = "topology.kubernetes.io/zone"
_Entry = tuple[str, str, str]  # instance type, capacity, zone ("" for any)


class _Price(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    instance_type: str
    per_hour: float
    capacity: str = "on-demand"
    zone: str = ""


class _File(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    as_of: str = ""
    currency: str = "USD"
    prices: list[_Price] = []
    nodes: dict[str, float] = {}


class Prices:
    def __init__(self, entries: Mapping[_Entry, float] = {}, nodes: Mapping[str, float] = {}) -> None:
        self._entries, self._nodes = dict(entries), dict(nodes)

    def price_of(self, name: str, labels: Mapping[str, str], is_spot: bool) -> float:
        """What a node costs per hour; NaN where no price is known."""
        labelled = _parse_price(labels.get(PRICE_LABEL, ""))
        if labelled is not None:
            return labelled
        if name in self._nodes:
            return self._nodes[name]
        kind = instance_type_of(labels)
        return self._price_of_type(kind, labels.get(ZONE_LABEL, ""), is_spot) if kind else math.nan

    def is_list_price(self, name: str, labels: Mapping[str, str], is_spot: bool) -> bool:
        """Whether the price comes from the built-in table, nobody having given one."""
        kind, zone = instance_type_of(labels), labels.get(ZONE_LABEL, "")
        if (
            _parse_price(labels.get(PRICE_LABEL, "")) is not None
            or name in self._nodes
            or find_list_price(kind) is None
        ):
            return False
        capacities = ("spot", "on-demand") if is_spot else ("on-demand",)
        return not any((kind, capacity, place) in self._entries for capacity in capacities for place in (zone, ""))

    def _price_of_type(self, kind: str, zone: str, is_spot: bool) -> float:
        capacity = "spot" if is_spot else "on-demand"
        for place in (zone, ""):
            if (kind, capacity, place) in self._entries:
                return self._entries[kind, capacity, place]
        on_demand = next(
            (
                self._entries[kind, "on-demand", place]
                for place in (zone, "")
                if (kind, "on-demand", place) in self._entries
            ),
            find_list_price(kind),
        )
        if on_demand is None:
            return math.nan
        return on_demand * SPOT_SHARE if is_spot else on_demand


def instance_type_of(labels: Mapping[str, str]) -> str:
    return next((labels[label] for label in TYPE_LABELS if labels.get(label)), "")


def read_prices(data: bytes) -> Prices:
    """The prices of a file's bytes. Raises InputError with every problem; the caller adds the file's name."""
    document = load_yaml(data)
    try:
        file = msgspec.convert({} if document is None else document, _File)
    except msgspec.ValidationError as error:
        raise InputError(readable(error)) from None
    problems = [
        f"$.prices[{i}].{problem}" for i, entry in enumerate(file.prices) for problem in _find_price_problems(entry)
    ]
    problems += _find_repetitions(file.prices)
    problems += [
        f"$.nodes.{name}: {_NOT_A_PRICE}, got {price}." for name, price in file.nodes.items() if not _is_price(price)
    ]
    if problems:
        raise InputError(*problems)
    return Prices(
        {(entry.instance_type, entry.capacity, entry.zone): entry.per_hour for entry in file.prices}, file.nodes
    )


_NOT_A_PRICE = "expected a price per hour that is not negative"


def _find_price_problems(entry: _Price) -> list[str]:
    problems = [] if _is_price(entry.per_hour) else [f"perHour: {_NOT_A_PRICE}, got {entry.per_hour}."]
    if entry.capacity not in ("spot", "on-demand"):
        problems.append(f"capacity: expected spot or on-demand, got {entry.capacity!r}.")
    return problems


def _find_repetitions(entries: list[_Price]) -> list[str]:
    seen: set[_Entry] = set()
    problems = []
    for number, entry in enumerate(entries):
        key = entry.instance_type, entry.capacity, entry.zone
        if key in seen:
            text = ", ".join(part for part in key if part)
            problems.append(f"$.prices[{number}]: expected one price for each, got a second for {text}.")
        seen.add(key)
    return problems


def _is_price(number: float) -> bool:
    return math.isfinite(number) and number >= 0


def _parse_price(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if _is_price(number) else None


__all__ = [
    "AS_OF",
    "PRICE_LABEL",
    "TYPE_LABELS",
    "ZONE_LABEL",
    "Prices",
    "instance_type_of",
    "read_prices",
]
