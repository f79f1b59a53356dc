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
from wukong.api.meta import Object, controller_of
from wukong.api.resources import RESOURCES, Key
from wukong.embedded.actors import pods
from wukong.embedded.actors.owned_pods import OwnedPodsIndex
from wukong.embedded.world.objects import Pod, ReplicaSet
from wukong.ports import Document, PatchBody
from wukong.semantics.selectors import compile_selector, selects
from wukong.state import State
from wukong.state.controller import KeysOf


class Loose:
    """Active pods, and ReplicaSets, that nobody controls; a follower of the mirror."""

    kinds: ClassVar[frozenset[str]] = frozenset({"Pod", "ReplicaSet"})

    def __init__(self) -> None:
        self.keys: dict[str, set[Key]] = {kind: set() for kind in self.kinds}

    def note(self, kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        if new is not None and controller_of(new.metadata) is None and _is_staying(new):
            self.keys[kind].add(key)
        else:
            self.keys[kind].discard(key)


def _is_staying(found: Object) -> bool:
    return pods.is_active(found) if isinstance(found, Pod) else found.metadata.deletion_timestamp is None


def concerned(owners: type[Workload]) -> KeysOf:
    """Keys of the workloads that a changed pod belongs to, or may belong to."""

    def keys(found: Object, state: State) -> Iterable[Key]:
        controller = controller_of(found.metadata)
        if controller is None:
            return [pods.key_of(owner) for owner in state.all(owners) if _may_own(owner, found)]
        return (Key(found.metadata.namespace, controller.name),) if controller.kind == owners.__name__ else ()

    return keys


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
    found = [state.get(ReplicaSet, key) for key in sorted(state.derived(Loose).keys["ReplicaSet"])]
    reference = pods.reference("Deployment", "apps/v1", deployment)
    return [_patch(each, reference) for each in found if each is not None and _may_own(deployment, each)]


def _loose(owner: Workload, state: State) -> list[Pod]:
    found = [state.get(Pod, key) for key in sorted(state.derived(Loose).keys["Pod"])]
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


def _patch(found: Pod | ReplicaSet, reference: Document) -> Patch:
    body = {"metadata": {"ownerReferences": [reference], "uid": found.metadata.uid}}
    return Patch(RESOURCES[found.kind], pods.key_of(found), PatchBody("strategic", body, manager=pods.MANAGER))
