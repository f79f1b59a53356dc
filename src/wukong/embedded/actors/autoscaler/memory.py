"""What the autoscaler remembers from one round of its loop to the next. It may be lost: then its times begin anew."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from math import inf
from typing import NamedTuple

StateVersion = tuple[int, ...]  # how often something of the kinds that count has changed


class Kept(NamedTuple):
    """A node that was needed when it was last looked at. It is not looked at again until then."""

    until: float
    version: StateVersion


@dataclass
class Memory:
    looked_at: float = -inf
    due: float = inf  # the next round, as far as it is known
    last_scale_up: float = -inf
    last_failure: float = -inf  # of a removal that was given up
    unneeded_since: dict[str, float] = field(default_factory=dict)
    kept: dict[str, Kept] = field(default_factory=dict)
    removing: set[str] = field(default_factory=set)  # nodes that this process has tainted
    refusals: dict[str, str] = field(default_factory=dict)  # uid of a pod that nobody helps → why
    numbers: dict[str, int] = field(default_factory=dict)  # group → the highest number that a node of it had

    def copy(self) -> Memory:
        return replace(
            self,
            unneeded_since=dict(self.unneeded_since),
            kept=dict(self.kept),
            removing=set(self.removing),
            refusals=dict(self.refusals),
            numbers=dict(self.numbers),
        )

    def keep_nodes(self, names: Collection[str]) -> None:
        """Forget all nodes but these."""
        self.unneeded_since = {name: since for name, since in self.unneeded_since.items() if name in names}
        self.kept = {name: kept for name, kept in self.kept.items() if name in names}
        self.removing &= set(names)

    def keep(self, name: str, until: float, version: StateVersion) -> None:
        self.kept[name] = Kept(until, version)

    def set_unneeded(self, names: Iterable[str], now: float) -> None:
        """These nodes and no others are unneeded now; some may have been so before."""
        self.unneeded_since = {name: self.unneeded_since.get(name, now) for name in names}

    def name_nodes(self, group: str, count: int, present: Iterable[str]) -> list[str]:
        """Names for so many new nodes, numbered on from the highest that there is or that was remembered."""
        return name_nodes(self.numbers, group, count, present)


def name_nodes(highest_numbers: dict[str, int], group: str, count: int, present: Iterable[str]) -> list[str]:
    """Names for so many new nodes of a group. `highest_numbers` is what was remembered of each, and is kept up."""
    prefix = f"{group}-"
    suffixes = (name.removeprefix(prefix) for name in present if name.startswith(prefix))
    numbers = [int(suffix) for suffix in suffixes if suffix.isascii() and suffix.isdigit() and len(suffix) < 10]
    highest = max([highest_numbers.get(group, 0), *numbers])
    highest_numbers[group] = highest + count
    return [f"{prefix}{highest + number}" for number in range(1, count + 1)]
