"""Which version the pods of a snapshot's StatefulSets and DaemonSets are of, as ControllerRevisions. For loading.py.

A real cluster's hashes cannot be computed again, so the names it gave stay, and the actors find a version by comparing
templates. Snapshots made by kubectl mostly have no ControllerRevisions: the statuses, and the pods' labels, name them.
"""

from __future__ import annotations

from collections import Counter as Tally

from wukong.embedded.actors.deployment.revisions import hash_of
from wukong.embedded.actors.stateful_set.ordinals import REVISION
from wukong.embedded.store.documents import meta_of, value_at
from wukong.ports import Document

ByKind = dict[str, list[Document]]


def named(by_kind: ByKind) -> list[str]:
    """Adds the revisions that are missing; notes where pods of an older version could not come back as they were."""
    notes = []
    known = {(meta_of(each)["namespace"], meta_of(each)["name"]) for each in by_kind["ControllerRevision"]}
    crews: dict[str, list[Document]] = {}  # uid of a controller → its pods
    for pod in by_kind["Pod"]:
        for owner in meta_of(pod).get("ownerReferences") or []:
            if owner.get("controller"):
                crews.setdefault(owner["uid"], []).append(pod)
    for kind in ("StatefulSet", "DaemonSet"):
        for each in by_kind[kind]:
            pods = crews.get(meta_of(each)["uid"], [])
            name = _stateful(each, pods) if kind == "StatefulSet" else _daemon(each, pods)
            if name and (meta_of(each)["namespace"], name) not in known:
                others = [it.get("revision", 0) for it in by_kind["ControllerRevision"] if _is_of(it, each)]
                by_kind["ControllerRevision"].append(_revision(kind, each, name, max(others, default=0) + 1))
            current = value_at(each, "status.currentRevision")
            if current and current != name and (meta_of(each)["namespace"], current) not in known:
                place = f"{meta_of(each)['namespace']}/{meta_of(each)['name']}"
                notes.append(
                    f"StatefulSet {place}: its older version is not in the snapshot; pods come back as the new."
                )
    return notes


def _stateful(found: Document, pods: list[Document]) -> str:
    status = found.setdefault("status", {})
    name = status.get("updateRevision") or _most(pods)
    name = name or f"{meta_of(found)['name']}-{hash_of(value_at(found, 'spec.template') or {})}"
    status.setdefault("updateRevision", name)
    status.setdefault("currentRevision", name)
    for pod in pods:
        pod["metadata"].setdefault("labels", {}).setdefault(REVISION, name)
    return str(name)


def _daemon(found: Document, pods: list[Document]) -> str:
    """Where a rollout is under way the newest pods are of the latest version; none, if the status counts none."""
    status = found.get("status") or {}
    is_counted = status.get("observedGeneration", 0) >= meta_of(found).get("generation", 1)
    updated = status.get("updatedNumberScheduled", 0) if is_counted else status.get("desiredNumberScheduled", 0)
    newest = max((meta_of(pod).get("creationTimestamp", "") for pod in pods), default="")
    latest = [pod for pod in pods if meta_of(pod).get("creationTimestamp") == newest] if updated else []
    latest = pods if updated == status.get("desiredNumberScheduled", 0) else latest
    word = _most(latest) or hash_of(value_at(found, "spec.template") or {})
    for pod in pods:
        pod["metadata"].setdefault("labels", {}).setdefault(REVISION, word)
    return f"{meta_of(found)['name']}-{word}"


def _most(pods: list[Document]) -> str:
    labels = Tally(word for pod in pods if (word := (meta_of(pod).get("labels") or {}).get(REVISION)))
    return max(sorted(labels), key=labels.__getitem__, default="")


def _is_of(pod: Document, owner: Document) -> bool:
    uid = meta_of(owner)["uid"]
    return any(each["uid"] == uid and each.get("controller") for each in meta_of(pod).get("ownerReferences") or [])


def _revision(kind: str, owner: Document, name: str, number: int) -> Document:
    meta = meta_of(owner)
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": meta["name"], "uid": meta["uid"], "controller": True}
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": name,
            "namespace": meta["namespace"],
            "uid": f"snapshot-{name}-{meta['uid']}",
            "creationTimestamp": meta["creationTimestamp"],
            "ownerReferences": [{**reference, "blockOwnerDeletion": True}],
        },
        "data": {"spec": {"template": value_at(owner, "spec.template")}},
        "revision": number,
    }
