"""What a scenario says as actions: nodes, manifests, and each entry of the timeline; and the drain of a node.

Pure, called by course.py. Nothing is done here to pods that Kubernetes itself does: a node that is killed or not ready
only vanishes or falls silent, and the cluster's own controllers see to the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar

from wukong.actions import DONE, Action, Create, Delete, Evict, Outcome, Patch, Scale
from wukong.api.core import Pod
from wukong.api.kinds import NODE_USAGES, NODES, POD_DISRUPTION_BUDGETS, PODS, WORKLOAD_USAGES
from wukong.api.meta import Object, controller_of
from wukong.api.node_groups import NodeGroup
from wukong.api.resources import Key
from wukong.api.unknown_fields import drop_unknown_fields
from wukong.embedded.actors.autoscaler.new_node import build_node
from wukong.embedded.actors.kubelet.behaviour import FORMER_SILENT, SILENT
from wukong.embedded.actors.watch_keys import has_same_node
from wukong.embedded.scenario.format.fields import (
    NodeEntry,
    Target,
    TimelineEntry,
    UsageTarget,
    as_list,
    document_resource,
)
from wukong.embedded.store.documents import without_fields
from wukong.placement.capacity import OWN_LABEL
from wukong.ports import Document, PatchBody
from wukong.state import Change, State
from wukong.state.controller import PodRight, Watch, each_side_unless

MANAGER = "scenario"
CORDON: Document = {"spec": {"unschedulable": True}}
UNCORDON: Document = {"spec": {"unschedulable": None}}


class Drains:
    """`kubectl drain`: evicts the pods on these nodes but DaemonSets'; refused ones again when a budget changes."""

    name = "drain"
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset({PodRight.EVICT})

    def __init__(self, is_ours: Callable[[Pod], bool] = lambda pod: True) -> None:
        """On a cluster that others use, too, `is_ours` says which pods may be evicted."""
        self.nodes: set[str] = set()
        self.is_ours = is_ours
        self.watches = (
            Watch(PODS, each_side_unless(has_same_node)(self._pod_to_evict)),
            Watch(POD_DISRUPTION_BUDGETS, self._pods_to_retry),
        )

    def copy_memory(self, source: Drains, _: State) -> None:
        self.nodes = set(source.nodes)

    def _pod_to_evict(self, pod: Object, _: State) -> Iterable[Key]:
        assert isinstance(pod, Pod)
        return (Key(pod.metadata.namespace, pod.metadata.name),) if pod.spec.node_name in self.nodes else ()

    def _pods_to_retry(self, change: Change, state: State) -> list[Key]:
        """The pods that a changed budget may allow to be evicted."""
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


def create_nodes(entries: Iterable[NodeEntry], node_groups: Iterable[NodeGroup] = ()) -> list[Action]:
    """Return the actions that create every node of the entries; those of a node group are like its template."""
    groups = {group.name: group for group in node_groups}
    return [Create(NODES, _build_node(entry, name, groups)) for entry in entries for name in entry.names()]


def _build_node(entry: NodeEntry, name: str, groups: Mapping[str, NodeGroup]) -> Document:
    node = build_node(groups.get(entry.group), name)
    meta, spec, status = node["metadata"], node["spec"], node["status"]
    if entry.spot is not None:
        meta["labels"][OWN_LABEL] = "spot" if entry.spot else "on-demand"
    meta["labels"] |= entry.labels
    if entry.annotations:
        meta["annotations"] = {**meta.get("annotations", {}), **entry.annotations}
    capacity = {resource: str(amount) for resource, amount in entry.capacity.items()}
    allocatable = {resource: str(amount) for resource, amount in entry.allocatable.items()}
    status["capacity"] |= capacity
    status["allocatable"] |= {**capacity, **allocatable}
    if entry.taints:
        spec["taints"] = entry.taints
    return node


def apply_documents(documents: Iterable[Document], present_namespaces: frozenset[str]) -> list[Action]:
    """Return the actions that apply the documents: namespaces first, also those that are named and not present."""
    documents = list(documents)
    namespaces = [document for document in documents if document["kind"] == "Namespace"]
    others = [document for document in documents if document["kind"] != "Namespace"]
    known = present_namespaces | {document["metadata"]["name"] for document in namespaces}
    named = {namespace_of(document) for document in documents if document_resource(document).namespaced}
    missing = [bare_namespace(name) for name in sorted(named - known)]
    return [_apply(document) for document in (*namespaces, *missing, *others)]


def bare_namespace(name: str) -> Document:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _apply(document: Document) -> Action:
    resource = document_resource(document)
    if resource == NODES:  # who creates a node writes its status, too
        return Create(resource, document)
    known_part = drop_unknown_fields(document)  # whoever read the manifest has warned of the rest
    return Patch(resource, key_of(document), PatchBody("apply", known_part, manager=MANAGER, force=True))


def namespace_of(document: Document) -> str:
    return str((document.get("metadata") or {}).get("namespace") or "default")


def key_of(document: Document) -> Key:
    is_namespaced = document_resource(document).namespaced
    return Key(namespace_of(document) if is_namespaced else "", document["metadata"]["name"])


def target_key(target: Target) -> Key:
    """The key of the object that a timeline entry patches, scales or deletes."""
    return Key(target.namespace if target.resource.namespaced else "", target.name)


def build_actions(entry: TimelineEntry, present_namespaces: frozenset[str]) -> list[Action]:
    """Return what a timeline entry does, whose nodes have names (node_selection.py).

    A drain begins with a cordon; the rest of it is up to `Drains`.
    """
    match entry:
        case TimelineEntry(apply=documents) if documents is not None:
            return apply_documents(as_list(documents), present_namespaces)
        case TimelineEntry(patch=patch) if patch is not None:
            body = PatchBody(patch.type, patch.patch, manager=MANAGER)  # type: ignore[arg-type]  # read strictly
            return [Patch(patch.resource, target_key(patch), body)]
        case TimelineEntry(delete=delete) if delete is not None:
            return [Delete(delete.resource, target_key(delete), grace_seconds=delete.grace_period_seconds)]
        case TimelineEntry(scale=scale) if scale is not None:
            return [Scale(scale.resource, target_key(scale), scale.replicas, manager=MANAGER)]
        case TimelineEntry(kill=str(name)):
            return [Delete(NODES, Key("", name))]
        case TimelineEntry(not_ready=str(name)):
            return [_patch_node(name, {"metadata": {"annotations": {SILENT: "true"}}})]
        case TimelineEntry(ready=str(name)):
            return [_patch_node(name, {"metadata": {"annotations": {SILENT: None, FORMER_SILENT: None}}})]
        case TimelineEntry(uncordon=str(name)):
            return [uncordon(name)]
        case TimelineEntry(usage=usage) if usage is not None:
            return [_apply_usage(usage)]
    cordoned = entry.cordon or entry.drain
    assert isinstance(cordoned, str), entry
    return [_patch_node(cordoned, CORDON)]


def _apply_workload_usage(usage: UsageTarget, percents: dict[str, float]) -> Patch:
    namespace, _, name = usage.workload.rpartition("/")
    key = Key(namespace or "default", name)
    head = {"apiVersion": WORKLOAD_USAGES.api_version, "kind": WORKLOAD_USAGES.kind, "metadata": {"name": name}}
    totals = {resource: str(amount) for resource, amount in usage.total.items()}
    body = {**head, "workloadKind": usage.kind, "percents": percents, "totals": totals}
    return Patch(WORKLOAD_USAGES, key, PatchBody("apply", body, manager=MANAGER, force=True))


def _apply_usage(usage: UsageTarget) -> Patch:
    """Applied whole: what was known before and is not said now is not known any more. It holds until the next one."""
    percents = {name: percent for name, percent in _percents_of(usage).items() if percent is not None}
    if usage.workload:
        return _apply_workload_usage(usage, percents)
    head = {"apiVersion": NODE_USAGES.api_version, "kind": NODE_USAGES.kind, "metadata": {"name": usage.node}}
    patch = PatchBody("apply", {**head, **percents}, manager=MANAGER, force=True)
    return Patch(NODE_USAGES, Key("", usage.node), patch)


def _percents_of(usage: UsageTarget) -> dict[str, float | None]:
    return {"cpu": usage.cpu, "memory": usage.memory, "storage": usage.storage}


def uncordon(name: str) -> Patch:
    return _patch_node(name, UNCORDON)


def cordoned_node(action: Action) -> str | None:
    """The name of the node that this action cordons; None if it does something else."""
    return _node_patched_with(CORDON, action)


def uncordoned_node(action: Action) -> str | None:
    """The name of the node that this action uncordons; None if it does something else."""
    return _node_patched_with(UNCORDON, action)


def _node_patched_with(body: Document, action: Action) -> str | None:
    is_so = isinstance(action, Patch) and action.resource == NODES and action.patch.body == body
    return action.key.name if isinstance(action, Patch) and is_so else None


def describe_entry(entry: TimelineEntry) -> list[str]:
    """What a timeline entry does, in words, where no other event says it: nodes have events of their own."""
    if entry.apply is not None:
        return [describe_document(document) for document in as_list(entry.apply)]
    if entry.patch is not None:
        return [f"patches {entry.patch.kind} {target_key(entry.patch)}"]
    if entry.scale is not None:
        return [f"scales {entry.scale.kind} {target_key(entry.scale)} to {entry.scale.replicas}"]
    if entry.delete is not None:
        return [f"deletes {entry.delete.kind} {target_key(entry.delete)}"]
    if entry.usage is not None:
        known = [f"{percent:g} % {name}" for name, percent in _percents_of(entry.usage).items() if percent is not None]
        known += [f"{amount} {name} in all" for name, amount in entry.usage.total.items()]
        subject = f"workload {entry.usage.workload}" if entry.usage.workload else f"node {entry.usage.node}"
        return [f"{subject} uses {', '.join(known)}" if known else f"how much {subject} uses is not known"]
    return []


def describe_document(document: Document) -> str:
    return f"applies {document['kind']} {key_of(document)}"


def find_object(document: Document, state: State) -> Object | None:
    """The object of this name, if it is there."""
    key = key_of(document)
    return state.objects.get(document_resource(document).group_kind, {}).get(key)


def describe_apply(document: Document, old: Object | None, new: Object | None) -> str:
    """What applying a document to this object did: nothing, or to how many replicas, where that changes."""
    text = describe_document(document)
    if old is None or new is None:
        return text
    if _content_of(old) == _content_of(new):
        return f"{text}: unchanged"
    counts = [getattr(getattr(subject, "spec", None), "replicas", None) for subject in (old, new)]
    if counts[0] == counts[1]:
        return text
    hint = "" if "replicas" in document.get("spec", {}) else " (the manifest does not say how many)"
    return f"{text}: replicas {counts[0]} → {counts[1]}{hint}"


def _content_of(subject: Object) -> object:
    """All of an object but who wrote it when."""
    document: Document | None = getattr(subject, "document", None)
    if document is None:
        return subject
    bookkeeping = ("managedFields", "resourceVersion")
    return without_fields(document, "metadata"), without_fields(document["metadata"], *bookkeeping)


def _patch_node(name: str, body: Document) -> Patch:
    return Patch(NODES, Key("", name), PatchBody("merge", body, manager=MANAGER))
