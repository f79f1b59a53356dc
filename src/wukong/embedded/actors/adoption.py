"""Pods without a controller and whose they are: adopted by selector, released when their labels no longer match.

Used by the controllers of ReplicaSets, StatefulSets and DaemonSets; Deployments adopt ReplicaSets likewise. Follows
kube-controller-manager's ControllerRefManager: only active pods are adopted or released, and a workload that is being
deleted adopts nobody. A sync that adopts or releases leaves the rest to the next, which sees all as it is then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from wukong.actions import Patch
from wukong.api.apps import Workload
from wukong.api.kinds import KINDS, PODS, REPLICA_SETS
from wukong.api.meta import Object, controller_of
from wukong.api.resources import Key, key_of, refers_to
from wukong.embedded.actors import pods
from wukong.embedded.actors.owned_pods import OwnedPodsIndex
from wukong.embedded.world.objects import Pod, ReplicaSet
from wukong.ports import Document, PatchBody
from wukong.semantics.selectors import compile_selector, selects
from wukong.state import State
from wukong.state.controller import KeysOf, each_side


class Loose:
    """Active pods, and ReplicaSets, that nobody controls; a follower of the mirror."""

    kinds: ClassVar[frozenset[str]] = frozenset({PODS.group_kind, REPLICA_SETS.group_kind})

    def __init__(self) -> None:
        self.keys: dict[str, set[Key]] = {kind: set() for kind in self.kinds}

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        if new is not None and controller_of(new.metadata) is None and _is_staying(new):
            self.keys[group_kind].add(key)
        else:
            self.keys[group_kind].discard(key)


def _is_staying(found: Object) -> bool:
    return pods.is_active(found) if isinstance(found, Pod) else found.metadata.deletion_timestamp is None


def concerned(owners: type[Workload]) -> KeysOf:
    """Keys of the workloads that a changed pod belongs to, or may belong to."""

    entry = KINDS.of_struct(owners)
    assert entry is not None, f"{owners.__name__} is not in the table of kinds"

    def keys(owned: Object, state: State) -> Iterable[Key]:
        controller = controller_of(owned.metadata)
        if controller is None:
            return [key_of(owner) for owner in state.all(owners) if _may_own(owner, owned)]
        return (Key(owned.metadata.namespace, controller.name),) if refers_to(controller, entry.resource) else ()

    return each_side(keys)


def anybody(_: Pod) -> bool:
    return True


def claims(owner: Workload, state: State, suits: Callable[[Pod], bool] = anybody) -> list[Patch]:
    """What makes those that match its own, and the others nobody's. `suits` is asked before a pod is adopted."""
    if owner.metadata.deletion_timestamp is not None:
        return []
    reference = pods.reference(owner.kind, "apps/v1", owner)
    adopted = [pod for pod in _loose(owner, state) if suits(pod)]
    return [
        *(_patch(pod, {"$patch": "delete", "uid": owner.metadata.uid}) for pod in _astray(owner, state)),
        *(_patch(pod, reference) for pod in adopted),
    ]


def adopted_sets(deployment: Workload, state: State) -> list[Patch]:
    """ReplicaSets that a Deployment of the same labels left behind."""
    if deployment.metadata.deletion_timestamp is not None:
        return []
    found = [state.get(ReplicaSet, key) for key in sorted(state.derived(Loose).keys[REPLICA_SETS.group_kind])]
    reference = pods.reference("Deployment", "apps/v1", deployment)
    return [_patch(each, reference) for each in found if each is not None and _may_own(deployment, each)]


def _loose(owner: Workload, state: State) -> list[Pod]:
    found = [state.get(Pod, key) for key in sorted(state.derived(Loose).keys[PODS.group_kind])]
    return [pod for pod in found if pod is not None and _may_own(owner, pod)]


def _astray(owner: Workload, state: State) -> list[Pod]:
    """Pods of the same labels are asked about once."""
    crew = state.derived(OwnedPodsIndex).of(owner)
    wrong = {labels for labels in crew.labels if not _selects(owner, dict(labels))}
    if not wrong:
        return []
    keys = sorted(key for key, member in crew.members.items() if member.is_active and member.labels in wrong)
    return [pod for key in keys if (pod := state.get(Pod, key)) is not None]


def _may_own(owner: Workload, pod: Object) -> bool:
    is_near = owner.metadata.namespace == pod.metadata.namespace and owner.metadata.deletion_timestamp is None
    return is_near and _selects(owner, pod.metadata.labels)


def _selects(owner: Workload, labels: dict[str, str]) -> bool:
    selector = owner.spec.selector
    if selector is not None and not selector.match_expressions:  # nearly always
        return selector.match_labels.items() <= labels.items()
    return selects(compile_selector(selector), labels)


def _patch(owned: Pod | ReplicaSet, reference: Document) -> Patch:
    body = {"metadata": {"ownerReferences": [reference], "uid": owned.metadata.uid}}
    resource = PODS if isinstance(owned, Pod) else REPLICA_SETS
    return Patch(resource, key_of(owned), PatchBody("strategic", body, manager=pods.MANAGER))
