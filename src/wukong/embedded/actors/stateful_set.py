"""The StatefulSet controller: pods with names, made in order, deleted in reverse, updated from the highest ordinal.

    OrderedReady: each waits for its predecessor to be available; Parallel: all at once (updates keep their order)
    RollingUpdate: pods of an old revision go, highest ordinal first down to `partition`, one at a time
    OnDelete: whoever is deleted comes back with the new revision

Follows kube-controller-manager 1.35 without volume claims and without maxUnavailable. Revisions are kept as
ControllerRevisions, for what is below the partition comes back as it was.
"""

from __future__ import annotations

from wukong.actions import DONE, Action, Create, Outcome
from wukong.api.resources import RESOURCES, Key
from wukong.embedded.actors import ordinals, pods
from wukong.embedded.actors.replica_set import controlled_by, writing_status
from wukong.embedded.actors.revisions import hash_of
from wukong.embedded.objects import CONTROLLER_REVISIONS, ControllerRevision, Pod, StatefulSet, template_of
from wukong.ports import Document
from wukong.state import State
from wukong.state.contract import Watch

STATEFUL_SETS = RESOURCES["StatefulSet"]


class StatefulSets:
    name = "statefulset"
    watches = (
        Watch(STATEFUL_SETS),
        Watch(pods.PODS, controlled_by("StatefulSet")),
        Watch(CONTROLLER_REVISIONS, controlled_by("StatefulSet"), ControllerRevision),
    )

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        stateful_set = state.get(StatefulSet, key)
        if stateful_set is None:
            return DONE
        sync = _Sync(stateful_set, state, now)
        actions: list[Action] = []
        if stateful_set.metadata.deletion_timestamp is None:
            actions = [*sync.recorded(), *sync.next_steps()]
        status, before = sync.counted(), stateful_set.document.get("status") or {}
        if status != before:
            actions.append(writing_status(STATEFUL_SETS, key, before, status))
        again = pods.next_available(sync.owned, stateful_set.spec.min_ready_seconds, now)
        return Outcome(tuple(actions), again)


class _Sync:
    def __init__(self, stateful_set: StatefulSet, state: State, now: float) -> None:
        self.set, self.state, self.now = stateful_set, state, now
        self.owned = pods.owned_pods(state, stateful_set)
        self.replicas = 1 if stateful_set.spec.replicas is None else stateful_set.spec.replicas
        start = (stateful_set.document["spec"].get("ordinals") or {}).get("start", 0)
        self.range = range(start, start + self.replicas)
        self.by_ordinal = {ordinals.ordinal_of(stateful_set, pod): pod for pod in self.owned}
        self.update = f"{stateful_set.metadata.name}-{hash_of(template_of(stateful_set))}"
        self.current = stateful_set.status.current_revision or self.update
        strategy = stateful_set.spec.update_strategy
        self.is_rolling = strategy is None or strategy.type in ("", "RollingUpdate")
        rolling = strategy.rolling_update if strategy else None
        self.partition = (rolling.partition or 0) if rolling else 0
        self.is_ordered = stateful_set.spec.pod_management_policy != "Parallel"

    def is_available(self, pod: Pod) -> bool:
        return pods.is_available(pod, self.set.spec.min_ready_seconds, self.now)

    # ---- revisions

    def recorded(self) -> list[Action]:
        """The revision asked for, if nobody has kept it yet."""
        key = Key(self.set.metadata.namespace, self.update)
        if self.state.get(ControllerRevision, key) is not None:
            return []
        known = [it.revision for it in self.state.all(ControllerRevision) if pods.is_controlled_by(it, self.set)]
        meta = {"name": key.name, "ownerReferences": [pods.reference("StatefulSet", "apps/v1", self.set)]}
        body = {
            "metadata": meta,
            "data": {"spec": {"template": template_of(self.set)}},
            "revision": max(known, default=0) + 1,
        }
        return [Create(CONTROLLER_REVISIONS, body, key.namespace)]

    def _template(self, revision: str) -> Document:
        kept = self.state.get(ControllerRevision, Key(self.set.metadata.namespace, revision))
        template: Document = template_of(self.set) if kept is None else kept.data["spec"]["template"]
        return template

    def _pod(self, ordinal: int) -> Create:
        """Below the partition, and where nothing rolls, a pod comes back as it was."""
        is_new = self.current == self.update or (self.is_rolling and ordinal >= self.range.start + self.partition)
        if not self.is_rolling:
            is_new = self.current == self.update or ordinal in self.by_ordinal or self._has_begun()
        revision = self.update if is_new else self.current
        return ordinals.new_pod(self.set, ordinal, self._template(revision), revision)

    def _has_begun(self) -> bool:
        return bool(self.owned)

    # ---- what to do next

    def next_steps(self) -> list[Action]:
        made: list[Action] = []
        for ordinal in self.range:
            pod = self.by_ordinal.get(ordinal)
            if pod is None:
                made.append(self._pod(ordinal))
            elif pod.is_finished and not pod.is_terminating:
                made.append(pods.deletion(pod))
            if self.is_ordered and (pod is None or pod.is_terminating or not self.is_available(pod) or pod.is_finished):
                return made
        for ordinal in sorted(self.by_ordinal.keys() - set(self.range), reverse=True):
            pod = self.by_ordinal[ordinal]
            if not pod.is_terminating:
                made.append(pods.deletion(pod))
            if self.is_ordered:
                return made
        return made or self._rolled()

    def _rolled(self) -> list[Action]:
        """One pod of an old revision, and only while those above it are well."""
        if not self.is_rolling:
            return []
        for ordinal in sorted(self.range, reverse=True):
            if ordinal < self.range.start + self.partition:
                break
            pod = self.by_ordinal.get(ordinal)
            if pod is None or pod.is_terminating:
                return []
            if ordinals.revision_of(pod) != self.update:
                return [pods.deletion(pod)]
            if not self.is_available(pod):
                return []
        return []

    # ---- status

    def counted(self) -> Document:
        there = [pod for pod in self.owned if pod.status.phase]
        staying = [pod for pod in there if not pod.is_terminating]
        updated = sum(ordinals.revision_of(pod) == self.update for pod in staying)
        ready = sum(pods.is_ready(pod) for pod in staying)
        is_over = self.is_rolling and updated == len(there) == self.replicas == ready and self.partition == 0
        current = self.update if is_over else self.current
        counts = {
            "observedGeneration": self.set.metadata.generation,
            "replicas": len(there),
            "readyReplicas": ready,
            "availableReplicas": sum(self.is_available(pod) for pod in staying),
            "currentReplicas": sum(ordinals.revision_of(pod) == current for pod in staying),
            "updatedReplicas": updated,
        }
        made: Document = {name: n for name, n in counts.items() if n or name in ("replicas", "availableReplicas")}
        return {**made, "currentRevision": current, "updateRevision": self.update, "collisionCount": 0}
