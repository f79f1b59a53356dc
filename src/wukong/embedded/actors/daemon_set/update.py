"""How a DaemonSet is brought to its latest revision: node by node, within maxUnavailable, or with maxSurge. Pure.

    no surge:  an old pod goes, and only then is there a new one: at most maxUnavailable nodes are without a daemon
    surge:     a new pod comes beside the old one, which goes when the new one is available: at most maxSurge nodes

Called by daemon_set.py. Follows kube-controller-manager's daemon/update.go; nodes are taken by name, where the real
one takes them as a Go map gives them. Old pods that are not available cost nothing and are replaced at once.
"""

from __future__ import annotations

from typing import NamedTuple

from wukong.embedded.actors import pods
from wukong.embedded.actors.deployment.sizes import percent
from wukong.embedded.actors.stateful_set.ordinals import revision_of
from wukong.embedded.world.objects import DaemonSet, Pod


class Pair(NamedTuple):
    """The pods of one node that stay: of the latest revision and of an older one; None where it has two of a kind."""

    new: Pod | None
    old: Pod | None


class Plan(NamedTuple):
    leaving: list[Pod]
    nodes: list[str]  # which get another pod


class Limits(NamedTuple):
    surge: int
    unavailable: int


def is_rolling(daemon_set: DaemonSet) -> bool:
    strategy = daemon_set.spec.update_strategy
    return strategy is None or strategy.type in ("", "RollingUpdate")


def limits(daemon_set: DaemonSet, wanted: int) -> Limits:
    strategy = daemon_set.spec.update_strategy
    rolling = strategy.rolling_update if strategy else None
    if not is_rolling(daemon_set):
        return Limits(0, 0)
    if rolling is None:
        return Limits(0, 1)
    surge = percent(rolling.max_surge, wanted, up=True)
    unavailable = percent(rolling.max_unavailable, wanted, up=True)
    return Limits(surge, 1 if wanted and not surge and not unavailable else unavailable)


def pair(on_node: list[Pod], revision: str) -> Pair | None:
    """None where there is more than one of either: that is cleaned up first."""
    staying = [pod for pod in on_node if not pod.is_terminating]
    new = [pod for pod in staying if revision_of(pod) == revision]
    old = [pod for pod in staying if revision_of(pod) != revision]
    if len(new) > 1 or len(old) > 1:
        return None
    return Pair(new[0] if new else None, old[0] if old else None)


class Update:
    """One look at the pods of a DaemonSet by node; nodes that want one and have none are there, too."""

    def __init__(
        self, daemon_set: DaemonSet, by_node: dict[str, list[Pod]], welcome: set[str], revision: str, now: float
    ):
        self.set, self.welcome, self.now = daemon_set, welcome, now
        self.limits = limits(daemon_set, len(welcome))
        self.pairs = {node: pair(by_node.get(node, []), revision) for node in sorted({*by_node, *welcome})}

    def plan(self) -> Plan:
        return self._surge() if self.limits.surge else self._replace()

    def _is_available(self, pod: Pod) -> bool:
        return pods.is_available(pod, self.set.spec.min_ready_seconds, self.now)

    def _replace(self) -> Plan:
        missing, sick, candidates = 0, [], []
        for found in self.pairs.values():
            if found is None or (found.old is None) == (found.new is None):
                missing += 1
            elif found.new is not None:
                missing += not self._is_available(found.new)
            elif found.old is not None and not self._is_available(found.old):
                sick.append(found.old)
                missing += 1
            elif found.old is not None:
                candidates.append(found.old)
        return Plan([*sick, *candidates[: max(0, self.limits.unavailable - missing)]], [])

    def _surge(self) -> Plan:
        leaving: list[Pod] = []
        unwelcome: list[Pod] = []  # well, but on nodes that shall not have one: they go when enough others are
        needed: list[str] = []
        candidates: list[str] = []
        surging = available = 0
        for node, found in self.pairs.items():
            if found is None:
                surging += 1
                continue
            first = found.old or found.new
            available += first is not None and self._is_available(first)
            if found.old is None:
                continue
            if found.new is not None:
                if self._is_available(found.new):
                    leaving.append(found.old)
                else:
                    surging += 1
            elif self._is_available(found.old):
                (candidates.append(node) if node in self.welcome else unwelcome.append(found.old))
            elif node in self.welcome:
                needed.append(node)
            else:
                leaving.append(found.old)
        leaving += unwelcome[: max(0, available - len(self.welcome))]
        return Plan(leaving, [*needed, *candidates[: max(0, self.limits.surge - surging)]])
