"""A DaemonSet's plan and status by a walk over all nodes and pods, as kube-controller-manager makes them: an oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from wukong.embedded.actors import pods
from wukong.embedded.actors.controller_revisions import revision_of
from wukong.embedded.actors.daemon_set.eligibility import assess_node
from wukong.embedded.actors.daemon_set.pods import node_of
from wukong.embedded.actors.daemon_set.rolling_update import Plan
from wukong.embedded.actors.daemon_set.strategy import is_rolling, limits_of
from wukong.embedded.store.documents import parse_time
from wukong.embedded.world.objects import DaemonSet, Node, Pod
from wukong.ports import Document
from wukong.state import State


class PodPair(NamedTuple):
    new: Pod | None
    old: Pod | None


class DaemonWalk:
    def __init__(
        self, daemon_set: DaemonSet, revision: str, state: State, now: float, draw: Callable[[str], float]
    ) -> None:
        self.set, self.revision, self.now, self.draw = daemon_set, revision, now, draw
        self.owned = pods.list_owned(state, daemon_set)
        self.nodes = {node.metadata.name: assess_node(node, daemon_set) for node in state.all(Node)}
        self.eligible = {name for name, eligibility in self.nodes.items() if eligibility.should_run}
        self.by_node: dict[str, list[Pod]] = {}
        for pod in self.owned:
            if not (pod.is_finished and pod.is_terminating):
                self.by_node.setdefault(node_of(pod), []).append(pod)
        for on_node in self.by_node.values():
            on_node.sort(key=_oldest_first)
        self.pairs = {node: self.pair(self.by_node.get(node, [])) for node in sorted({*self.by_node, *self.eligible})}
        self.limits = limits_of(daemon_set, len(self.eligible))

    def is_available(self, pod: Pod) -> bool:
        return pods.is_available(pod, self.set.spec.min_ready_seconds, self.now)

    def pair(self, on_node: list[Pod]) -> PodPair | None:
        staying = [pod for pod in on_node if not pod.is_terminating]
        new = [pod for pod in staying if revision_of(pod) == self.revision]
        old = [pod for pod in staying if revision_of(pod) != self.revision]
        return None if len(new) > 1 or len(old) > 1 else PodPair(new[0] if new else None, old[0] if old else None)

    def plan(self) -> Plan:
        plan = self.plan_maintenance()
        if plan.pods_to_delete or plan.nodes_to_fill or not is_rolling(self.set):
            return plan
        return self.surge() if self.limits.surge else self.replace()

    def plan_maintenance(self) -> Plan:
        to_delete: list[Pod] = []
        to_fill: list[str] = []
        may_surge = limits_of(self.set, 1).surge > 0
        for node, (should_run, may_stay) in self.nodes.items():
            on_node = self.by_node.get(node, [])
            staying = [pod for pod in on_node if not pod.is_terminating]
            if should_run and not on_node:
                to_fill.append(node)
            elif not may_stay:
                to_delete += staying
            else:
                running = [pod for pod in staying if not pod.is_finished]
                to_delete += [pod for pod in staying if pod.is_finished]
                to_delete += self.find_surplus(running) if may_surge else running[1:]
                if may_surge and should_run and not running:
                    to_fill.append(node)
        missing_nodes = sorted(self.by_node.keys() - self.nodes.keys())
        without_node = [pod for node in missing_nodes for pod in self.by_node[node]]
        to_delete += [pod for pod in without_node if not pod.spec.node_name and not pod.is_terminating]
        return Plan(to_delete, to_fill)

    def find_surplus(self, running: list[Pod]) -> list[Pod]:
        new = [pod for pod in running if revision_of(pod) == self.revision]
        old = [pod for pod in running if revision_of(pod) != self.revision]
        surplus = [*new[1:], *old[1:]]
        if new and old and (not pods.is_ready(old[0]) or self.is_available(new[0])):
            surplus.append(old[0])
        return surplus

    def take_first(self, nodes: list[str], count: int) -> list[str]:
        return nodes if len(nodes) <= count else sorted(nodes, key=self.draw)[: max(0, count)]

    def replace(self) -> Plan:
        unavailable = 0
        unavailable_old: list[Pod] = []
        candidates: dict[str, Pod] = {}
        for node, pair in self.pairs.items():
            if pair is None or (pair.old is None) == (pair.new is None):
                unavailable += 1
            elif pair.new is not None:
                unavailable += not self.is_available(pair.new)
            elif pair.old is not None and not self.is_available(pair.old):
                unavailable_old.append(pair.old)
                unavailable += 1
            elif pair.old is not None:
                candidates[node] = pair.old
        first = self.take_first([*candidates], self.limits.unavailable - unavailable)
        return Plan([*unavailable_old, *(candidates[node] for node in first)], [])

    def surge(self) -> Plan:
        to_delete: list[Pod] = []
        on_ineligible: dict[str, Pod] = {}
        to_fill: list[str] = []
        candidates: list[str] = []
        surging = available = 0
        for node, pair in self.pairs.items():
            if pair is None:
                surging += 1
                continue
            counted = pair.old or pair.new
            available += counted is not None and self.is_available(counted)
            if pair.old is None:
                continue
            if pair.new is not None:
                if self.is_available(pair.new):
                    to_delete.append(pair.old)
                else:
                    surging += 1
            elif self.is_available(pair.old):
                if node in self.eligible:
                    candidates.append(node)
                else:
                    on_ineligible[node] = pair.old
            elif node in self.eligible:
                to_fill.append(node)
            else:
                to_delete.append(pair.old)
        leaving = self.take_first([*on_ineligible], available - len(self.eligible))
        to_delete += [on_ineligible[node] for node in leaving]
        return Plan(to_delete, [*to_fill, *self.take_first(candidates, self.limits.surge - surging)])

    def build_status(self) -> Document:
        oldest = {node: self.by_node[node][0] for node in sorted(self.eligible) if self.by_node.get(node)}
        available = sum(map(self.is_available, oldest.values()))
        status = {
            "currentNumberScheduled": len(oldest),
            "numberMisscheduled": sum(node in self.by_node for node in self.nodes.keys() - self.eligible),
            "desiredNumberScheduled": len(self.eligible),
            "numberReady": sum(map(pods.is_ready, oldest.values())),
        }
        omitted_if_zero = {
            "observedGeneration": self.set.metadata.generation,
            "updatedNumberScheduled": sum(revision_of(pod) == self.revision for pod in oldest.values()),
            "numberAvailable": available,
            "numberUnavailable": len(self.eligible) - available,
        }
        return {**status, **{name: value for name, value in omitted_if_zero.items() if value}}


def _oldest_first(pod: Pod) -> tuple[bool, float, str]:
    created = pod.metadata.creation_timestamp
    return not pod.spec.node_name, parse_time(created) if created else 0.0, pod.metadata.name
