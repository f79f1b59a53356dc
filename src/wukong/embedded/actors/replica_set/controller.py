"""The ReplicaSet controller: as many active pods as spec.replicas says, and a status that counts them.

Follows kube-controller-manager 1.35. Terminating pods are not active, so they are replaced at once. New pods are
created in one go (at most 500), each after the one before has succeeded: that is slow start without its parallel
batches. Orphans that match are adopted, pods that no longer match are released. The condition ReplicaFailure stands
while pods cannot be created.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from wukong.actions import DONE, Action, Create, Outcome
from wukong.api.kinds import PODS, REPLICA_SETS
from wukong.api.meta import controller_of
from wukong.api.resources import Key
from wukong.embedded.actors import pods
from wukong.embedded.actors.adoption import claim_pods
from wukong.embedded.actors.backoff import CONTROLLER_BACKOFF
from wukong.embedded.actors.events import (
    CreatedPods,
    delete_pods,
    find_creation_failure,
    message_of,
    note_failed_create,
)
from wukong.embedded.actors.owned_pods import OwnedPods, OwnedPodsIndex
from wukong.embedded.actors.status_patch import patch_status
from wukong.embedded.actors.watch_keys import keys_of_owners
from wukong.embedded.store.documents import format_time
from wukong.embedded.world.objects import ReplicaSet, template_of
from wukong.ports import Document
from wukong.state import State
from wukong.state.attempts import Attempt
from wukong.state.controller import PodRight, Watch

BURST = 500  # pods created or deleted in one go


class ReplicaSets:
    name = "replicaset"
    backoff = CONTROLLER_BACKOFF
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset({PodRight.CREATE_REPLICAS, PodRight.DELETE_SURPLUS_REPLICAS})
    watches = (Watch(REPLICA_SETS), Watch(PODS, keys_of_owners(ReplicaSet), is_secondary=True))

    def __init__(self) -> None:
        self._created_pods = CreatedPods(REPLICA_SETS)

    def copy_memory(self, source: ReplicaSets, _: State) -> None:
        self._created_pods.copy_memory(source._created_pods)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        replica_set = state.get(ReplicaSet, key)
        if replica_set is None:
            return DONE
        owned = state.index_of(OwnedPodsIndex).of(replica_set)
        actions: list[Action] = [*self._created_pods.note_created(replica_set, state)]
        if patches := claim_pods(REPLICA_SETS, replica_set, state):
            return Outcome((*actions, *patches))
        pod_actions: list[Action] = []
        if replica_set.metadata.deletion_timestamp is None:
            pod_actions = _manage(replica_set, owned, state, now)
        if pod_actions and isinstance(pod_actions[0], Create):
            self._created_pods.remember(replica_set, state)
        failure = find_creation_failure(state.attempts.get(self.name, key), pod_actions)
        if failure is not None:
            actions.append(note_failed_create(REPLICA_SETS, replica_set, failure))
        status, before = build_status(replica_set, owned, now, failure), replica_set.document.get("status") or {}
        if status != before:
            # Written before pods are created: their failure must not keep the status from being true.
            actions.append(patch_status(REPLICA_SETS, key, before, status))
        requeue_after = owned.seconds_to_next_available(replica_set.spec.min_ready_seconds, now)
        return Outcome((*actions, *pod_actions), requeue_after)


def _manage(replica_set: ReplicaSet, owned: OwnedPods, state: State, now: float) -> list[Action]:
    """Create the pods that are missing, or delete those that are too many."""
    wanted = 1 if replica_set.spec.replicas is None else replica_set.spec.replicas
    missing = wanted - owned.active
    if missing > 0:
        return [pods.create_pod(REPLICA_SETS, replica_set, template_of(replica_set))] * min(missing, BURST)
    if missing == 0:
        return []
    surplus = owned.ranking.choose_pods(min(-missing, BURST), _count_related_pods(replica_set, state), now)
    return [*delete_pods(REPLICA_SETS, replica_set, surplus)]


def _count_related_pods(replica_set: ReplicaSet, state: State) -> list[Mapping[str, int]]:
    """How many pods each ReplicaSet of the same owner has on which node: a Deployment's versions share nodes.

    One without an owner does not look at nodes: kube-controller-manager finds no pods related to it, not even its own.
    """
    owner = controller_of(replica_set.metadata)
    if owner is None:
        return []
    related = [state.get(ReplicaSet, key) for key in state.owners.owned_by(owner.uid, REPLICA_SETS)]
    index = state.index_of(OwnedPodsIndex)
    return [owned.nodes for sibling in related if sibling is not None and (owned := index.of(sibling)).active]


def build_status(replica_set: ReplicaSet, owned: OwnedPods, now: float, failure: Attempt | None = None) -> Document:
    """The status as Kubernetes writes it: zeros are left out, but for `replicas`."""
    labels = (template_of(replica_set).get("metadata") or {}).get("labels") or {}
    counts: Document = {
        "replicas": owned.active,
        "fullyLabeledReplicas": owned.count_labelled(labels),
        "readyReplicas": owned.ready,
        "availableReplicas": owned.count_available(replica_set.spec.min_ready_seconds, now),
        "observedGeneration": replica_set.metadata.generation,
    }
    status = {name: value for name, value in counts.items() if value or name == "replicas"}
    status["terminatingReplicas"] = owned.terminating
    conditions = _build_conditions(replica_set, now, failure)
    return {**status, "conditions": conditions} if conditions else status


def _build_conditions(replica_set: ReplicaSet, now: float, failure: Attempt | None) -> list[Document]:
    before = replica_set.status.conditions
    others = [condition for condition in before if condition["type"] != "ReplicaFailure"]
    if failure is None:
        return others
    standing = [condition for condition in before if condition["type"] == "ReplicaFailure"]
    new = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message_of(failure)}
    return [*others, standing[0] if standing else {**new, "lastTransitionTime": format_time(now)}]
