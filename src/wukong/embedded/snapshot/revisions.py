"""The revisions of a snapshot's StatefulSets and DaemonSets, as ControllerRevisions. Called by load.py.

A real cluster's hashes cannot be computed again, so the names it gave stay, and the actors find a revision by comparing
templates. Snapshots made by kubectl mostly have no ControllerRevisions: the statuses, and the pods' labels, name them.
"""

from __future__ import annotations

from collections import Counter as Tally

from wukong.api.kinds import CONTROLLER_REVISIONS, DAEMON_SETS, PODS, STATEFUL_SETS
from wukong.api.resources import Resource
from wukong.embedded.actors.controller_revisions import REVISION_LABEL
from wukong.embedded.actors.deployment.revisions import hash_template
from wukong.embedded.store.documents import meta_of, value_at
from wukong.ports import Document

DocumentsByKind = dict[str, list[Document]]  # group and kind → the documents of a snapshot


def add_missing_revisions(by_kind: DocumentsByKind) -> list[str]:
    """Add the revisions that are missing. Returns notes where pods of an older one could not come back as they were."""
    notes = []
    stored = by_kind[CONTROLLER_REVISIONS.group_kind]
    known = {(meta_of(revision)["namespace"], meta_of(revision)["name"]) for revision in stored}
    latest_numbers = _find_latest_numbers(stored)
    pods_of: dict[str, list[Document]] = {}  # uid of a controller → its pods
    for pod in by_kind[PODS.group_kind]:
        for owner in meta_of(pod).get("ownerReferences") or []:
            if owner.get("controller"):
                pods_of.setdefault(owner["uid"], []).append(pod)
    for resource in (STATEFUL_SETS, DAEMON_SETS):
        for workload in by_kind[resource.group_kind]:
            meta = meta_of(workload)
            pods = pods_of.get(meta["uid"], [])
            name = _name_of_stateful(workload, pods) if resource == STATEFUL_SETS else _name_of_daemon(workload, pods)
            if name and (meta["namespace"], name) not in known:
                number = latest_numbers.get(meta["uid"], 0) + 1
                stored.append(_build_revision(resource, workload, name, number))
            current = value_at(workload, "status.currentRevision")
            if current and current != name and (meta["namespace"], current) not in known:
                place = f"{meta['namespace']}/{meta['name']}"
                notes.append(
                    f"StatefulSet {place}: its older version is not in the snapshot; pods come back as the new."
                )
    return notes


def _name_of_stateful(stateful_set: Document, pods: list[Document]) -> str:
    """The name of the revision a StatefulSet asks for; its status and its pods get it where they name none."""
    status = stateful_set.setdefault("status", {})
    name = status.get("updateRevision") or _most_common_label(pods)
    name = name or f"{meta_of(stateful_set)['name']}-{hash_template(value_at(stateful_set, 'spec.template') or {})}"
    status.setdefault("updateRevision", name)
    status.setdefault("currentRevision", name)
    _add_label(pods, str(name))
    return str(name)


def _name_of_daemon(daemon_set: Document, pods: list[Document]) -> str:
    """The name of the revision a DaemonSet asks for; pods get its label where they have none.

    During a rollout the newest pods are of the latest revision, or none are if the status counts none.
    """
    status = daemon_set.get("status") or {}
    is_counted = status.get("observedGeneration", 0) >= meta_of(daemon_set).get("generation", 1)
    updated = status.get("updatedNumberScheduled", 0) if is_counted else status.get("desiredNumberScheduled", 0)
    newest = max((meta_of(pod).get("creationTimestamp", "") for pod in pods), default="")
    latest = [pod for pod in pods if meta_of(pod).get("creationTimestamp") == newest] if updated else []
    latest = pods if updated == status.get("desiredNumberScheduled", 0) else latest
    revision = _most_common_label(latest) or hash_template(value_at(daemon_set, "spec.template") or {})
    _add_label(pods, revision)
    return f"{meta_of(daemon_set)['name']}-{revision}"


def _add_label(pods: list[Document], revision: str) -> None:
    """Pods share their labels with others of the snapshot, so they get labels of their own."""
    for pod in pods:
        labels = meta_of(pod).get("labels") or {}
        if REVISION_LABEL not in labels:
            pod["metadata"]["labels"] = {**labels, REVISION_LABEL: revision}


def _most_common_label(pods: list[Document]) -> str:
    """The revision label that most of these pods have; "" if none has one."""
    labels = Tally(label for pod in pods if (label := (meta_of(pod).get("labels") or {}).get(REVISION_LABEL)))
    return max(sorted(labels), key=labels.__getitem__, default="")


def _find_latest_numbers(revisions: list[Document]) -> dict[str, int]:
    """The number of the latest revision of each controller, by its uid."""
    numbers: dict[str, int] = {}
    for revision in revisions:
        for reference in meta_of(revision).get("ownerReferences") or ():
            if reference.get("controller"):
                uid = reference["uid"]
                numbers[uid] = max(numbers.get(uid, 0), revision.get("revision", 0))
    return numbers


def _build_revision(resource: Resource, owner: Document, name: str, number: int) -> Document:
    meta = meta_of(owner)
    reference = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": CONTROLLER_REVISIONS.api_version,
        "kind": CONTROLLER_REVISIONS.kind,
        "metadata": {
            "name": name,
            "namespace": meta["namespace"],
            "uid": f"snapshot-{name}-{meta['uid']}",
            "creationTimestamp": meta["creationTimestamp"],
            "ownerReferences": [reference],
        },
        "data": {"spec": {"template": value_at(owner, "spec.template")}},
        "revision": number,
    }
