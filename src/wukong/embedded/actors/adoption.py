"""Adoption and release: a workload becomes the controller of orphans it selects, and lets go what it no longer selects.

Used by the controllers of ReplicaSets, StatefulSets and DaemonSets; Deployments adopt ReplicaSets likewise. Follows
kube-controller-manager's ControllerRefManager: only active pods are adopted or released, and a workload that is being
deleted adopts nothing. A sync that adopts or releases does nothing else: the next one sees the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from wukong.actions import Patch
from wukong.api.apps import Workload
from wukong.api.kinds import DEPLOYMENTS, PODS, REPLICA_SETS
from wukong.api.meta import Object, controller_of
from wukong.api.resources import Key, Resource, key_of
from wukong.embedded.actors import pods
from wukong.embedded.actors.owned_pods import OwnedPodsIndex, selects_labels
from wukong.embedded.world.objects import Pod, ReplicaSet
from wukong.ports import Document, PatchBody
from wukong.state import State


class OrphanIndex:
    """Active pods, and ReplicaSets that are not being deleted, without a controller. A derived index of the mirror."""

    kinds: ClassVar[frozenset[str]] = frozenset({PODS.group_kind, REPLICA_SETS.group_kind})

    def __init__(self) -> None:
        self.keys: dict[str, set[Key]] = {kind: set() for kind in self.kinds}

    def fork(self) -> OrphanIndex:
        copy = OrphanIndex()
        copy.keys = {kind: set(keys) for kind, keys in self.keys.items()}
        return copy

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        if new is not None and controller_of(new.metadata) is None and _is_adoptable(new):
            self.keys[group_kind].add(key)
        else:
            self.keys[group_kind].discard(key)


def _is_adoptable(subject: Object) -> bool:
    return pods.is_active(subject) if isinstance(subject, Pod) else subject.metadata.deletion_timestamp is None


def claim_pods(
    resource: Resource, owner: Workload, state: State, can_adopt: Callable[[Pod], bool] | None = None
) -> list[Patch]:
    """Release the owner's pods that it does not select, and adopt the orphans that it selects and `can_adopt`."""
    if owner.metadata.deletion_timestamp is not None:
        return []
    adopted = [pod for pod in _find_orphans(owner, state) if can_adopt is None or can_adopt(pod)]
    return [
        *(
            _patch_owners(pod, {"$patch": "delete", "uid": owner.metadata.uid})
            for pod in _find_unselected(owner, state)
        ),
        *(_patch_owners(pod, pods.reference_to(resource, owner)) for pod in adopted),
    ]


def adopt_replica_sets(deployment: Workload, state: State) -> list[Patch]:
    """Adopt the orphaned ReplicaSets that the Deployment selects."""
    if deployment.metadata.deletion_timestamp is not None:
        return []
    orphans = [state.get(ReplicaSet, key) for key in sorted(state.index_of(OrphanIndex).keys[REPLICA_SETS.group_kind])]
    return [
        _patch_owners(replica_set, pods.reference_to(DEPLOYMENTS, deployment))
        for replica_set in orphans
        if replica_set is not None and may_own(deployment, replica_set)
    ]


def may_own(owner: Workload, subject: Object) -> bool:
    """Whether the owner selects an object of its own namespace, and is not being deleted."""
    is_in_reach = owner.metadata.namespace == subject.metadata.namespace and owner.metadata.deletion_timestamp is None
    return is_in_reach and selects_labels(owner.spec.selector, subject.metadata.labels)


def _find_orphans(owner: Workload, state: State) -> list[Pod]:
    orphans = [state.get(Pod, key) for key in sorted(state.index_of(OrphanIndex).keys[PODS.group_kind])]
    return [pod for pod in orphans if pod is not None and may_own(owner, pod)]


def _find_unselected(owner: Workload, state: State) -> list[Pod]:
    """The owner's active pods that it does not select."""
    keys = state.index_of(OwnedPodsIndex).of(owner).find_unselected(owner.spec.selector)
    return [pod for key in keys if (pod := state.get(Pod, key)) is not None]


def _patch_owners(subject: Pod | ReplicaSet, reference: Document) -> Patch:
    body = {"metadata": {"ownerReferences": [reference], "uid": subject.metadata.uid}}
    resource = PODS if isinstance(subject, Pod) else REPLICA_SETS
    return Patch(resource, key_of(subject), PatchBody("strategic", body, manager=pods.MANAGER))
