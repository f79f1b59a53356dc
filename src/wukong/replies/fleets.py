"""The fleet as the mirror shows it now: built from the state, the very same object as long as nothing in it changed.

Used by extender.py. What is told from a node alone is worked out when the node changes; usage when it was measured,
turned stale, or was overtaken by a pod bound since.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from wukong.api.core import Node
from wukong.api.quantity import parse_quantity, scheduler_amount
from wukong.engine.arrays import Floats, Ints
from wukong.errors import InputError
from wukong.placement.fleet import USED, Fleet, Latencies, NodeFacts, Nodes, read_facts
from wukong.placement.prices import Prices
from wukong.state import State

CPU, MEMORY = 0, 1  # rows of `usage`


class UsageSettings(msgspec.Struct, frozen=True):
    stale_seconds: float = 180.0  # a measurement older than this says nothing
    damp_seconds: float = 60.0  # so long a pod counts by its requests, even if a measurement came later


class Fleets:
    def __init__(
        self, state: State, settings: UsageSettings, prices: Prices, latencies: Latencies | None = None
    ) -> None:
        self.state, self.settings, self.prices, self.latencies = state, settings, prices, latencies or {}
        self._facts: dict[str, NodeFacts] = {}
        self._node_version = -1
        self._nodes = Nodes(())
        self._fleet: Fleet | None = None
        self._made_of: tuple[object, ...] = ()
        self._holds_until = 0.0  # then usage turns stale, or a binding is old enough to have been measured
        self._measured_at = np.zeros(0)  # [node]
        self._asked_at = 0.0

    @property
    def stale(self) -> int:
        """Nodes whose usage was measured, but too long ago to count."""
        return int((self._measured_at <= self._asked_at - self.settings.stale_seconds).sum())

    @property
    def oldest_usage_seconds(self) -> float:
        """How old the oldest measurement is; 0 where there is none."""
        known = self._measured_at[~np.isnan(self._measured_at)]
        return float(self._asked_at - known.min()) if len(known) else 0.0

    def at(self, now: float) -> Fleet:
        """The fleet as it is now."""
        self._asked_at = now
        if self.state.versions["Node"] != self._node_version:
            self._bring_nodes()
        made_of = (self._nodes, id(self.state.usage), self.state.recent.version)
        if self._fleet is None or made_of != self._made_of or now >= self._holds_until:
            self._fleet = Fleet(self._nodes, self._usage(now), self._free, self.latencies)
            self._made_of = made_of
        return self._fleet

    def of(self, nodes: Iterable[Node], now: float) -> Fleet:
        """A fleet of nodes given in full, for those the mirror does not show yet."""
        given = {node.metadata.name: read_facts(node, self.prices) for node in nodes}
        known = self.at(now)
        facts = [known.nodes.facts[known.row_of[name]] if name in known.row_of else own for name, own in given.items()]
        usage = np.full((len(USED), len(facts)), np.nan)
        rows = [(column, known.row_of[name]) for column, name in enumerate(given) if name in known.row_of]
        for column, row in rows:
            usage[:, column] = known.usage[:, row]

        def free(name: str) -> Ints | None:
            amounts = np.array([_allocatable(entry.node, name) for entry in facts], dtype=np.int64)
            ours = self._free(name)
            for column, row in rows:
                amounts[column] = 0 if ours is None else ours[row]
            return amounts

        return Fleet(Nodes(facts), usage, free, self.latencies)

    def _bring_nodes(self) -> None:
        self._node_version = self.state.versions["Node"]
        nodes = self.state.objects.get("Node", {})
        facts: dict[str, NodeFacts] = {}
        for key, node in nodes.items():
            assert isinstance(node, Node)
            known = self._facts.get(key.name)
            facts[key.name] = known if known is not None and known.node is node else read_facts(node, self.prices)
        is_same = len(facts) == len(self._facts) and all(
            name in self._facts and _looks_alike(entry, self._facts[name]) for name, entry in facts.items()
        )
        self._facts = facts
        if not is_same:
            self._nodes = Nodes([facts[name] for name in sorted(facts)])

    def _free(self, resource: str) -> Ints | None:
        """Free by requests, in the order of the fleet: the live snapshot keeps it, its rows sorted by name as ours."""
        snapshot = self.state.snapshot
        line = snapshot.lines.get(resource)
        if line is None:
            return None
        free: Ints = snapshot.room[line] - snapshot.load[line]
        if len(free) != len(self._nodes.names):  # a node came or went since this fleet was made
            rows = [snapshot.row_of.get(name, -1) for name in self._nodes.names]
            return np.array([free[row] if row >= 0 else 0 for row in rows], dtype=np.int64)
        return free

    # ---- usage

    def _usage(self, now: float) -> Floats:
        settings, nodes = self.settings, self._nodes
        at, usage = _measured(nodes.names, self.state)
        is_stale = at <= now - settings.stale_seconds
        self._measured_at = at
        usage[:, is_stale] = np.nan
        fresh = at[~is_stale & ~np.isnan(at)]
        self._holds_until = float(fresh.min()) + settings.stale_seconds if len(fresh) else np.inf
        self._add_bound(usage, at, now)
        return usage

    def _add_bound(self, usage: Floats, at: Floats, now: float) -> None:
        """Pods bound since the measurement, or within the last minute, come on top of it."""
        row_of, facts = self._nodes.row_of, self._nodes.facts
        for bound in self.state.recent.bound.values():
            row = row_of.get(bound.node)
            if row is None or not (bound.at >= at[row] or bound.at > now - self.settings.damp_seconds):
                continue
            if bound.at < at[row]:
                self._holds_until = min(self._holds_until, bound.at + self.settings.damp_seconds)
            allocatable = facts[row].node.status.allocatable
            usage[CPU, row] += _percent(bound.cpu_milli, allocatable.get("cpu", 0), "cpu")
            usage[MEMORY, row] += _percent(bound.memory, allocatable.get("memory", 0), "memory")


def _measured(names: Sequence[str], state: State) -> tuple[Floats, Floats]:
    """When each node was measured, and what: NaN for the others."""
    at = np.full(len(names), np.nan)
    usage = np.full((len(USED), len(names)), np.nan)
    for row, name in enumerate(names):
        found = state.usage.get(name)
        if found is not None:
            at[row] = found.at
            for number, kind in enumerate(USED):
                value = getattr(found, kind)
                if value is not None:
                    usage[number, row] = value
    return at, usage


def _looks_alike(one: NodeFacts, other: NodeFacts) -> bool:
    """Whether two states of a node are the same to every rule: heartbeats change nothing we read."""
    if one.node is other.node:
        return True
    return (
        (one.is_spot, one.leaving, one.cores, str(one.price))
        == (other.is_spot, other.leaving, other.cores, str(other.price))
        and one.node.metadata.labels == other.node.metadata.labels
        and one.node.metadata.annotations == other.node.metadata.annotations
        and one.node.spec == other.node.spec
        and one.node.status.allocatable == other.node.status.allocatable
    )


def _percent(amount: int, whole: str | int | float, resource: str) -> float:
    size = _amount(whole, resource)
    return 100.0 * amount / size if size > 0 else 0.0


def _allocatable(node: Node, resource: str) -> int:
    return _amount(node.status.allocatable.get(resource, 0), resource)


def _amount(quantity: str | int | float, resource: str) -> int:
    try:
        return scheduler_amount(resource, parse_quantity(quantity))
    except InputError:
        return 0
