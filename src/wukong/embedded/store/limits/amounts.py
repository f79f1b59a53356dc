"""Quantities that are added up and written in the API server's words: an amount remembers in which form it came.

    1Gi + 512Mi ─► 1536Mi          0 + 1Gi ─► 1Gi          1Gi + 1G keeps the form of the first

Used by limit_ranges.py, quotas.py and pod_resources.py, whose messages name sums. Exact: billionths, never floats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from wukong.api.quantity import NANO, parse_quantity
from wukong.embedded.store.normalize import QuantityForm, form_of, format_nanos
from wukong.ports import Document


class Amount(NamedTuple):
    nanos: int
    form: QuantityForm = "decimal"

    @classmethod
    def parse(cls, quantity: str | int | float) -> Amount:
        return cls(parse_quantity(quantity), form_of(quantity))

    def plus(self, other: Amount) -> Amount:
        """Nothing takes the form of what is added to it; all else keeps its own."""
        return Amount(self.nanos + other.nanos, self.form if self.nanos else other.form)

    def __str__(self) -> str:
        return format_nanos(self.nanos, self.form)


Amounts = dict[str, Amount]  # resource → how much of it


def count_of(number: int) -> Amount:
    return Amount(number * NANO)


def parse_amounts(quantities: Document | None) -> Amounts:
    return {name: Amount.parse(quantity) for name, quantity in (quantities or {}).items()}


def format_amounts(amounts: Mapping[str, Amount]) -> Document:
    """As they are stored."""
    return {name: str(amount) for name, amount in amounts.items()}


def describe_amounts(amounts: Mapping[str, Amount]) -> str:
    """`cpu=1,memory=1Gi`, as messages have it."""
    return ",".join(f"{name}={amounts[name]}" for name in sorted(amounts))


def add_amounts(total: Amounts, added: Mapping[str, Amount]) -> None:
    """In place."""
    for name, amount in added.items():
        total[name] = total[name].plus(amount) if name in total else amount


def raise_amounts(total: Amounts, least: Mapping[str, Amount]) -> None:
    """In place: each amount becomes at least that of `least`."""
    for name, amount in least.items():
        if name not in total or amount.nanos > total[name].nanos:
            total[name] = amount


def select_amounts(amounts: Mapping[str, Amount], names: Iterable[str]) -> Amounts:
    """Those of these names."""
    wanted = set(names)
    return {name: amount for name, amount in amounts.items() if name in wanted}


def has_same_amounts(left: Mapping[str, Amount], right: Mapping[str, Amount]) -> bool:
    """Whether both name the same resources and as much of each, in whatever form."""
    return {name: amount.nanos for name, amount in left.items()} == {
        name: amount.nanos for name, amount in right.items()
    }
