"""The ReplicaSet controller: as many active pods as asked for, and a status that counts them.

Follows kube-controller-manager 1.35. Terminating pods are not active, so they are replaced at once. New pods are made
in one go (at most 500), each after the other has succeeded: that is slow start without its parallel batches. Pods that
nobody controls are adopted, those that no longer match are released. ReplicaFailure is said while pods cannot be made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from wukong.actions import DONE, Action, Create, Outcome, Patch
from wukong.api.kinds import PODS, REPLICA_SETS
from wukong.api.meta import Object, controller_of
from wukong.api.resources import Key, Resource, refers_to
from wukong.embedded.actors import pods
from wukong.embedded.actors.adoption import claims, concerned
from wukong.embedded.actors.events import CreatedPods, deleted, note
from wukong.embedded.actors.owned_pods import OwnedPods, OwnedPodsIndex
from wukong.embedded.store.documents import format_time
from wukong.embedded.world.objects import ReplicaSet, template_of
from wukong.ports import Document, PatchBody
from wukong.state import State
from wukong.state.attempts import Attempt
from wukong.state.controller import KeysOf, PodRight, Watch, each_side

BURST = 500  # pods made or deleted in one go


def controlled_by(resource: Resource) -> KeysOf:
    """Keys of the controllers of this kind that own a changed object."""

    def keys(owned: Object, _: State) -> Iterable[Key]:
        key = controller_key(owned, resource)
        return (key,) if key is not None else ()

    return each_side(keys)


def controller_key(owned: Object, resource: Resource) -> Key | None:
    """The key of the object's controller, if that is of this kind."""
    owner = controller_of(owned.metadata)
    return Key(owned.metadata.namespace, owner.name) if owner is not None and refers_to(owner, resource) else None


class ReplicaSets:
    name = "replicaset"
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset({PodRight.CREATE_REPLICAS, PodRight.DELETE_SURPLUS_REPLICAS})
    watches = (Watch(REPLICA_SETS), Watch(PODS, concerned(ReplicaSet)))

    def __init__(self) -> None:
        self._newborn = CreatedPods(REPLICA_SETS)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        replica_set = state.get(ReplicaSet, key)
        if replica_set is None:
            return DONE
        crew = state.derived(OwnedPodsIndex).of(replica_set)
        told: list[Action] = [*self._newborn.told(replica_set, crew.members)]
        if patches := claims(replica_set, state):
            return Outcome((*told, *patches))
        managed: list[Action] = []
        if replica_set.metadata.deletion_timestamp is None:
            managed = _manage(replica_set, crew, state, now)
        if managed and isinstance(managed[0], Create):
            self._newborn.asked(replica_set, crew.members)
        failure = state.attempts.get(self.name, key) if managed else None
        if failure is not None:
            said = f"Error creating: {_said(failure)}"
            told.append(note(REPLICA_SETS, replica_set, "FailedCreate", said, is_warning=True))
        status = counted(replica_set, crew, now, failure)
        if status != (replica_set.document.get("status") or {}):
            # Said before pods are made: what fails must not keep the status from being true.
            told.append(_writing(key, replica_set, status))
        return Outcome((*told, *managed), crew.next_available(replica_set.spec.min_ready_seconds, now))


def _manage(replica_set: ReplicaSet, crew: OwnedPods, state: State, now: float) -> list[Action]:
    wanted = 1 if replica_set.spec.replicas is None else replica_set.spec.replicas
    missing = wanted - crew.active
    if missing > 0:
        owner = pods.reference("ReplicaSet", "apps/v1", replica_set)
        return [pods.new_pod(template_of(replica_set), replica_set, owner)] * min(missing, BURST)
    if missing == 0:
        return []
    leaving = crew.ranks.leaving(min(-missing, BURST), _related(replica_set, state), now)
    return [*deleted(REPLICA_SETS, replica_set, leaving)]


def _related(replica_set: ReplicaSet, state: State) -> list[Mapping[str, int]]:
    """Of all ReplicaSets of the same owner, how many pods are where: a Deployment's versions crowd a node together.

    One that nobody owns does not look at nodes: kube-controller-manager finds no pods related to it, its own included.
    """
    owner = controller_of(replica_set.metadata)
    if owner is None:
        return []
    found = [state.get(ReplicaSet, key) for key in state.owners.owned_by(owner.uid, REPLICA_SETS)]
    crews = state.derived(OwnedPodsIndex)
    return [crew.nodes for each in found if each is not None and (crew := crews.of(each)).active]


def counted(replica_set: ReplicaSet, crew: OwnedPods, now: float, failure: Attempt | None = None) -> Document:
    """The status as Kubernetes writes it: zeros are left out, but for `replicas`."""
    status: Document = {
        "replicas": crew.active,
        "fullyLabeledReplicas": crew.labelled((template_of(replica_set).get("metadata") or {}).get("labels") or {}),
        "readyReplicas": crew.ready,
        "availableReplicas": crew.available(replica_set.spec.min_ready_seconds, now),
        "observedGeneration": replica_set.metadata.generation,
    }
    made = {name: value for name, value in status.items() if value or name == "replicas"}
    made["terminatingReplicas"] = crew.terminating
    conditions = _conditions(replica_set, now, failure)
    return {**made, "conditions": conditions} if conditions else made


def _conditions(replica_set: ReplicaSet, now: float, failure: Attempt | None) -> list[Document]:
    others = [each for each in replica_set.status.conditions if each["type"] != "ReplicaFailure"]
    if failure is None:
        return others
    before = [each for each in replica_set.status.conditions if each["type"] == "ReplicaFailure"]
    made = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": _said(failure)}
    return [*others, before[0] if before else {**made, "lastTransitionTime": format_time(now)}]


def _said(failure: Attempt) -> str:
    """What the API server said, without what we call it."""
    return failure.error.partition(": ")[2]


def _writing(key: Key, replica_set: ReplicaSet, status: Document) -> Patch:
    """A merge patch; what the status said before and says no more is taken away."""
    return writing_status(REPLICA_SETS, key, replica_set.document.get("status") or {}, status)


def writing_status(resource: Resource, key: Key, before: Document, status: Document) -> Patch:
    gone = {name: None for name in before if name not in status}
    return Patch(resource, key, PatchBody("merge", {"status": {**gone, **status}}, manager=pods.MANAGER), "status")
