"""The status of a Deployment: its counts, and its conditions Available, Progressing and ReplicaFailure.

Called by deployment.py; documents in, a document out. Follows kube-controller-manager's progress.go and sync.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from wukong.embedded.actors.deployment.sizes import Limits
from wukong.embedded.store.documents import format_time, parse_time
from wukong.embedded.world.objects import Counts, Deployment, ReplicaSet
from wukong.ports import Document

NEVER = 2**31 - 1  # a progress deadline that means none
TIMED_OUT, AVAILABLE = "ProgressDeadlineExceeded", "NewReplicaSetAvailable"
Conditions = list[Document]


def has_deadline(deployment: Deployment) -> bool:
    return deployment.spec.progress_deadline_seconds not in (None, NEVER)


def find(conditions: Conditions, kind: str) -> Document | None:
    return next((each for each in conditions if each["type"] == kind), None)


def with_condition(conditions: Conditions, kind: str, status: str, reason: str, message: str, now: float) -> Conditions:
    """The same where status and reason are; otherwise it moves to the end, as Kubernetes has it."""
    before = find(conditions, kind)
    if before is not None and (before["status"], before["reason"]) == (status, reason):
        return conditions
    since = before["lastTransitionTime"] if before is not None and before["status"] == status else format_time(now)
    made = {"type": kind, "status": status, "reason": reason, "message": message}
    return [*without(conditions, kind), {**made, "lastUpdateTime": format_time(now), "lastTransitionTime": since}]


def without(conditions: Conditions, kind: str) -> Conditions:
    return [each for each in conditions if each["type"] != kind]


def paused_or_resumed(deployment: Deployment, conditions: Conditions, now: float) -> Conditions:
    """While it is paused its deadline does not run."""
    progressing = find(conditions, "Progressing")
    reason = progressing["reason"] if progressing else ""
    if not has_deadline(deployment) or reason == TIMED_OUT:
        return conditions
    if deployment.spec.paused and reason != "DeploymentPaused":
        told = ("Unknown", "DeploymentPaused", "Deployment is paused")
    elif not deployment.spec.paused and reason == "DeploymentPaused":
        told = ("Unknown", "DeploymentResumed", "Deployment is resumed")
    else:
        return conditions
    return with_condition(conditions, "Progressing", *told, now)


def counts(
    deployment: Deployment,
    new: ReplicaSet | None,
    sets: Sequence[ReplicaSet],
    total: int,
    limits: Limits,
    conditions: Conditions,
    now: float,
) -> tuple[Document, Conditions]:
    """`total` is how many pods the ReplicaSets are asked for by now."""
    available = sum(each.status.available_replicas for each in sets)
    status = {
        "observedGeneration": deployment.metadata.generation,
        "replicas": sum(each.status.replicas for each in sets),
        "updatedReplicas": new.status.replicas if new is not None else 0,
        "readyReplicas": sum(each.status.ready_replicas for each in sets),
        "availableReplicas": available,
        "unavailableReplicas": max(0, total - available),
    }
    made: Document = {name: value for name, value in status.items() if value}
    made["terminatingReplicas"] = sum(each.status.terminating_replicas or 0 for each in sets)
    if deployment.status.collision_count is not None:
        made["collisionCount"] = deployment.status.collision_count
    if available >= limits.least:
        told = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        told = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    return made, with_condition(conditions, "Available", *told, now)


def is_complete(deployment: Deployment, status: Counts) -> bool:
    wanted = deployment.spec.replicas
    return (
        status.updated_replicas == wanted
        and status.replicas == wanted
        and status.available_replicas == wanted
        and status.observed_generation >= deployment.metadata.generation
    )


def progressed(deployment: Deployment, after: Counts, conditions: Conditions, name: str, now: float) -> Conditions:
    """Progressing, after a sync of a rollout. `name` is the new ReplicaSet's, or the Deployment's own."""
    if not has_deadline(deployment):
        return without(conditions, "Progressing")
    current = find(conditions, "Progressing")
    if current and current["reason"] == AVAILABLE and after.replicas == after.updated_replicas:
        return conditions
    if is_complete(deployment, after):
        message = f"{name} has successfully progressed."
        return with_condition(conditions, "Progressing", "True", AVAILABLE, message, now)
    if _is_progressing(deployment.status, after):
        made = with_condition(
            without(conditions, "Progressing"),
            "Progressing",
            "True",
            "ReplicaSetUpdated",
            f"{name} is progressing.",
            now,
        )
        if current is not None and current["status"] == "True":
            made[-1]["lastTransitionTime"] = current["lastTransitionTime"]
        return made
    if current is not None and has_timed_out(deployment, current, now):
        return with_condition(conditions, "Progressing", "False", TIMED_OUT, f"{name} has timed out progressing.", now)
    return conditions


def _is_progressing(before: Counts, after: Counts) -> bool:
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
    """When to look again, lest nobody notices that time is up. A second more, as Kubernetes waits."""
    current = find(conditions, "Progressing")
    if current is None or not has_deadline(deployment) or current["reason"] in (AVAILABLE, TIMED_OUT):
        return None
    deadline = deployment.spec.progress_deadline_seconds or 0
    return max(1.0, parse_time(current["lastUpdateTime"]) + deadline - now + 1.0)


def failures(conditions: Conditions, new: ReplicaSet | None, old: Sequence[ReplicaSet], now: float) -> Conditions:
    """The new version's failure to make pods, else an old one's."""
    for each in [*([new] if new is not None else []), *old]:
        found = find(each.status.conditions, "ReplicaFailure")
        if found is not None and (each is new or new is None or find(new.status.conditions, "ReplicaFailure") is None):
            told = (found["status"], found["reason"], found["message"])
            return with_condition(conditions, "ReplicaFailure", *told, now)
    return without(conditions, "ReplicaFailure")
