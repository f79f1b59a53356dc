"""Which version the pods of a snapshot's StatefulSets and DaemonSets are of, as ControllerRevisions. For load.py.

A real cluster's hashes cannot be computed again, so the names it gave stay, and the actors find a version by comparing
templates. Snapshots made by kubectl mostly have no ControllerRevisions: the statuses, and the pods' labels, name them.
"""

from __future__ import annotations

from collections import Counter as Tally

from wukong.api.kinds import CONTROLLER_REVISIONS, DAEMON_SETS, PODS, STATEFUL_SETS
from wukong.embedded.actors.deployment.revisions import hash_of
from wukong.embedded.actors.stateful_set.ordinals import REVISION
from wukong.embedded.store.documents import meta_of, value_at
from wukong.ports import Document

DocumentsByKind = dict[str, list[Document]]  # group and kind → the documents of a snapshot


def add_missing_revisions(by_kind: DocumentsByKind) -> list[str]:
    """Adds the revisions that are missing; notes where pods of an older version could not come back as they were."""
    notes = []
    kept = by_kind[CONTROLLER_REVISIONS.group_kind]
    known = {(meta_of(revision)["namespace"], meta_of(revision)["name"]) for revision in kept}
    pods_of: dict[str, list[Document]] = {}  # uid of a controller → its pods
    for pod in by_kind[PODS.group_kind]:
        for owner in meta_of(pod).get("ownerReferences") or []:
            if owner.get("controller"):
                pods_of.setdefault(owner["uid"], []).append(pod)
    for resource in (STATEFUL_SETS, DAEMON_SETS):
        for workload in by_kind[resource.group_kind]:
            meta = meta_of(workload)
            pods = pods_of.get(meta["uid"], [])
            name = _stateful(workload, pods) if resource == STATEFUL_SETS else _daemon(workload, pods)
            if name and (meta["namespace"], name) not in known:
                numbers = [revision.get("revision", 0) for revision in kept if _is_of(revision, workload)]
                kept.append(_revision(resource.kind, workload, name, max(numbers, default=0) + 1))
            current = value_at(workload, "status.currentRevision")
            if current and current != name and (meta["namespace"], current) not in known:
                place = f"{meta['namespace']}/{meta['name']}"
                notes.append(
                    f"StatefulSet {place}: its older version is not in the snapshot; pods come back as the new."
                )
    return notes


def _stateful(stateful_set: Document, pods: list[Document]) -> str:
    status = stateful_set.setdefault("status", {})
    name = status.get("updateRevision") or _most(pods)
    name = name or f"{meta_of(stateful_set)['name']}-{hash_of(value_at(stateful_set, 'spec.template') or {})}"
    status.setdefault("updateRevision", name)
    status.setdefault("currentRevision", name)
    for pod in pods:
        pod["metadata"].setdefault("labels", {}).setdefault(REVISION, name)
    return str(name)


def _daemon(daemon_set: Document, pods: list[Document]) -> str:
    """Where a rollout is under way the newest pods are of the latest version; none, if the status counts none."""
    status = daemon_set.get("status") or {}
    is_counted = status.get("observedGeneration", 0) >= meta_of(daemon_set).get("generation", 1)
    updated = status.get("updatedNumberScheduled", 0) if is_counted else status.get("desiredNumberScheduled", 0)
    newest = max((meta_of(pod).get("creationTimestamp", "") for pod in pods), default="")
    latest = [pod for pod in pods if meta_of(pod).get("creationTimestamp") == newest] if updated else []
    latest = pods if updated == status.get("desiredNumberScheduled", 0) else latest
    word = _most(latest) or hash_of(value_at(daemon_set, "spec.template") or {})
    for pod in pods:
        pod["metadata"].setdefault("labels", {}).setdefault(REVISION, word)
    return f"{meta_of(daemon_set)['name']}-{word}"


def _most(pods: list[Document]) -> str:
    labels = Tally(word for pod in pods if (word := (meta_of(pod).get("labels") or {}).get(REVISION)))
    return max(sorted(labels), key=labels.__getitem__, default="")


def _is_of(revision: Document, owner: Document) -> bool:
    uid, references = meta_of(owner)["uid"], meta_of(revision).get("ownerReferences") or []
    return any(reference["uid"] == uid and reference.get("controller") for reference in references)


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
