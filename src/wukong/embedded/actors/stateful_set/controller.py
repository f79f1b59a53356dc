"""The StatefulSet controller: pods with names, made in order, deleted in reverse, updated from the highest ordinal.

    OrderedReady: each waits for its predecessor to be available; Parallel: all at once (updates keep their order)
    RollingUpdate: pods of an old revision go, highest ordinal first down to `partition`, one at a time
    OnDelete: whoever is deleted comes back with the new revision

Follows kube-controller-manager 1.35 with its default features: maxUnavailable is off there, and has no effect here.
Pods that it adopts are not given the labels they lack.
"""

from __future__ import annotations

from typing import ClassVar

from wukong.actions import DONE, Action, Outcome
from wukong.api.kinds import CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from wukong.api.resources import Key
from wukong.embedded.actors import pods
from wukong.embedded.actors.adoption import claims, concerned
from wukong.embedded.actors.events import note
from wukong.embedded.actors.replica_set.controller import controlled_by, writing_status
from wukong.embedded.actors.stateful_set import ordinals, volume_claims
from wukong.embedded.actors.stateful_set.history import History
from wukong.embedded.world.objects import Pod, StatefulSet
from wukong.ports import Document
from wukong.state import State
from wukong.state.controller import PodRight, Watch, no_keys


class StatefulSets:
    name = "statefulset"
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset({PodRight.CREATE_ORDINALS, PodRight.DELETE_ORDINALS})
    watches = (
        Watch(STATEFUL_SETS),
        Watch(PODS, concerned(StatefulSet)),
        Watch(CONTROLLER_REVISIONS, controlled_by(STATEFUL_SETS)),
        Watch(PERSISTENT_VOLUME_CLAIMS, no_keys),
    )

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        stateful_set = state.get(StatefulSet, key)
        if stateful_set is None:
            return DONE
        if patches := claims(stateful_set, state, lambda pod: ordinals.ordinal_of(stateful_set, pod) >= 0):
            return Outcome(tuple(patches))
        owned = pods.owned_pods(state, stateful_set)
        sync = _Sync(stateful_set, state, owned, now)
        actions: list[Action] = []
        if stateful_set.metadata.deletion_timestamp is None:
            actions += [*sync.history.recorded(), *sync.next_steps()]
        status, before = sync.counted(), stateful_set.document.get("status") or {}
        if status != before:
            actions.append(writing_status(STATEFUL_SETS, key, before, status))
        if stateful_set.metadata.deletion_timestamp is None:
            actions += sync.history.forgotten({ordinals.revision_of(pod) for pod in owned})
        return Outcome(tuple(actions), pods.next_available(owned, stateful_set.spec.min_ready_seconds, now))


class _Sync:
    def __init__(self, stateful_set: StatefulSet, state: State, owned: list[Pod], now: float) -> None:
        self.set, self.state, self.now = stateful_set, state, now
        self.history = History(stateful_set, state)
        self.replicas = 1 if stateful_set.spec.replicas is None else stateful_set.spec.replicas
        self.start = (stateful_set.document["spec"].get("ordinals") or {}).get("start", 0)
        self.range = range(self.start, self.start + self.replicas)
        numbered = {ordinals.ordinal_of(stateful_set, pod): pod for pod in owned}
        self.by_ordinal = {ordinal: pod for ordinal, pod in sorted(numbered.items()) if ordinal >= 0}
        self.condemned = [pod for ordinal, pod in reversed(self.by_ordinal.items()) if ordinal not in self.range]
        strategy = stateful_set.spec.update_strategy
        self.is_rolling = strategy is None or strategy.type in ("", "RollingUpdate")
        self.rolling = strategy.rolling_update if strategy else None
        self.is_ordered = stateful_set.spec.pod_management_policy != "Parallel"

    def _is_available(self, pod: Pod) -> bool:
        return pods.is_available(pod, self.set.spec.min_ready_seconds, self.now)

    def _is_well(self, pod: Pod) -> bool:
        return self._is_available(pod) and not pod.is_terminating

    # ---- what to do next

    def next_steps(self) -> list[Action]:
        made: list[Action] = []
        for ordinal in self.range:
            pod = self.by_ordinal.get(ordinal)
            made += self._kept(ordinal, pod)
            if self.is_ordered and (pod is None or pod.is_finished or not self._is_well(pod)):
                return made
        for pod in self.condemned:
            made += volume_claims.retained(self.set, pod, self.state, is_condemned=True)
        for pod in self.condemned:
            if self.is_ordered:
                return [*made, *self._scaled_away(pod)]
            made += [] if pod.is_terminating else self._deleted(pod)
        return [*made, *self._rolled()]

    def _kept(self, ordinal: int, pod: Pod | None) -> list[Action]:
        """What this ordinal lacks."""
        name = f"{self.set.metadata.name}-{ordinal}"
        if pod is None:
            revision = self.history.update if self._is_new(ordinal) else self.history.current
            created = ordinals.new_pod(self.set, ordinal, self.history.template(revision), revision)
            text = f"create Pod {name} in StatefulSet {self.set.metadata.name} successful"
            told = note(STATEFUL_SETS, self.set, "SuccessfulCreate", text)
            return [*volume_claims.missing(self.set, name, self.state), created, told]
        if pod.is_finished:
            return [] if pod.is_terminating else self._deleted(pod)
        made = volume_claims.missing(self.set, name, self.state) if pod.status.phase == "Pending" else []
        return [*made, *volume_claims.retained(self.set, pod, self.state, is_condemned=False)]

    def _is_new(self, ordinal: int) -> bool:
        """Below the partition a pod comes back as it was; without one, where an update has not come so far yet."""
        if self.rolling is not None:
            return bool(ordinal >= self.start + (self.rolling.partition or 0))
        return not self.is_rolling or ordinal >= self.start + self.set.status.current_replicas

    def _scaled_away(self, pod: Pod) -> list[Action]:
        """The last of them; one that is not well only if it is the first such of all."""
        if pod.is_terminating:
            return []
        sick = [it for it in self.by_ordinal.values() if not self._is_well(it)]
        is_next = self._is_available(pod) or (bool(sick) and sick[0] is pod)
        return self._deleted(pod) if is_next else []

    def _deleted(self, pod: Pod) -> list[Action]:
        text = f"delete Pod {pod.metadata.name} in StatefulSet {self.set.metadata.name} successful"
        return [pods.deletion(pod), note(STATEFUL_SETS, self.set, "SuccessfulDelete", text)]

    def _rolled(self) -> list[Action]:
        """One pod of an old revision, and only while those above it are well."""
        least = self.start + ((self.rolling.partition or 0) if self.rolling is not None else 0)
        for ordinal in reversed(self.range) if self.is_rolling else ():
            pod = self.by_ordinal.get(ordinal)
            if ordinal < least or pod is None or pod.is_finished or pod.is_terminating:
                return []
            if ordinals.revision_of(pod) != self.history.update:
                return self._deleted(pod)
            if not self._is_available(pod):
                return []
        return []

    # ---- status

    def counted(self) -> Document:
        """Pods that are leaving count as ready while they are; they are of no revision any more."""
        there = [pod for pod in self.by_ordinal.values() if pod.status.phase]
        revisions = [ordinals.revision_of(pod) for pod in there if not pod.is_terminating]
        ready = sum(pod.status.phase == "Running" and pods.is_ready(pod) for pod in there)
        updated = revisions.count(self.history.update)
        is_over = self.is_rolling and updated == ready == len(there) == self.replicas
        current = self.history.update if is_over else self.history.current
        counts = {
            "observedGeneration": self.set.metadata.generation,
            "replicas": len(there),
            "readyReplicas": ready,
            "availableReplicas": sum(map(self._is_available, there)),
            "currentReplicas": revisions.count(current),
            "updatedReplicas": updated,
        }
        made: Document = {name: n for name, n in counts.items() if n or name in ("replicas", "availableReplicas")}
        return {**made, "currentRevision": current, "updateRevision": self.history.update, "collisionCount": 0}
