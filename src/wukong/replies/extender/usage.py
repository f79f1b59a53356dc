"""How much of each node is in use, as far as it is known: measured, not stale, and raised by what was bound since.

Used by fleet_cache.py. Kept current at the cost of what changed: a binding touches one node, a measurement all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec
import numpy as np

from wukong.api.kinds import NODE_USAGES
from wukong.api.quantity import parse_quantity, scheduler_amount
from wukong.api.resources import Key
from wukong.api.usage import NodeUsage
from wukong.engine.arrays import Floats, Mask
from wukong.errors import InputError
from wukong.placement.fleet import USED, Nodes
from wukong.state import State

CPU, MEMORY = 0, 1  # rows of `usage`


class UsageSettings(msgspec.Struct, frozen=True):
    stale_seconds: float = 180.0  # a measurement older than this says nothing
    damp_seconds: float = 60.0  # so long a pod counts by its requests, even if a measurement came later


class UsageCache:
    def __init__(self, state: State, settings: UsageSettings) -> None:
        self.state, self.settings = state, settings
        self._nodes = Nodes(())  # the nodes, and the version of the measurements, that the arrays are of
        self._version = 0
        self._at: Floats = np.zeros(0)  # [node] when it was measured; inf: it holds until it is replaced
        self._measured: Floats = np.zeros((len(USED), 0))
        self._current: Floats = self._measured
        self._bindings = 0  # the version of state.recent that is in it
        self._holds_until = 0.0  # then usage turns stale, or a binding is old enough to have been measured

    def count_stale(self, now: float) -> int:
        """How many nodes have usage that was measured, but too long ago to count."""
        return int(self._is_stale(now).sum())

    def oldest_seconds(self, now: float) -> float:
        """How old the oldest measurement is; 0 where there is none."""
        known = self._at[np.isfinite(self._at)]
        return float(now - known.min()) if len(known) else 0.0

    def usage_at(self, nodes: Nodes, now: float) -> Floats:
        """Percent in use by resource and node, NaN where nobody knows: the same array as long as nothing changed."""
        version = self.state.versions[NODE_USAGES.group_kind]
        if nodes is not self._nodes or version != self._version:
            self._nodes, self._version = nodes, version
            self._at, self._measured = _read_measurements(nodes, self.state)
            self._recompute(now)
        elif now >= self._holds_until:
            self._recompute(now)
        elif self._bindings != self.state.recent.version:
            self._update_changed(now)
        return self._current

    def _is_stale(self, now: float) -> Mask:
        """[node] By the same sum as `_holds_until`: another would be rounded differently."""
        is_stale: Mask = now >= self._at + self.settings.stale_seconds
        return is_stale

    def _recompute(self, now: float) -> None:
        """Compute usage for all nodes."""
        usage = self._measured.copy()
        is_stale = self._is_stale(now)
        usage[:, is_stale] = np.nan
        fresh = self._at[~is_stale & ~np.isnan(self._at)]
        self._holds_until = float(fresh.min()) + self.settings.stale_seconds if len(fresh) else math.inf
        self._current = usage
        self._add_recent(usage, self.state.recent.on_node, now)
        self._bindings = self.state.recent.version

    def _update_changed(self, now: float) -> None:
        """Only the nodes on which something was bound, or went away."""
        changed = self.state.recent.changed_since(self._bindings)
        if changed is None:
            self._recompute(now)
            return
        usage = self._current.copy()  # fleets made of the other one go on being what they were
        stale = self._is_stale(now)
        for name in changed:
            row = self._nodes.row_of.get(name)
            if row is not None:
                usage[:, row] = np.nan if stale[row] else self._measured[:, row]
        self._add_recent(usage, changed, now)
        self._current, self._bindings = usage, self.state.recent.version

    def _add_recent(self, usage: Floats, names: Iterable[str], now: float) -> None:
        """Pods bound since the measurement, or within the last minute, come on top of it."""
        row_of, facts, damp = self._nodes.row_of, self._nodes.facts, self.settings.damp_seconds
        for name in names:
            row = row_of.get(name)
            if row is None:
                continue
            cpu = memory = 0
            for binding in self.state.recent.on_node.get(name, {}).values():
                if binding.at >= self._at[row]:
                    is_counted = True
                else:
                    is_counted = now < binding.at + damp
                    if is_counted:
                        self._holds_until = min(self._holds_until, binding.at + damp)
                if is_counted:
                    cpu += binding.cpu_milli
                    memory += binding.memory
            allocatable = facts[row].node.status.allocatable
            usage[CPU, row] += _percent(cpu, allocatable.get("cpu", 0), "cpu")
            usage[MEMORY, row] += _percent(memory, allocatable.get("memory", 0), "memory")


def _read_measurements(nodes: Nodes, state: State) -> tuple[Floats, Floats]:
    """When each node was measured, and what: NaN for the others."""
    at = np.full(len(nodes.names), np.nan)
    usage = np.full((len(USED), len(nodes.names)), np.nan)
    usages = state.of(NodeUsage)
    for row, name in enumerate(nodes.names):
        measured = usages.get(Key("", name))
        if isinstance(measured, NodeUsage):
            at[row] = math.inf if measured.measured_at is None else measured.measured_at
            for number, kind in enumerate(USED):
                value = getattr(measured, kind)
                if value is not None:
                    usage[number, row] = value
    return at, usage


def _percent(amount: int, whole: str | int | float, resource: str) -> float:
    size = amount_of(whole, resource)
    return 100.0 * amount / size if size > 0 else 0.0


def amount_of(quantity: str | int | float, resource: str) -> int:
    """In the scheduler's unit; 0 for what is no quantity."""
    try:
        return scheduler_amount(resource, parse_quantity(quantity))
    except InputError:
        return 0
