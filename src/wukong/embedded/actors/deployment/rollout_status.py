"""The status of a Deployment: its counts, and its conditions Available, Progressing and ReplicaFailure.

Called by sync.py; documents in, a document out. Follows kube-controller-manager's progress.go and sync.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from wukong.embedded.actors.deployment.sizes import Limits
from wukong.embedded.store.documents import format_time, parse_time
from wukong.embedded.world.objects import Deployment, ReplicaSet, WorkloadStatus
from wukong.ports import Document

NO_DEADLINE = 2**31 - 1  # a progress deadline that means none
TIMED_OUT, AVAILABLE = "ProgressDeadlineExceeded", "NewReplicaSetAvailable"
Conditions = list[Document]


def has_deadline(deployment: Deployment) -> bool:
    return deployment.spec.progress_deadline_seconds not in (None, NO_DEADLINE)


def find_condition(conditions: Conditions, kind: str) -> Document | None:
    return next((condition for condition in conditions if condition["type"] == kind), None)


def set_condition(conditions: Conditions, kind: str, status: str, reason: str, message: str, now: float) -> Conditions:
    """The conditions with this one at the end, as Kubernetes has it; unchanged where status and reason are the same."""
    before = find_condition(conditions, kind)
    if before is not None and (before["status"], before["reason"]) == (status, reason):
        return conditions
    since = before["lastTransitionTime"] if before is not None and before["status"] == status else format_time(now)
    condition = {"type": kind, "status": status, "reason": reason, "message": message}
    times = {"lastUpdateTime": format_time(now), "lastTransitionTime": since}
    return [*remove_condition(conditions, kind), {**condition, **times}]


def remove_condition(conditions: Conditions, kind: str) -> Conditions:
    return [condition for condition in conditions if condition["type"] != kind]


def set_paused(deployment: Deployment, conditions: Conditions, now: float) -> Conditions:
    """Note in Progressing that the Deployment was paused or resumed. While it is paused its deadline does not run."""
    progressing = find_condition(conditions, "Progressing")
    reason = progressing["reason"] if progressing else ""
    if not has_deadline(deployment) or reason == TIMED_OUT:
        return conditions
    if deployment.spec.paused and reason != "DeploymentPaused":
        return set_condition(conditions, "Progressing", "Unknown", "DeploymentPaused", "Deployment is paused", now)
    if not deployment.spec.paused and reason == "DeploymentPaused":
        return set_condition(conditions, "Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed", now)
    return conditions


def count_replicas(
    deployment: Deployment, new: ReplicaSet | None, replica_sets: Sequence[ReplicaSet], total: int
) -> Document:
    """The status without conditions. `total` is how many pods the ReplicaSets are asked for by now."""
    available = sum(replica_set.status.available_replicas for replica_set in replica_sets)
    counts = {
        "observedGeneration": deployment.metadata.generation,
        "replicas": sum(replica_set.status.replicas for replica_set in replica_sets),
        "updatedReplicas": new.status.replicas if new is not None else 0,
        "readyReplicas": sum(replica_set.status.ready_replicas for replica_set in replica_sets),
        "availableReplicas": available,
        "unavailableReplicas": max(0, total - available),
    }
    status: Document = {name: count for name, count in counts.items() if count}
    status["terminatingReplicas"] = sum(replica_set.status.terminating_replicas or 0 for replica_set in replica_sets)
    if deployment.status.collision_count is not None:
        status["collisionCount"] = deployment.status.collision_count
    return status


def set_available(conditions: Conditions, available: int, limits: Limits, now: float) -> Conditions:
    if available >= limits.min_available:
        status, reason, message = "True", "MinimumReplicasAvailable", "Deployment has minimum availability."
    else:
        status, reason = "False", "MinimumReplicasUnavailable"
        message = "Deployment does not have minimum availability."
    return set_condition(conditions, "Available", status, reason, message, now)


def is_complete(deployment: Deployment, status: WorkloadStatus) -> bool:
    wanted = deployment.spec.replicas
    return (
        status.updated_replicas == wanted
        and status.replicas == wanted
        and status.available_replicas == wanted
        and status.observed_generation >= deployment.metadata.generation
    )


def set_progressing(
    deployment: Deployment, after: WorkloadStatus, conditions: Conditions, name: str, now: float
) -> Conditions:
    """Progressing, after a sync of a rollout. `name` is the new ReplicaSet's, or the Deployment's own."""
    if not has_deadline(deployment):
        return remove_condition(conditions, "Progressing")
    current = find_condition(conditions, "Progressing")
    if current and current["reason"] == AVAILABLE and after.replicas == after.updated_replicas:
        return conditions
    if is_complete(deployment, after):
        message = f"{name} has successfully progressed."
        return set_condition(conditions, "Progressing", "True", AVAILABLE, message, now)
    if _is_progressing(deployment.status, after):
        others, message = remove_condition(conditions, "Progressing"), f"{name} is progressing."
        updated = set_condition(others, "Progressing", "True", "ReplicaSetUpdated", message, now)
        if current is not None and current["status"] == "True":
            updated[-1]["lastTransitionTime"] = current["lastTransitionTime"]
        return updated
    if current is not None and has_timed_out(deployment, current, now):
        return set_condition(conditions, "Progressing", "False", TIMED_OUT, f"{name} has timed out progressing.", now)
    return conditions


def _is_progressing(before: WorkloadStatus, after: WorkloadStatus) -> bool:
    return (
        after.updated_replicas > before.updated_replicas
        or after.replicas - after.updated_replicas < before.replicas - before.updated_replicas
        or after.ready_replicas > before.ready_replicas
        or after.available_replicas > before.available_replicas
    )


def has_timed_out(deployment: Deployment, current: Document, now: float) -> bool:
    if current["reason"] in (AVAILABLE, TIMED_OUT):
        return bool(current["reason"] == TIMED_OUT)
    deadline = deployment.spec.progress_deadline_seconds or 0
    return parse_time(current["lastUpdateTime"]) + deadline < now


def seconds_to_deadline(deployment: Deployment, conditions: Conditions, now: float) -> float | None:
    """Seconds until the progress deadline is to be checked; a second more than it lasts, as Kubernetes waits."""
    current = find_condition(conditions, "Progressing")
    if current is None or not has_deadline(deployment) or current["reason"] in (AVAILABLE, TIMED_OUT):
        return None
    deadline = deployment.spec.progress_deadline_seconds or 0
    return max(1.0, parse_time(current["lastUpdateTime"]) + deadline - now + 1.0)


def set_replica_failure(
    conditions: Conditions, new: ReplicaSet | None, old: Sequence[ReplicaSet], now: float
) -> Conditions:
    """ReplicaFailure as the new version has it, else as an old one has; removed if none has it."""
    for replica_set in [*([new] if new is not None else []), *old]:
        failure = find_condition(replica_set.status.conditions, "ReplicaFailure")
        if failure is not None:
            status, reason, message = failure["status"], failure["reason"], failure["message"]
            return set_condition(conditions, "ReplicaFailure", status, reason, message, now)
    return remove_condition(conditions, "ReplicaFailure")
