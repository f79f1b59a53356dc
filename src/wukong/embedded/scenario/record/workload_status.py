"""What the statuses of workloads say, whatever their kind: how many are wanted and available, and whether that is all.

Used by the recorder and its neighbours. Reads documents, because a DaemonSet's counts have names of their own. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from wukong.api.kinds import (
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    KINDS,
    ROLLOUTS,
    STATEFUL_SETS,
    VIRTUAL_MACHINES,
    group_kind_of,
)
from wukong.api.meta import Object, controller_of
from wukong.embedded.store.documents import condition_of, value_at
from wukong.ports import Document
from wukong.state import State


class ReplicaCounts(NamedTuple):
    wanted: int
    available: int
    up_to_date: int  # of the latest version
    is_complete: bool


def document_of(workload: Object) -> Document:
    document: Document = getattr(workload, "document", {})
    return document


def is_workload_kind(group_kind: str) -> bool:
    """Whether stories tell how the pods of this kind fare."""
    kind = KINDS.find(group_kind)
    return kind is not None and kind.is_workload


def is_top_level(workload: Object) -> bool:
    """Whether this is a workload that no other workload manages: a virtual machine of a Wukong is one, too."""
    if not is_workload_kind(group_kind_of(workload)):
        return False
    return controller_of(workload.metadata) is None or group_kind_of(workload) == VIRTUAL_MACHINES.group_kind


def top_level_workloads(state: State) -> Iterator[Object]:
    for kind in KINDS.workloads():
        yield from filter(is_top_level, state.objects.get(kind.group_kind, {}).values())


def count_replicas(workload: Object) -> ReplicaCounts:
    document = document_of(workload)
    status: Document = document.get("status") or {}
    if group_kind_of(workload) == JOBS.group_kind:
        return _count_successes(document, status)
    if group_kind_of(workload) == VIRTUAL_MACHINES.group_kind:
        return _count_machine(document, status)
    is_observed = status.get("observedGeneration", 0) >= workload.metadata.generation
    if group_kind_of(workload) == ROLLOUTS.group_kind:
        return _count_rollout(document, status, is_observed=is_observed)
    if group_kind_of(workload) == DAEMON_SETS.group_kind:
        wanted, available = status.get("desiredNumberScheduled", 0), status.get("numberAvailable", 0)
        updated, present = status.get("updatedNumberScheduled", 0), status.get("currentNumberScheduled", 0)
    else:
        replicas = value_at(document, "spec.replicas")
        wanted, available = 1 if replicas is None else replicas, status.get("availableReplicas", 0)
        present = status.get("replicas", 0)
        updated = status.get("updatedReplicas", 0) if group_kind_of(workload) == DEPLOYMENTS.group_kind else present
        if group_kind_of(workload) == STATEFUL_SETS.group_kind and status.get("updateRevision") != status.get(
            "currentRevision"
        ):
            updated = wanted if _is_partial(document) else status.get("updatedReplicas", 0)
    is_complete = is_observed and wanted == available == updated == present
    return ReplicaCounts(wanted, available, updated, is_complete)


def _count_successes(document: Document, status: Document) -> ReplicaCounts:
    """Of a Job, completions are wanted and successes are available. Without completions one success is enough."""
    completions = value_at(document, "spec.completions")
    is_complete = (condition_of(document, "Complete") or {}).get("status") == "True"
    succeeded = status.get("succeeded", 0)
    return ReplicaCounts(1 if completions is None else completions, succeeded, succeeded, is_complete)


def _count_rollout(document: Document, status: Document, *, is_observed: bool) -> ReplicaCounts:
    """Of a Rollout those pods count that get traffic. One that waits for somebody, or was aborted, is at rest."""
    replicas = value_at(document, "spec.replicas")
    wanted, available = 1 if replicas is None else replicas, status.get("availableReplicas", 0)
    is_at_rest = status.get("phase") in ("Healthy", "Paused", "Aborted")
    return ReplicaCounts(wanted, available, status.get("updatedReplicas", 0), is_observed and is_at_rest)


def _count_machine(document: Document, status: Document) -> ReplicaCounts:
    """Of a virtual machine its one guest counts, if it is to run.

    It is available all through a migration: that the readiness gate of its new pod is still closed is no outage.
    """
    strategy = value_at(document, "spec.runStrategy") or ("Always" if value_at(document, "spec.running") else "Halted")
    ready = condition_of(document, "Ready") or {}
    runs = status.get("printableStatus") in ("Running", "Migrating")
    is_available = status.get("ready") or (runs and ready.get("reason") == "ReadinessGatesNotReady")
    if strategy in ("Manual", "Once", "RerunOnFailure"):
        wanted = int(bool(status.get("created")))
    else:
        wanted = int(strategy == "Always")
    is_complete = bool(status) and wanted == int(bool(is_available)) == int(bool(status.get("created")))
    return ReplicaCounts(wanted, int(bool(is_available)), int(bool(is_available)), is_complete)


def _is_partial(document: Document) -> bool:
    """Whether a StatefulSet is not meant to be wholly of its latest revision."""
    strategy = value_at(document, "spec.updateStrategy") or {}
    return strategy.get("type") == "OnDelete" or bool(value_at(strategy, "rollingUpdate.partition"))


def list_failures(workload: Object) -> list[str]:
    """What its condition Progressing says once it has given up, a failure to make pods, and why a Job failed.

    Of a virtual machine why its instance cannot be made, and why that has no pod.
    """
    messages = []
    kinds = [("Progressing", "False"), ("ReplicaFailure", "True"), ("Failed", "True")]
    if group_kind_of(workload) == VIRTUAL_MACHINES.group_kind:
        kinds = [("Failure", "True"), ("Synchronized", "False"), ("PodScheduled", "False")]
    for kind, failed_status in kinds:
        condition = condition_of(document_of(workload), kind) or {}
        if condition.get("status") == failed_status:
            messages.append(f"{condition.get('reason', '')}: {condition.get('message', '')}")
    return messages
