"""How a DaemonSet is brought to its latest revision: node by node, within maxUnavailable, or with maxSurge. Pure.

    no surge:  an old pod goes, and only then is there a new one: at most maxUnavailable nodes are without a daemon
    surge:     a new pod comes beside the old one, which goes when the new one is available: at most maxSurge nodes

Called by sync.py. Follows kube-controller-manager's daemon/update.go. Which nodes come first is drawn: the real one
takes them as a Go map gives them. Old pods that are not available cost nothing and are replaced at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from wukong.embedded.actors import pods
from wukong.embedded.actors.controller_revisions import revision_of
from wukong.embedded.actors.deployment.sizes import resolve_percent
from wukong.embedded.world.objects import DaemonSet, Pod

Draw = Callable[[str], float]  # node → number


class PodPair(NamedTuple):
    """The pods of one node that are not terminating: one of the latest revision and one of an older one."""

    new: Pod | None
    old: Pod | None


class Plan(NamedTuple):
    pods_to_delete: list[Pod]
    nodes_to_fill: list[str]  # which get another pod


class Limits(NamedTuple):
    surge: int
    unavailable: int


def is_rolling(daemon_set: DaemonSet) -> bool:
    strategy = daemon_set.spec.update_strategy
    return strategy is None or strategy.type in ("", "RollingUpdate")


def limits_of(daemon_set: DaemonSet, wanted: int) -> Limits:
    """The limits of an update, with `wanted` pods in all."""
    strategy = daemon_set.spec.update_strategy
    rolling = strategy.rolling_update if strategy else None
    if not is_rolling(daemon_set):
        return Limits(0, 0)
    if rolling is None:
        return Limits(0, 1)
    surge = resolve_percent(rolling.max_surge, wanted, up=True)
    unavailable = resolve_percent(rolling.max_unavailable, wanted, up=True)
    return Limits(surge, 1 if wanted and not surge and not unavailable else unavailable)


def pair_pods(on_node: list[Pod], revision: str) -> PodPair | None:
    """The pair of a node; None where there are two of the same revision: those are cleaned up first."""
    staying = [pod for pod in on_node if not pod.is_terminating]
    new = [pod for pod in staying if revision_of(pod) == revision]
    old = [pod for pod in staying if revision_of(pod) != revision]
    if len(new) > 1 or len(old) > 1:
        return None
    return PodPair(new[0] if new else None, old[0] if old else None)


class RollingUpdate:
    """One step of an update. `by_node` has the pods of each node, `eligible` the nodes that should have one.

    `draw` gives each node its number: where not all may be updated now, the lowest are.
    """

    def __init__(
        self,
        daemon_set: DaemonSet,
        by_node: dict[str, list[Pod]],
        eligible: set[str],
        revision: str,
        now: float,
        draw: Draw,
    ):
        self.set, self.eligible, self.now, self.draw = daemon_set, eligible, now, draw
        self.limits = limits_of(daemon_set, len(eligible))
        self.pairs = {node: pair_pods(by_node.get(node, []), revision) for node in sorted({*by_node, *eligible})}

    def plan(self) -> Plan:
        return self._surge() if self.limits.surge else self._replace()

    def _is_available(self, pod: Pod) -> bool:
        return pods.is_available(pod, self.set.spec.min_ready_seconds, self.now)

    def _take_first(self, nodes: list[str], count: int) -> list[str]:
        """As many of these nodes as may be updated now."""
        return nodes if len(nodes) <= count else sorted(nodes, key=self.draw)[: max(0, count)]

    def _replace(self) -> Plan:
        unavailable = 0
        unavailable_old: list[Pod] = []
        candidates: dict[str, Pod] = {}
        for node, pair in self.pairs.items():
            if pair is None or (pair.old is None) == (pair.new is None):
                unavailable += 1
            elif pair.new is not None:
                unavailable += not self._is_available(pair.new)
            elif pair.old is not None and not self._is_available(pair.old):
                unavailable_old.append(pair.old)
                unavailable += 1
            elif pair.old is not None:
                candidates[node] = pair.old
        first = self._take_first([*candidates], self.limits.unavailable - unavailable)
        return Plan([*unavailable_old, *(candidates[node] for node in first)], [])

    def _surge(self) -> Plan:
        to_delete: list[Pod] = []
        on_ineligible: dict[str, Pod] = {}  # available pods there: they go when enough others are available
        to_fill: list[str] = []
        candidates: list[str] = []
        surging = available = 0
        for node, pair in self.pairs.items():
            if pair is None:
                surging += 1
                continue
            counted = pair.old or pair.new
            available += counted is not None and self._is_available(counted)
            if pair.old is None:
                continue
            if pair.new is not None:
                if self._is_available(pair.new):
                    to_delete.append(pair.old)
                else:
                    surging += 1
            elif self._is_available(pair.old):
                if node in self.eligible:
                    candidates.append(node)
                else:
                    on_ineligible[node] = pair.old
            elif node in self.eligible:
                to_fill.append(node)
            else:
                to_delete.append(pair.old)
        leaving = self._take_first([*on_ineligible], available - len(self.eligible))
        to_delete += [on_ineligible[node] for node in leaving]
        return Plan(to_delete, [*to_fill, *self._take_first(candidates, self.limits.surge - surging)])
