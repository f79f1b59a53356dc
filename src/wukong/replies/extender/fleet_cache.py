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
from wukong.placement.slices import Slices, finish
from wukong.replies.extender.usage import UsageCache, UsageSettings, amount_of
from wukong.state import State

_PER_SLICE = 256  # nodes read at a time


class FleetCache:
    def __init__(
        self, state: State, settings: UsageSettings, prices: Prices, latencies: Latencies | None = None
    ) -> None:
        self.state, self.prices, self.latencies = state, prices, latencies or {}
        self.usages = UsageCache(state, settings)
        self._facts: dict[str, NodeFacts] = {}
        self._unfinished: dict[str, NodeFacts] = {}  # of nodes that changed again before all were read
        self._node_version = -1
        self._nodes = Nodes(())
        self._usage: Floats | None = None
        self._fleet = Fleet(self._nodes)
        self._same_order: tuple[object, ...] = ()  # nodes, and rows of the snapshot, known to be in the same order

    def fleet_at(self, now: float) -> Fleet:
        """The fleet as it is now."""
        return finish(self.fleet_in_slices(now))

    def fleet_in_slices(self, now: float) -> Slices[Fleet]:
        """The fleet as it is when the last slice is over."""
        while self.state.versions["Node"] != self._node_version:
            yield from self._read_nodes()
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

    def fleet_of(self, nodes: Iterable[Node | str], now: float) -> Fleet:
        """A fleet of these nodes: those that the mirror does not show yet in full, of the others the names will do."""
        known = self.fleet_at(now)
        by_name = {node if isinstance(node, str) else node.metadata.name: node for node in nodes}
        facts: list[NodeFacts] = []
        rows: list[int] = []  # where `known` has each; -1: it has not
        for name, node in by_name.items():
            row = known.row_of.get(name, -1)
            if row >= 0:
                facts.append(known.nodes.facts[row])
            elif isinstance(node, Node):
                facts.append(read_facts(node, self.prices))
            else:
                continue  # it went a moment ago
            rows.append(row)
        places = np.array(rows, dtype=np.intp)
        new = np.flatnonzero(places < 0).tolist()
        usage: Floats = np.full((len(USED), len(facts)), np.nan)
        usage[:, places >= 0] = known.usage[:, places[places >= 0]]

        def free(name: str) -> Ints | None:
            known_free = known.free(name)
            amounts: Ints = np.zeros(len(facts), dtype=np.int64)
            if known_free is not None:
                amounts[places >= 0] = known_free[places[places >= 0]]
            for place in new:
                amounts[place] = amount_of(facts[place].node.status.allocatable.get(name, 0), name)
            return amounts

        return Fleet(Nodes(facts), usage, free, self.latencies)

    def _read_nodes(self) -> Slices[None]:
        """Takes over the nodes, unless they change meanwhile."""
        version, facts = self.state.versions["Node"], {}
        for number, (key, node) in enumerate(list(self.state.objects.get("Node", {}).items()), 1):
            assert isinstance(node, Node)
            known = self._unfinished.get(key.name) or self._facts.get(key.name)
            facts[key.name] = known if known is not None and known.node is node else read_facts(node, self.prices)
            if number % _PER_SLICE == 0:
                yield
                if self.state.versions["Node"] != version:
                    self._unfinished = facts  # what was read need not be read again
                    return
        is_same = len(facts) == len(self._facts) and all(
            name in self._facts and _are_alike(entry, self._facts[name]) for name, entry in facts.items()
        )
        self._facts, self._unfinished, self._node_version = facts, {}, version
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
