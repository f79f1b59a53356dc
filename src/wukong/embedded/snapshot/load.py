"""A snapshot of another cluster made fit to be played on: as it is; nothing happens merely because it was loaded.

    documents ─► completed (what a server would have filled in) ─► owners linked ─► revisions named ─► ready to restore

Called by app/snapshots.py. What a snapshot does not hold is noted, never made up silently. Pure: documents in,
documents out; the store's `restore` takes them in.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from wukong.api.kinds import OURS
from wukong.api.resources import RESOURCES, Resource
from wukong.embedded.actors.kubelet.behaviour import SILENT
from wukong.embedded.snapshot import pods, revisions
from wukong.embedded.store import defaults
from wukong.embedded.store.documents import condition_of, copy_document, format_time, meta_of, parse_time, value_at
from wukong.embedded.store.normalize import normalize
from wukong.embedded.world.clock import START
from wukong.embedded.world.objects import CONTROLLER_REVISIONS, JOBS
from wukong.errors import ClusterError, InputError
from wukong.ports import Document

LOADABLE: dict[str, Resource] = {**RESOURCES, "Job": JOBS, "ControllerRevision": CONTROLLER_REVISIONS}
_WORKLOADS = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job")
_TIMES = ("lastTransitionTime", "lastUpdateTime", "lastHeartbeatTime")
_NAMED = 3  # so many are named in a note


class Loaded(msgspec.Struct):
    """What to restore, kind by kind; when it was; pods that stay as they are; what there is to say about it."""

    objects: list[tuple[Resource, list[Document]]]
    now: float
    held: frozenset[str] = frozenset()
    notes: list[str] = []


def loaded(documents: Iterable[Document], now: float | None = None) -> Loaded:
    """`now`: when the snapshot was taken, if that is known; else it is when the latest of its objects changed."""
    by_kind: dict[str, list[Document]] = {kind: [] for kind in LOADABLE}
    for document in documents:
        by_kind[document["kind"]].append(_headed(copy_document(document)))
    taken = max([*_times(by_kind), now or 0.0]) or START  # never before what it shows
    now = taken + 1.0  # the API's times are whole seconds: what was just then is past
    notes = [*_without_templates(by_kind), *_without_ordinals(by_kind), *_linked(by_kind)]
    _filled(by_kind, taken)
    notes += revisions.named(by_kind)
    held, more = pods.held(by_kind["Pod"], now)
    notes += [*more, *_lonely(by_kind)]
    _add_namespaces(by_kind)
    return Loaded([(LOADABLE[kind], found) for kind, found in by_kind.items() if found], now, held, notes)


def _headed(document: Document) -> Document:
    meta = document.setdefault("metadata", {})
    resource = LOADABLE[document["kind"]]
    document["apiVersion"] = resource.api_version
    if resource.namespaced:
        meta.setdefault("namespace", "default")
    if not meta.get("uid"):
        meta["uid"] = "-".join(filter(None, ("snapshot", resource.plural, meta.get("namespace"), meta.get("name"))))
    for name in ("managedFields", "resourceVersion", "selfLink"):
        meta.pop(name, None)
    return document


def _times(by_kind: dict[str, list[Document]]) -> Iterator[float]:
    for found in by_kind.values():
        for document in found:
            stamps = [meta_of(document).get("creationTimestamp"), value_at(document, "status.startTime")]
            conditions = value_at(document, "status.conditions") or []
            stamps += [condition.get(name) for condition in conditions for name in _TIMES]
            yield from (parse_time(each) for each in stamps if each)


def _without_templates(by_kind: dict[str, list[Document]]) -> list[str]:
    """Workloads that do not say what their pods are like are left out: nobody could act for them."""
    lost = []
    for kind in _WORKLOADS:
        lost += [
            f"{kind} {name_of(each)}" for each in by_kind[kind] if not value_at(each, "spec.template.spec.containers")
        ]
        by_kind[kind] = [each for each in by_kind[kind] if value_at(each, "spec.template.spec.containers")]
    if not lost:
        return []
    return [
        f"{_some(lost)}: without a pod template nobody can act for them. Their pods stay, and nobody replaces them."
    ]


def _without_ordinals(by_kind: dict[str, list[Document]]) -> list[str]:
    """StatefulSets know their pods by name, which an anonymous snapshot does not tell: they are left out."""
    pods: dict[str, list[str]] = {}  # key of a StatefulSet → names of its pods
    for pod in by_kind["Pod"]:
        for owner in _owners(pod):
            if owner.get("kind") == "StatefulSet":
                pods.setdefault(f"{meta_of(pod)['namespace']}/{owner.get('name')}", []).append(meta_of(pod)["name"])
    lost = [
        each
        for each in by_kind["StatefulSet"]
        if any(not _is_ordinal(meta_of(each)["name"], name) for name in pods.get(name_of(each), ()))
    ]
    by_kind["StatefulSet"] = [each for each in by_kind["StatefulSet"] if each not in lost]
    if not lost:
        return []
    told = "their pods are not numbered, as in an anonymous snapshot. They stay, and nobody replaces them."
    return [f"{_some([f'StatefulSet {name_of(each)}' for each in lost])}: {told}"]


def _is_ordinal(owner: str, name: str) -> bool:
    return name.startswith(f"{owner}-") and name.removeprefix(f"{owner}-").isdigit()


def _linked(by_kind: dict[str, list[Document]]) -> list[str]:
    """Owners by uid, or by name where the snapshot has no uids; an owner that is not there owns nothing."""
    uids = {meta_of(each)["uid"] for found in by_kind.values() for each in found}
    names = {(kind, name_of(each)): meta_of(each)["uid"] for kind, found in by_kind.items() for each in found}
    lost: Tally[str] = Tally()
    for found in by_kind.values():
        for document in found:
            meta, kept = document["metadata"], []
            for owner in meta.get("ownerReferences") or []:
                key = "/".join(filter(None, (meta.get("namespace"), owner.get("name", ""))))
                uid = owner["uid"] if owner.get("uid") in uids else names.get((owner.get("kind", ""), key))
                if uid is None:
                    lost[f"{owner.get('kind')} {key}"] += 1
                else:
                    kept.append({**owner, "uid": uid})
            meta["ownerReferences"] = kept
            if not kept:
                del meta["ownerReferences"]
    if not lost:
        return []
    number = sum(lost.values())
    return [
        f"{number} object{'s' if number > 1 else ''} of {_some(sorted(lost))}, which the snapshot does not hold: "
        "taken as nobody's; nobody replaces them."
    ]


def _filled(by_kind: dict[str, list[Document]], now: float) -> None:
    """Objects written by hand, or reduced, get what the API server gives those it stores."""
    for kind, found in by_kind.items():
        for index, document in enumerate(found):
            document["metadata"].setdefault("creationTimestamp", format_time(now))
            is_built_in = kind in RESOURCES and kind not in OURS
            made = found[index] = _as_stored(kind, document) if is_built_in else document
            # A revision is compared with what is asked for.
            if kind == "ControllerRevision" and value_at(made, "data.spec.template"):
                stored = _as_stored("StatefulSet", {"spec": {"template": _unpatched(made)}})
                made["data"] = {"spec": {"template": stored["spec"]["template"]}}
            if kind == "Node":
                _complete_node(made, now)
            elif kind == "Pod":
                pods.complete(made, now)


def _as_stored(kind: str, document: Document) -> Document:
    try:
        made = normalize(document)
        defaults.fill(kind, made)
    except ClusterError as error:
        raise InputError(f"{kind} {name_of(document)}: {error}") from None
    return made


def _unpatched(revision: Document) -> Document:
    return {name: value for name, value in revision["data"]["spec"]["template"].items() if name != "$patch"}


def _complete_node(node: Document, now: float) -> None:
    """One that says nothing is ready; one that is not, stays so: its kubelet is silent."""
    status = node.setdefault("status", {})
    status.setdefault("allocatable", status.get("capacity") or {})
    ready = condition_of(node, "Ready")
    if ready is None:
        made = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": format_time(now)}
        status["conditions"] = [*(status.get("conditions") or []), made]
    elif ready.get("status") != "True":
        node["metadata"].setdefault("annotations", {})[SILENT] = "true"


def _lonely(by_kind: dict[str, list[Document]]) -> list[str]:
    """Workloads that should have pods and of which the snapshot shows nothing: they will make them anew."""
    owners = {owner["uid"] for found in by_kind.values() for each in found for owner in _owners(each)}
    lonely = [
        f"{kind} {name_of(each)}"
        for kind in ("Deployment", "ReplicaSet", "StatefulSet")
        for each in by_kind[kind]
        if value_at(each, "spec.replicas") and meta_of(each)["uid"] not in owners
    ]
    if not lonely:
        return []
    told = "the snapshot holds nothing that they own, so they make their pods anew. Take it again, with owners"
    return [f"{_some(lonely)}: {told}: wukong snapshot."]


def _add_namespaces(by_kind: dict[str, list[Document]]) -> None:
    named = {meta_of(each).get("namespace", "") for found in by_kind.values() for each in found} - {""}
    known = {meta_of(each)["name"] for each in by_kind["Namespace"]}
    for name in sorted(named - known):
        by_kind["Namespace"].append(_headed({"kind": "Namespace", "metadata": {"name": name}}))
    for each in by_kind["Namespace"]:
        each.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
        each.setdefault("status", {}).setdefault("phase", "Active")


def name_of(document: Document) -> str:
    meta = meta_of(document)
    return "/".join(filter(None, (meta.get("namespace"), meta.get("name"))))


def _owners(document: Document) -> list[Document]:
    found: list[Document] = meta_of(document).get("ownerReferences") or []
    return found


def _some(names: Sequence[str]) -> str:
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
