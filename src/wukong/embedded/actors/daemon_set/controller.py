"""The DaemonSet controller: one pod on every node that takes it, made, kept, counted and brought up to date.

Follows kube-controller-manager 1.35: pods name their node by affinity and tolerate what daemons tolerate; the scheduler
binds them. Pods of the wrong nodes go, unless only a NoSchedule taint speaks against them. Bound pods of nodes that are
gone are left to the pod garbage collector. Revisions are not kept as objects: a hash of the template is enough. Failed
pods are replaced at once, where the real one waits a little longer each time.
"""

from __future__ import annotations

from typing import ClassVar

from wukong.actions import DONE, Action, Outcome
from wukong.api.kinds import DAEMON_SETS, NODES, PODS
from wukong.api.resources import Key, key_of
from wukong.embedded.actors import pods
from wukong.embedded.actors.adoption import claims, concerned
from wukong.embedded.actors.controller_revisions import hash_for
from wukong.embedded.actors.daemon_set.pods import Doors, Welcome, new_pod, node_of
from wukong.embedded.actors.daemon_set.update import Plan, Update, is_rolling, limits
from wukong.embedded.actors.events import CreatedPods, deleted
from wukong.embedded.actors.replica_set.controller import BURST, writing_status
from wukong.embedded.actors.stateful_set.ordinals import revision_of
from wukong.embedded.store.documents import parse_time
from wukong.embedded.world.objects import DaemonSet, Pod
from wukong.ports import Document
from wukong.state import Change, State
from wukong.state.controller import PodRight, Watch


def _every(_: Change, state: State) -> list[Key]:
    return [key_of(daemon_set) for daemon_set in state.all(DaemonSet)]


class DaemonSets:
    name = "daemonset"
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset({PodRight.CREATE_ONE_PER_NODE, PodRight.DELETE_DAEMON_PODS})
    watches = (Watch(DAEMON_SETS), Watch(PODS, concerned(DaemonSet)), Watch(NODES, _every))

    def __init__(self) -> None:
        self._newborn, self._doors = CreatedPods(DAEMON_SETS), Doors()

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        daemon_set = state.get(DaemonSet, key)
        if daemon_set is None or daemon_set.metadata.deletion_timestamp is not None:
            self._doors.forget(key)
            return DONE
        owned = pods.owned_pods(state, daemon_set)
        actions: list[Action] = [*self._newborn.told(daemon_set, map(key_of, owned))]
        if patches := claims(daemon_set, state):
            return Outcome((*actions, *patches))
        revision = hash_for(daemon_set, state)
        sync = _Sync(daemon_set, revision, self._doors.welcome(daemon_set, state), owned, now)
        plan = sync.plan()
        if plan.nodes:
            self._newborn.asked(daemon_set, map(key_of, owned))
        actions += [new_pod(daemon_set, node, sync.revision) for node in plan.nodes[:BURST]]
        actions += deleted(DAEMON_SETS, daemon_set, plan.leaving[:BURST])
        status, before = sync.counted(), daemon_set.document.get("status") or {}
        if status != before:
            actions.append(writing_status(DAEMON_SETS, key, before, status))
        return Outcome(tuple(actions), pods.next_available(owned, daemon_set.spec.min_ready_seconds, now))


class _Sync:
    def __init__(
        self, daemon_set: DaemonSet, revision: str, nodes: dict[str, Welcome], owned: list[Pod], now: float
    ) -> None:
        self.set, self.revision, self.nodes, self.now = daemon_set, revision, nodes, now
        self.welcome = {name for name, found in self.nodes.items() if found.shall_run}
        self.by_node: dict[str, list[Pod]] = {}
        for pod in owned:
            if not (pod.is_finished and pod.is_terminating):
                self.by_node.setdefault(node_of(pod), []).append(pod)
        for there in self.by_node.values():
            there.sort(key=_oldest_first)

    def plan(self) -> Plan:
        """Put right what is wrong; only if nothing is, go on with an update."""
        found = self._kept()
        if found.leaving or found.nodes or not is_rolling(self.set):
            return found
        return Update(self.set, self.by_node, self.welcome, self.revision, self.now).plan()

    def _kept(self) -> Plan:
        leaving: list[Pod] = []
        missing: list[str] = []
        may_surge = limits(self.set, 1).surge > 0
        for node, (shall_run, may_stay) in self.nodes.items():
            there = self.by_node.get(node, [])
            staying = [pod for pod in there if not pod.is_terminating]
            if shall_run and not there:
                missing.append(node)
            elif not may_stay:
                leaving += staying
            else:
                running = [pod for pod in staying if not pod.is_finished]
                leaving += [pod for pod in staying if pod.is_finished]
                leaving += self._too_many(running) if may_surge else running[1:]
                if may_surge and shall_run and not running:
                    missing.append(node)
        lost = [pod for node in sorted(self.by_node.keys() - self.nodes.keys()) for pod in self.by_node[node]]
        leaving += [pod for pod in lost if not pod.spec.node_name and not pod.is_terminating]
        return Plan(leaving, missing)

    def _too_many(self, running: list[Pod]) -> list[Pod]:
        """Two may be on a node while the old one is ready and the new one not yet available."""
        new = [pod for pod in running if revision_of(pod) == self.revision]
        old = [pod for pod in running if revision_of(pod) != self.revision]
        surplus = [*new[1:], *old[1:]]
        if new and old and (not pods.is_ready(old[0]) or self._is_available(new[0])):
            surplus.append(old[0])
        return surplus

    def _is_available(self, pod: Pod) -> bool:
        return pods.is_available(pod, self.set.spec.min_ready_seconds, self.now)

    def counted(self) -> Document:
        """Of several pods on a node the oldest counts, even one that is leaving."""
        first = {node: self.by_node[node][0] for node in sorted(self.welcome) if self.by_node.get(node)}
        available = sum(map(self._is_available, first.values()))
        status = {
            "currentNumberScheduled": len(first),
            "numberMisscheduled": sum(node in self.by_node for node in self.nodes.keys() - self.welcome),
            "desiredNumberScheduled": len(self.welcome),
            "numberReady": sum(map(pods.is_ready, first.values())),
        }
        more = {
            "observedGeneration": self.set.metadata.generation,
            "updatedNumberScheduled": sum(revision_of(pod) == self.revision for pod in first.values()),
            "numberAvailable": available,
            "numberUnavailable": len(self.welcome) - available,
        }
        return {**status, **{name: value for name, value in more.items() if value}}


def _oldest_first(pod: Pod) -> tuple[bool, float, str]:
    created = pod.metadata.creation_timestamp
    return not pod.spec.node_name, parse_time(created) if created else 0.0, pod.metadata.name
