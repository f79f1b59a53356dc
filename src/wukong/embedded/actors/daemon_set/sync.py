"""One sync of a DaemonSet: which nodes get a pod, which pods go, and its status. Called by controller.py."""

from __future__ import annotations

from wukong.embedded.actors import pods
from wukong.embedded.actors.controller_revisions import revision_of
from wukong.embedded.actors.daemon_set.eligibility import NodeEligibility
from wukong.embedded.actors.daemon_set.pods import node_of
from wukong.embedded.actors.daemon_set.rolling_update import Draw, Plan, RollingUpdate, is_rolling, limits_of
from wukong.embedded.store.documents import parse_time
from wukong.embedded.world.objects import DaemonSet, Pod
from wukong.ports import Document


class DaemonSetSync:
    def __init__(
        self,
        daemon_set: DaemonSet,
        revision: str,
        nodes: dict[str, NodeEligibility],
        owned: list[Pod],
        now: float,
        draw: Draw,
    ) -> None:
        self.set, self.revision, self.nodes, self.now, self.draw = daemon_set, revision, nodes, now, draw
        self.eligible = {name for name, eligibility in nodes.items() if eligibility.should_run}
        self.by_node: dict[str, list[Pod]] = {}
        for pod in owned:
            if not (pod.is_finished and pod.is_terminating):
                self.by_node.setdefault(node_of(pod), []).append(pod)
        for on_node in self.by_node.values():
            on_node.sort(key=_oldest_first)

    def plan(self) -> Plan:
        """Create what is missing and delete what is too much; only if there is neither, go on with an update."""
        plan = self._plan_maintenance()
        if plan.pods_to_delete or plan.nodes_to_fill or not is_rolling(self.set):
            return plan
        return RollingUpdate(self.set, self.by_node, self.eligible, self.revision, self.now, self.draw).plan()

    def _plan_maintenance(self) -> Plan:
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
                to_delete += self._find_surplus(running) if may_surge else running[1:]
                if may_surge and should_run and not running:
                    to_fill.append(node)
        missing_nodes = sorted(self.by_node.keys() - self.nodes.keys())
        without_node = [pod for node in missing_nodes for pod in self.by_node[node]]
        to_delete += [pod for pod in without_node if not pod.spec.node_name and not pod.is_terminating]
        return Plan(to_delete, to_fill)

    def _find_surplus(self, running: list[Pod]) -> list[Pod]:
        """With surge, two pods may be on a node while the old one is ready and the new one not yet available."""
        new = [pod for pod in running if revision_of(pod) == self.revision]
        old = [pod for pod in running if revision_of(pod) != self.revision]
        surplus = [*new[1:], *old[1:]]
        if new and old and (not pods.is_ready(old[0]) or self._is_available(new[0])):
            surplus.append(old[0])
        return surplus

    def _is_available(self, pod: Pod) -> bool:
        return pods.is_available(pod, self.set.spec.min_ready_seconds, self.now)

    def build_status(self) -> Document:
        """Of several pods on a node the oldest counts, even one that is terminating."""
        oldest = {node: self.by_node[node][0] for node in sorted(self.eligible) if self.by_node.get(node)}
        available = sum(map(self._is_available, oldest.values()))
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
