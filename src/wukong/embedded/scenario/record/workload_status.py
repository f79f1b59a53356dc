"""What the statuses of workloads say, whatever their kind: how many are wanted and there, and whether that is all.

Used by recording.py. Reads documents, for a DaemonSet counts in words of its own. Pure.
"""

from __future__ import annotations

from typing import NamedTuple

from wukong.api.kinds import KINDS as TABLE
from wukong.api.kinds import group_kind_of
from wukong.api.meta import Object, controller_of
from wukong.embedded.store.documents import condition_of, value_at
from wukong.ports import Document

KINDS = tuple(kind.group_kind for kind in TABLE.workloads())


class Counted(NamedTuple):
    wanted: int
    available: int
    is_complete: bool


def document_of(found: Object) -> Document:
    document: Document = getattr(found, "document", {})
    return document


def is_top(found: Object) -> bool:
    """A workload that nobody else manages."""
    return group_kind_of(found) in KINDS and controller_of(found.metadata) is None


def counted(found: Object) -> Counted:
    document = document_of(found)
    status: Document = document.get("status") or {}
    if found.kind == "Job":
        return _job(document, status)
    is_seen = status.get("observedGeneration", 0) >= found.metadata.generation
    if found.kind == "DaemonSet":
        wanted, available = status.get("desiredNumberScheduled", 0), status.get("numberAvailable", 0)
        updated, there = status.get("updatedNumberScheduled", 0), status.get("currentNumberScheduled", 0)
    else:
        replicas = value_at(document, "spec.replicas")
        wanted, available = 1 if replicas is None else replicas, status.get("availableReplicas", 0)
        there = status.get("replicas", 0)
        updated = status.get("updatedReplicas", 0) if found.kind == "Deployment" else there
        if found.kind == "StatefulSet" and status.get("updateRevision") != status.get("currentRevision"):
            updated = wanted if _is_partial(document) else status.get("updatedReplicas", 0)
    return Counted(wanted, available, is_seen and wanted == available == updated == there)


def _job(document: Document, status: Document) -> Counted:
    """Wanted are completions, available are successes. Without completions one success is enough."""
    wanted = value_at(document, "spec.completions")
    is_complete = (condition_of(document, "Complete") or {}).get("status") == "True"
    return Counted(1 if wanted is None else wanted, status.get("succeeded", 0), is_complete)


def _is_partial(document: Document) -> bool:
    """A StatefulSet that is not meant to be wholly of its latest revision."""
    strategy = value_at(document, "spec.updateStrategy") or {}
    return strategy.get("type") == "OnDelete" or bool(value_at(strategy, "rollingUpdate.partition"))


def troubles(found: Object) -> list[str]:
    """What its condition Progressing says once it has given up, a failure to make pods, and why a Job failed."""
    told = []
    for kind, status in (("Progressing", "False"), ("ReplicaFailure", "True"), ("Failed", "True")):
        condition = condition_of(document_of(found), kind) or {}
        if condition.get("status") == status:
            told.append(f"{condition.get('reason', '')}: {condition.get('message', '')}")
    return told
