"""The fleet as the mirror shows it now: built from the state, the very same object as long as nothing in it changed.

Used by verbs.py. What follows from a node alone is computed when the node changes; usage is in usage.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np

from wukong.api.core import Node
from wukong.engine.arrays import Floats, Ints
from wukong.placement.fleet import USED, Fleet, Latencies, NodeFacts, Nodes, read_facts
from wukong.placement.prices import Prices
from wukong.replies.extender.usage import UsageCache, UsageSettings, amount_of
from wukong.state import State


class FleetCache:
    def __init__(
        self, state: State, settings: UsageSettings, prices: Prices, latencies: Latencies | None = None
    ) -> None:
        self.state, self.prices, self.latencies = state, prices, latencies or {}
        self.usages = UsageCache(state, settings)
        self._facts: dict[str, NodeFacts] = {}
        self._node_version = -1
        self._nodes = Nodes(())
        self._usage: Floats | None = None
        self._fleet = Fleet(self._nodes)
        self._same_order: tuple[object, ...] = ()  # nodes, and rows of the snapshot, known to be in the same order

    def fleet_at(self, now: float) -> Fleet:
        """The fleet as it is now."""
        if self.state.versions["Node"] != self._node_version:
            self._read_nodes()
        usage = self.usages.usage_at(self._nodes, now)
        if self._fleet.nodes is not self._nodes or self._usage is not usage:
            self._usage = usage
            self._fleet = Fleet(self._nodes, usage, partial(self._free, self._nodes), self.latencies)
        return self._fleet

    def count_stale(self, now: float) -> int:
        """How many nodes have usage too old to count."""
        self.fleet_at(now)
        return self.usages.count_stale(now)

    def oldest_usage_seconds(self, now: float) -> float:
        self.fleet_at(now)
        return self.usages.oldest_seconds(now)

    def fleet_of(self, nodes: Iterable[Node], now: float) -> Fleet:
        """A fleet of nodes given in full, for those the mirror does not show yet."""
        facts_of = {node.metadata.name: read_facts(node, self.prices) for node in nodes}
        known = self.fleet_at(now)
        facts = [
            known.nodes.facts[known.row_of[name]] if name in known.row_of else own for name, own in facts_of.items()
        ]
        usage = np.full((len(USED), len(facts)), np.nan)
        rows = [(column, known.row_of[name]) for column, name in enumerate(facts_of) if name in known.row_of]
        for column, row in rows:
            usage[:, column] = known.usage[:, row]

        def free(name: str) -> Ints | None:
            amounts = [amount_of(entry.node.status.allocatable.get(name, 0), name) for entry in facts]
            known_free = known.free(name)
            for column, row in rows:
                amounts[column] = 0 if known_free is None else int(known_free[row])
            return np.array(amounts, dtype=np.int64)

        return Fleet(Nodes(facts), usage, free, self.latencies)

    def _read_nodes(self) -> None:
        self._node_version = self.state.versions["Node"]
        facts: dict[str, NodeFacts] = {}
        for key, node in self.state.objects.get("Node", {}).items():
            assert isinstance(node, Node)
            known = self._facts.get(key.name)
            facts[key.name] = known if known is not None and known.node is node else read_facts(node, self.prices)
        is_same = len(facts) == len(self._facts) and all(
            name in self._facts and _are_alike(entry, self._facts[name]) for name, entry in facts.items()
        )
        self._facts = facts
        if not is_same:
            self._nodes = Nodes([facts[name] for name in sorted(facts)])

    def _free(self, nodes: Nodes, resource: str) -> Ints | None:
        """Free by requests, in the order of these nodes: the live snapshot keeps it, usually in the very same order."""
        snapshot = self.state.snapshot
        line = snapshot.lines.get(resource)
        if line is None or line >= len(snapshot.room):  # the table of lines is shared with forks, which may have more
            return None
        free: Ints = snapshot.room[line] - snapshot.load[line]
        rows = snapshot.row_of  # another dict whenever nodes came or went
        if not (self._same_order and self._same_order[0] is nodes and self._same_order[1] is rows):
            if list(rows) != nodes.names:  # a node came or went since this fleet was made
                numbers = [rows.get(name, -1) for name in nodes.names]
                return np.array([free[row] if row >= 0 else 0 for row in numbers], dtype=np.int64)
            self._same_order = nodes, rows
        return free


def _are_alike(new: NodeFacts, old: NodeFacts) -> bool:
    """Whether two states of a node are the same to every rule: heartbeats change nothing we read."""
    if new.node is old.node:
        return True
    node, before = new.node, old.node
    return (
        repr(new[1:]) == repr(old[1:])  # a price may be NaN, which equals nothing
        and node.metadata.labels == before.metadata.labels
        and node.metadata.annotations == before.metadata.annotations
        and node.spec == before.spec
        and node.status.allocatable == before.status.allocatable
    )
