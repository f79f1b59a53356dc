"""What a scenario says as actions: nodes, manifests, and each moment of the timeline; and the drain of a node.

Pure, called by playing.py. Nothing is done here to pods that Kubernetes itself does: a node that is killed or not ready
only vanishes or falls silent, and the embedded cluster's own controllers see to the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from wukong.actions import DONE, Action, Create, Delete, Evict, Outcome, Patch, Scale
from wukong.api.core import Pod
from wukong.api.kinds import NODES, POD_DISRUPTION_BUDGETS, PODS
from wukong.api.meta import Object, controller_of
from wukong.api.resources import Key
from wukong.embedded.actors.kubelet.behaviour import SILENT
from wukong.embedded.scenario.format.fields import RESOURCE_OF, NodeGroup, Target, TimelineEntry, as_list
from wukong.placement.capacity import OWN_LABEL
from wukong.ports import Document, PatchBody
from wukong.state import Change, State
from wukong.state.controller import PodRight, Watch, each_side

MANAGER = "scenario"
USUAL = {"cpu": "4", "memory": "16Gi", "pods": "110"}


class Drains:
    """`kubectl drain`: evicts what is on these nodes, but for DaemonSets' pods; a budget's no is asked again later."""

    name = "drain"
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset({PodRight.EVICT})

    def __init__(self, is_ours: Callable[[Pod], bool] = lambda pod: True) -> None:
        """On a cluster that others use, too, `is_ours` says which pods may be evicted."""
        self.nodes: set[str] = set()
        self.is_ours = is_ours
        self.watches = (Watch(PODS, each_side(self._leaving)), Watch(POD_DISRUPTION_BUDGETS, self._waiting))

    def _leaving(self, pod: Object, _: State) -> Iterable[Key]:
        assert isinstance(pod, Pod)
        return (Key(pod.metadata.namespace, pod.metadata.name),) if pod.spec.node_name in self.nodes else ()

    def _waiting(self, change: Change, state: State) -> list[Key]:
        """The pods that a changed budget may let go."""
        return [
            key
            for node in sorted(self.nodes)
            for key in sorted(state.pods.on_node(node))
            if key.namespace == change.key.namespace
        ]

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        pod = state.get(Pod, key)
        if pod is None or pod.spec.node_name not in self.nodes or pod.is_terminating or pod.is_finished:
            return DONE
        owner = controller_of(pod.metadata)
        if owner is not None and owner.kind == "DaemonSet":
            return DONE
        return Outcome((Evict(key, pod.metadata.uid),)) if self.is_ours(pod) else DONE


def nodes(groups: Iterable[NodeGroup]) -> list[Action]:
    return [Create(NODES, _node(group, name)) for group in groups for name in group.names()]


def _node(group: NodeGroup, name: str) -> Document:
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    if group.spot is not None:
        labels[OWN_LABEL] = "spot" if group.spot else "on-demand"
    meta: Document = {"name": name, "labels": {**labels, **group.labels}}
    if group.annotations:
        meta["annotations"] = dict(group.annotations)
    capacity = {**USUAL, **{resource: str(amount) for resource, amount in group.capacity.items()}}
    free = {**capacity, **{resource: str(amount) for resource, amount in group.allocatable.items()}}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    spec = {"taints": group.taints} if group.taints else {}
    return {
        "metadata": meta,
        "spec": spec,
        "status": {"capacity": capacity, "allocatable": free, "conditions": [ready]},
    }


def applied(documents: Iterable[Document], present: frozenset[str]) -> list[Action]:
    """Namespaces first: those given, and those that are named and not `present`."""
    documents = list(documents)
    given = [each for each in documents if each["kind"] == "Namespace"]
    known = present | {each["metadata"]["name"] for each in given}
    named = {namespace_of(each) for each in documents if RESOURCE_OF[each["kind"]].namespaced}
    made = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in sorted(named - known)]
    return [_apply(each) for each in (*given, *made, *(each for each in documents if each["kind"] != "Namespace"))]


def _apply(document: Document) -> Action:
    resource = RESOURCE_OF[document["kind"]]
    if resource == NODES:  # who creates a node writes its status, too
        return Create(resource, document)
    key = Key(namespace_of(document) if resource.namespaced else "", document["metadata"]["name"])
    return Patch(resource, key, PatchBody("apply", document, manager=MANAGER, force=True))


def namespace_of(document: Document) -> str:
    return str((document.get("metadata") or {}).get("namespace") or "default")


def actions(moment: TimelineEntry, present: frozenset[str]) -> list[Action]:
    """What happens at this moment. A drain begins with a cordon; the rest of it is `Drains`'."""
    match moment:
        case TimelineEntry(apply=given) if given is not None:
            return applied(as_list(given), present)
        case TimelineEntry(patch=given) if given is not None:
            body = PatchBody(given.type, given.patch, manager=MANAGER)  # type: ignore[arg-type]  # read strictly
            return [Patch(RESOURCE_OF[given.kind], _key(given), body)]
        case TimelineEntry(delete=given) if given is not None:
            return [Delete(RESOURCE_OF[given.kind], _key(given), grace_seconds=given.grace_period_seconds)]
        case TimelineEntry(scale=given) if given is not None:
            return [Scale(RESOURCE_OF[given.kind], _key(given), given.replicas)]
        case TimelineEntry(kill=name) if name is not None:
            return [Delete(NODES, Key("", name))]
        case TimelineEntry(not_ready=name) if name is not None:
            return [_on_node(name, {"metadata": {"annotations": {SILENT: "true"}}})]
        case TimelineEntry(ready=name) if name is not None:
            return [_on_node(name, {"metadata": {"annotations": {SILENT: None}}})]
        case TimelineEntry(uncordon=name) if name is not None:
            return [_on_node(name, {"spec": {"unschedulable": None}})]
    name = moment.cordon or moment.drain
    assert name is not None, moment
    return [_on_node(name, {"spec": {"unschedulable": True}})]


def told(moment: TimelineEntry) -> list[str]:
    """What a moment does, in words, where the story would not tell it anyway: nodes speak for themselves."""
    if moment.apply is not None:
        return [told_of(document) for document in as_list(moment.apply)]
    if moment.patch is not None:
        return [f"patches {moment.patch.kind} {_key(moment.patch)}"]
    if moment.scale is not None:
        return [f"scales {moment.scale.kind} {_key(moment.scale)} to {moment.scale.replicas}"]
    if moment.delete is not None:
        return [f"deletes {moment.delete.kind} {_key(moment.delete)}"]
    return []


def told_of(document: Document) -> str:
    resource = RESOURCE_OF[document["kind"]]
    key = Key(namespace_of(document) if resource.namespaced else "", document["metadata"]["name"])
    return f"applies {resource.kind} {key}"


def _on_node(name: str, body: Document) -> Patch:
    return Patch(NODES, Key("", name), PatchBody("merge", body, manager=MANAGER))


def _key(target: Target) -> Key:
    return Key(target.namespace if RESOURCE_OF[target.kind].namespaced else "", target.name)
