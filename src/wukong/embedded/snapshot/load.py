"""Completes a snapshot of another cluster so that it can be played on; nothing happens merely because it was loaded.

    documents ─► completed (what a server would have filled in) ─► owners linked ─► revisions named ─► ready to restore

Called by app/snapshots.py. What a snapshot does not hold is noted, never made up silently. Pure: documents in,
documents out; the store's `restore` takes them in.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from wukong.api.field_types import type_of
from wukong.api.kind_table import Kind
from wukong.api.kinds import (
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    JOBS,
    KINDS,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
)
from wukong.api.resources import Resource
from wukong.cluster.document_shapes import find_time_problems, is_time
from wukong.cluster.reduction import restore_omitted_fields
from wukong.embedded.actors.kubelet.behaviour import SILENT
from wukong.embedded.snapshot import machines, pods, revisions, rollout_versions
from wukong.embedded.snapshot.revisions import DocumentsByKind
from wukong.embedded.store.documents import condition_of, format_time, meta_of, parse_time, value_at, without_fields
from wukong.embedded.store.stored_form import store_form_of
from wukong.embedded.world.clock import START
from wukong.errors import ClusterError, InputError
from wukong.ports import Document

_TIMES = ("lastTransitionTime", "lastUpdateTime", "lastHeartbeatTime")
_MAX_NAMED = 3  # in one note


class LoadedSnapshot(msgspec.Struct):
    """What to restore, kind by kind; when it was taken; pods that stay as they are; notes for people."""

    objects: list[tuple[Resource, list[Document]]]
    now: float
    stuck_pods: frozenset[str] = frozenset()  # their uids
    notes: list[str] = []
    node_groups: list[Document] = []  # what tells of the groups that its nodes come from: nothing to restore


def load_snapshot(documents: Iterable[Document], now: float | None = None) -> LoadedSnapshot:
    """`now`: when the snapshot was taken, if that is known; else it is when the latest of its objects changed."""
    by_kind: DocumentsByKind = {kind.group_kind: [] for kind in KINDS if kind.loads}
    for document in documents:
        kind = kind_of(document)
        restore_omitted_fields(document)  # older snapshots lack them
        by_kind[kind.group_kind].append(_complete_head(document, kind.resource))
    taken = max([*_list_times(by_kind), now or 0.0]) or START  # never before what it shows
    now = taken + 1.0  # the API's times are whole seconds: what was just then is past
    notes = [*_drop_without_templates(by_kind), *_drop_without_ordinals(by_kind), *_link_owners(by_kind)]
    _fill_in(by_kind, taken)
    notes += revisions.add_missing_revisions(by_kind)
    machines.complete_machines(by_kind)
    rollout_versions.rename_versions(by_kind)
    stuck_pods, more_notes = pods.find_stuck(by_kind[PODS.group_kind], now)
    notes += [*more_notes, *_note_workloads_without_pods(by_kind)]
    _add_namespaces(by_kind)
    objects = [(KINDS[kind].resource, documents) for kind, documents in by_kind.items() if documents]
    return LoadedSnapshot(objects, now, stuck_pods, notes)


def kind_of(document: Document) -> Kind:
    """The kind of a document that can be loaded."""
    kind = KINDS.of_document(document["kind"], document.get("apiVersion") or "")
    assert kind is not None, f"{document['kind']} is not in the table of kinds"
    assert kind.loads, f"{kind.group_kind} is not loaded"
    return kind


def _complete_head(document: Document, resource: Resource) -> Document:
    """Return a copy whose metadata, and nothing else of it, may be changed."""
    meta = without_fields(meta_of(document), "managedFields", "resourceVersion", "selfLink")
    if resource.namespaced and "namespace" not in meta:
        meta["namespace"] = "default"
    if not meta.get("uid"):
        place = resource.plural if KINDS[resource.group_kind].is_built_in else f"{resource.plural}.{resource.group}"
        meta["uid"] = "-".join(filter(None, ("snapshot", place, meta.get("namespace"), meta.get("name"))))
    return {**document, "apiVersion": resource.api_version, "metadata": meta}


def _list_times(by_kind: DocumentsByKind) -> Iterator[float]:
    texts: set[str | None] = set()
    ends: set[str | None] = set()  # of grace periods, which may be yet to come
    for documents in by_kind.values():
        for document in documents:
            status = document.get("status") or {}
            texts.add(document["metadata"].get("creationTimestamp"))
            ends.add(document["metadata"].get("deletionTimestamp"))
            texts.add(status.get("startTime"))
            for condition in status.get("conditions") or ():
                for name in _TIMES:
                    texts.add(condition.get(name))
    if not all(is_time(text) for text in texts | ends if text):
        raise InputError(
            *(
                f"{document['kind']} {name_of(document)}: {problem}"
                for documents in by_kind.values()
                for document in documents
                for problem in find_time_problems(document)
            )
        )
    return (parse_time(text) for text in texts if text)


def _drop_without_templates(by_kind: DocumentsByKind) -> list[str]:
    """Workloads that do not say what their pods are like are left out: nobody could act for them."""
    dropped = []
    for kind in _in_story_order([kind for kind in KINDS.workloads() if kind.is_built_in]):
        workloads = by_kind[kind.group_kind]
        has_template = [bool(value_at(document, "spec.template.spec.containers")) for document in workloads]
        dropped += [
            f"{kind.resource.kind} {name_of(document)}"
            for document, is_whole in zip(workloads, has_template, strict=True)
            if not is_whole
        ]
        by_kind[kind.group_kind] = [
            document for document, is_whole in zip(workloads, has_template, strict=True) if is_whole
        ]
    if not dropped:
        return []
    return [
        f"{_name_some(dropped)}: without a pod template nobody can act for them. Their pods stay, and nobody replaces "
        "them."
    ]


def _in_story_order(kinds: Sequence[Kind]) -> list[Kind]:
    """Deployments before the ReplicaSets they own, else as in the table."""
    return sorted(kinds, key=lambda kind: kind.resource != DEPLOYMENTS)


def _drop_without_ordinals(by_kind: DocumentsByKind) -> list[str]:
    """StatefulSets know their pods by name, which anonymous snapshots did not tell once: they are left out."""
    pod_names: dict[str, list[str]] = {}  # key of a StatefulSet → names of its pods
    for pod in by_kind[PODS.group_kind]:
        for owner in _owners_of(pod):
            if _owner_kind_of(owner) == STATEFUL_SETS.group_kind:
                key = f"{meta_of(pod)['namespace']}/{owner.get('name')}"
                pod_names.setdefault(key, []).append(meta_of(pod)["name"])
    dropped = [
        stateful_set
        for stateful_set in by_kind[STATEFUL_SETS.group_kind]
        if any(
            not _is_ordinal(meta_of(stateful_set)["name"], name) for name in pod_names.get(name_of(stateful_set), ())
        )
    ]
    if not dropped:
        return []
    dropped_names = set(map(name_of, dropped))
    by_kind[STATEFUL_SETS.group_kind] = [
        stateful_set for stateful_set in by_kind[STATEFUL_SETS.group_kind] if name_of(stateful_set) not in dropped_names
    ]
    names = _name_some([f"StatefulSet {name_of(stateful_set)}" for stateful_set in dropped])
    return [
        f"{names}: their pods are not numbered, as in old anonymous snapshots. They stay, and nobody replaces them."
    ]


def _is_ordinal(owner: str, name: str) -> bool:
    number = name.removeprefix(f"{owner}-")
    return number != name and number.isascii() and number.isdigit()


def _link_owners(by_kind: DocumentsByKind) -> list[str]:
    """Owners by uid, or by name where the snapshot has no uids; an owner that is not there owns nothing."""
    uids = {meta_of(document)["uid"] for documents in by_kind.values() for document in documents}
    uid_of = {
        (kind, name_of(document)): meta_of(document)["uid"]
        for kind, documents in by_kind.items()
        for document in documents
    }
    missing: Tally[str] = Tally()
    for kind, documents in by_kind.items():
        for document in documents:
            meta, owners = document["metadata"], list[Document]()
            references: list[Document] = meta.get("ownerReferences") or []
            for owner in references:
                key = "/".join(filter(None, (meta.get("namespace"), owner.get("name", ""))))
                uid = owner["uid"] if owner.get("uid") in uids else uid_of.get((_owner_kind_of(owner), key))
                if uid is None and kind == NODES.group_kind:
                    continue  # a NodeClaim of Karpenter, or a Machine: whether nodes come and go, their groups say
                if uid is None:
                    missing[f"{owner.get('kind')} {key}"] += 1
                else:
                    owners.append(owner if owner.get("uid") == uid else {**owner, "uid": uid})
            if owners != references:
                meta["ownerReferences"] = owners
            if not owners:
                meta.pop("ownerReferences", None)
    if not missing:
        return []
    number = sum(missing.values())
    return [
        f"{number} object{'s' if number > 1 else ''} of {_name_some(sorted(missing))}, which the snapshot does not "
        "hold: taken as nobody's; nobody replaces them."
    ]


def _owner_kind_of(owner: Document) -> str:
    return KINDS.group_kind_named(owner.get("kind", ""), owner.get("apiVersion") or "")


def _fill_in(by_kind: DocumentsByKind, now: float) -> None:
    """Objects written by hand, or reduced, get what the API server gives those it stores."""
    completion = pods.PodCompletion(lambda pod: _with_defaults(PODS, pod))
    for group_kind, documents in by_kind.items():
        kind = KINDS[group_kind]
        for index, document in enumerate(documents):
            document["metadata"].setdefault("creationTimestamp", format_time(now))
            if kind.resource == PODS:
                documents[index] = completion.complete(document, now)
                continue
            has_defaults = kind.is_built_in and (kind.decides or kind.resource == JOBS)
            stored = documents[index] = _with_defaults(kind.resource, document) if has_defaults else document
            has_template = kind.resource == CONTROLLER_REVISIONS and value_at(stored, "data.spec.template")
            if has_template:  # it is compared with the templates of workloads, which have defaults
                whole = _with_defaults(STATEFUL_SETS, {"spec": {"template": _without_directive(stored)}})
                stored["data"] = {"spec": {"template": whole["spec"]["template"]}}
            if kind.resource == NODES:
                _complete_node(stored, now)


def _with_defaults(resource: Resource, document: Document) -> Document:
    type_ = type_of(resource)
    assert type_ is not None, f"{resource.kind} is none of Kubernetes' kinds"
    try:
        return store_form_of(type_, document)
    except ClusterError as error:
        raise InputError(f"{resource.kind} {name_of(document)}: {error}") from None


def _without_directive(revision: Document) -> Document:
    return {name: value for name, value in revision["data"]["spec"]["template"].items() if name != "$patch"}


def _complete_node(node: Document, now: float) -> None:
    """One that says nothing is ready; one that is not, stays so: its kubelet is silent."""
    status = node.setdefault("status", {})
    status.setdefault("allocatable", status.get("capacity") or {})
    ready = condition_of(node, "Ready")
    if ready is None:
        condition = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "lastTransitionTime": format_time(now),
        }
        status["conditions"] = [*(status.get("conditions") or []), condition]
    elif ready.get("status") != "True":
        node["metadata"].setdefault("annotations", {})[SILENT] = "true"


def _note_workloads_without_pods(by_kind: DocumentsByKind) -> list[str]:
    """Workloads that should have pods and of which the snapshot shows nothing: they will make them anew."""
    owner_uids = {
        owner["uid"] for documents in by_kind.values() for document in documents for owner in _owners_of(document)
    }
    alone = [
        f"{resource.kind} {name_of(document)}"
        for resource in (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS)
        for document in by_kind[resource.group_kind]
        if value_at(document, "spec.replicas") and meta_of(document)["uid"] not in owner_uids
    ]
    if not alone:
        return []
    advice = "the snapshot holds nothing that they own, so they make their pods anew. Take it again, with owners"
    return [f"{_name_some(alone)}: {advice}: wukong snapshot."]


def _add_namespaces(by_kind: DocumentsByKind) -> None:
    namespaces = by_kind[NAMESPACES.group_kind]
    used = {meta_of(document).get("namespace", "") for documents in by_kind.values() for document in documents} - {""}
    known = {meta_of(namespace)["name"] for namespace in namespaces}
    for name in sorted(used - known):
        namespaces.append(_complete_head({"kind": "Namespace", "metadata": {"name": name}}, NAMESPACES))
    for namespace in namespaces:
        namespace.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
        namespace.setdefault("status", {}).setdefault("phase", "Active")


def name_of(document: Document) -> str:
    meta = meta_of(document)
    return "/".join(filter(None, (meta.get("namespace"), meta.get("name"))))


def _owners_of(document: Document) -> list[Document]:
    owners: list[Document] = meta_of(document).get("ownerReferences") or []
    return owners


def _name_some(names: Sequence[str]) -> str:
    rest = len(names) - _MAX_NAMED
    return ", ".join(names[:_MAX_NAMED]) + (f" and {rest} more" if rest > 0 else "")
