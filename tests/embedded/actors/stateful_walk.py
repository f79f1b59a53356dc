"""A StatefulSet's plan and status by a walk over all its pods, as kube-controller-manager makes them: an oracle."""

from __future__ import annotations

from wukong.actions import Action
from wukong.embedded.actors import pods
from wukong.embedded.actors.controller_revisions import revision_of
from wukong.embedded.actors.stateful_set import volume_claims
from wukong.embedded.actors.stateful_set.ordinal_index import OrderedPods
from wukong.embedded.actors.stateful_set.ordinals import ordinal_of
from wukong.embedded.actors.stateful_set.sync import StatefulSetSync
from wukong.embedded.world.objects import Pod, StatefulSet
from wukong.ports import Document
from wukong.state import State


class StatefulWalk:
    """What is done about a single pod or ordinal is asked of `StatefulSetSync`; which, and in what order, is not."""

    def __init__(self, stateful_set: StatefulSet, state: State, now: float) -> None:
        self.set, self.state, self.now = stateful_set, state, now
        self.sync = StatefulSetSync(stateful_set, state, OrderedPods(), now)
        self.owned = pods.list_owned(state, stateful_set)
        self.range = range(self.sync.start, self.sync.start + self.sync.replicas)
        all_ordinals = {ordinal_of(stateful_set, pod): pod for pod in self.owned}
        self.by_ordinal = {ordinal: pod for ordinal, pod in sorted(all_ordinals.items()) if ordinal >= 0}
        self.condemned = [pod for ordinal, pod in reversed(self.by_ordinal.items()) if ordinal not in self.range]

    def is_available(self, pod: Pod) -> bool:
        return pods.is_available(pod, self.set.spec.min_ready_seconds, self.now)

    def is_healthy(self, pod: Pod) -> bool:
        return self.is_available(pod) and not pod.is_terminating

    def plan_pods(self) -> list[Action]:
        actions: list[Action] = []
        is_ordered = self.sync.is_ordered
        for ordinal in self.range:
            pod = self.by_ordinal.get(ordinal)
            actions += self.sync._maintain_ordinal(ordinal, pod)
            if is_ordered and (pod is None or pod.is_finished or not self.is_healthy(pod)):
                return actions
        for pod in self.condemned:
            actions += volume_claims.update_owners(self.set, pod, self.state, is_condemned=True)
        for pod in self.condemned:
            if is_ordered:
                return [*actions, *self.scale_down(pod)]
            actions += [] if pod.is_terminating else self.sync._delete_pod(pod)
        return [*actions, *self.roll()]

    def scale_down(self, pod: Pod) -> list[Action]:
        if pod.is_terminating:
            return []
        unhealthy = [other for other in self.by_ordinal.values() if not self.is_healthy(other)]
        is_next = self.is_available(pod) or (bool(unhealthy) and unhealthy[0] is pod)
        return self.sync._delete_pod(pod) if is_next else []

    def roll(self) -> list[Action]:
        rolling = self.sync.rolling
        lowest = self.sync.start + ((rolling.partition or 0) if rolling is not None else 0)
        for ordinal in reversed(self.range) if self.sync.is_rolling else ():
            pod = self.by_ordinal.get(ordinal)
            if ordinal < lowest or pod is None or pod.is_finished or pod.is_terminating:
                return []
            if revision_of(pod) != self.sync.history.update:
                return self.sync._delete_pod(pod)
            if not self.is_available(pod):
                return []
        return []

    def build_status(self) -> Document:
        history = self.sync.history
        created = [pod for pod in self.by_ordinal.values() if pod.status.phase]
        revisions = [revision_of(pod) for pod in created if not pod.is_terminating]
        ready = sum(pod.status.phase == "Running" and pods.is_ready(pod) for pod in created)
        updated = revisions.count(history.update)
        is_complete = self.sync.is_rolling and updated == ready == len(created) == self.sync.replicas
        current = history.update if is_complete else history.current
        counts = {
            "observedGeneration": self.set.metadata.generation,
            "replicas": len(created),
            "readyReplicas": ready,
            "availableReplicas": sum(map(self.is_available, created)),
            "currentReplicas": revisions.count(current),
            "updatedReplicas": updated,
        }
        always = ("replicas", "availableReplicas")
        status: Document = {name: count for name, count in counts.items() if count or name in always}
        return {**status, "currentRevision": current, "updateRevision": history.update, "collisionCount": 0}
