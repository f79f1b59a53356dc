"""One sync of a StatefulSet: what is done with its pods and their claims, and its status. Called by controller.py."""

from __future__ import annotations

from wukong.actions import Action
from wukong.api.kinds import STATEFUL_SETS
from wukong.embedded.actors import pods
from wukong.embedded.actors.controller_revisions import revision_of
from wukong.embedded.actors.events import note_about
from wukong.embedded.actors.stateful_set import ordinals, volume_claims
from wukong.embedded.actors.stateful_set.history import History
from wukong.embedded.actors.stateful_set.ordinal_index import OrderedPods, OrdinalMark, Revision, Version
from wukong.embedded.world.objects import Pod, StatefulSet
from wukong.ports import Document
from wukong.state import State


class StatefulSetSync:
    def __init__(self, stateful_set: StatefulSet, state: State, ordered: OrderedPods, now: float) -> None:
        self.set, self.state, self.ordered, self.now = stateful_set, state, ordered, now
        self.history = History(stateful_set, state)
        self.replicas = 1 if stateful_set.spec.replicas is None else stateful_set.spec.replicas
        self.start = (stateful_set.document["spec"].get("ordinals") or {}).get("start", 0)
        strategy = stateful_set.spec.update_strategy
        self.is_rolling = strategy is None or strategy.type in ("", "RollingUpdate")
        self.rolling = strategy.rolling_update if strategy else None
        self.is_ordered = stateful_set.spec.pod_management_policy != "Parallel"
        wanted = range(self.start, self.start + self.replicas)
        version = Version(stateful_set.metadata.generation, self.history.update, wanted)
        ordered.update_marks(stateful_set, version, state, now)
        self.marks = ordered.marks

    def _is_available(self, pod: Pod) -> bool:
        return pods.is_available(pod, self.set.spec.min_ready_seconds, self.now)

    # ---- pods

    def plan_pods(self) -> list[Action]:
        """What to do next with pods and claims: create what is missing, then scale down, then update."""
        actions: list[Action] = []
        stopping = self.marks.names(OrdinalMark.STOPPING) if self.is_ordered else ()
        for ordinal in self.marks.names(OrdinalMark.LACKING):
            if stopping and ordinal > stopping[0]:
                break
            actions += self._maintain_ordinal(ordinal, self.ordered.get(ordinal))
        if stopping:
            return actions
        ordinals_to_leave = reversed(self.marks.names(OrdinalMark.CONDEMNED))
        condemned = [pod for ordinal in ordinals_to_leave if (pod := self.ordered.get(ordinal)) is not None]
        for pod in condemned:
            actions += volume_claims.update_owners(self.set, pod, self.state, is_condemned=True)
        for pod in condemned:
            if self.is_ordered:
                return [*actions, *self._scale_down(pod)]
            actions += [] if pod.is_terminating else self._delete_pod(pod)
        return [*actions, *self._roll()]

    def _maintain_ordinal(self, ordinal: int, pod: Pod | None) -> list[Action]:
        """Create the pod and the claims that this ordinal lacks; delete a finished pod."""
        name = f"{self.set.metadata.name}-{ordinal}"
        if pod is None:
            revision = self.history.update if self._is_updated(ordinal) else self.history.current
            creation = ordinals.create_pod(self.set, ordinal, self.history.template_of(revision), revision)
            text = f"create Pod {name} in StatefulSet {self.set.metadata.name} successful"
            note = note_about(STATEFUL_SETS, self.set, "SuccessfulCreate", text)
            return [*volume_claims.create_missing(self.set, name, self.state), creation, note]
        if pod.is_finished:
            return [] if pod.is_terminating else self._delete_pod(pod)
        return volume_claims.maintain_claims(self.set, pod, self.state)

    def _is_updated(self, ordinal: int) -> bool:
        """Whether a new pod of this ordinal gets the new revision.

        It does not below the partition; nor, without one, where the update has not come so far yet.
        """
        if self.rolling is not None:
            return bool(ordinal >= self.start + (self.rolling.partition or 0))
        return not self.is_rolling or ordinal >= self.start + self.set.status.current_replicas

    def _scale_down(self, pod: Pod) -> list[Action]:
        """Delete the highest condemned pod; one that is not available only if no lower pod is unhealthy."""
        if pod.is_terminating:
            return []
        unhealthy = self.marks.names(OrdinalMark.UNHEALTHY)
        is_next = self._is_available(pod) or (bool(unhealthy) and self.ordered.get(unhealthy[0]) is pod)
        return self._delete_pod(pod) if is_next else []

    def _delete_pod(self, pod: Pod) -> list[Action]:
        text = f"delete Pod {pod.metadata.name} in StatefulSet {self.set.metadata.name} successful"
        return [pods.delete_pod(pod), note_about(STATEFUL_SETS, self.set, "SuccessfulDelete", text)]

    def _roll(self) -> list[Action]:
        """Delete one pod of an old revision, and only while those above it are healthy."""
        lowest = self.start + ((self.rolling.partition or 0) if self.rolling is not None else 0)
        holding = self.marks.names(OrdinalMark.HOLDING) if self.is_rolling else ()
        if not holding or holding[-1] < lowest:
            return []
        pod = self.ordered.get(holding[-1])
        if pod is None or pod.is_finished or pod.is_terminating or revision_of(pod) == self.history.update:
            return []
        return self._delete_pod(pod)

    # ---- status

    def build_status(self) -> Document:
        """Terminating pods count as ready while they are; they no longer count for a revision."""
        created, ready = self.marks.count(OrdinalMark.CREATED), self.marks.count(OrdinalMark.READY)
        updated = self.marks.count(Revision(self.history.update))
        is_complete = self.is_rolling and updated == ready == created == self.replicas
        current = self.history.update if is_complete else self.history.current
        counts = {
            "observedGeneration": self.set.metadata.generation,
            "replicas": created,
            "readyReplicas": ready,
            "availableReplicas": self.marks.count(OrdinalMark.AVAILABLE),
            "currentReplicas": self.marks.count(Revision(current)),
            "updatedReplicas": updated,
        }
        always = ("replicas", "availableReplicas")
        status: Document = {name: count for name, count in counts.items() if count or name in always}
        return {**status, "currentRevision": current, "updateRevision": self.history.update, "collisionCount": 0}
