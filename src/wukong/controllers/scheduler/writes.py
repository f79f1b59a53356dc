"""Builds what the scheduler writes, word for word as kube-scheduler: bindings, conditions, nominations, Events.

Called by controller.py. Status is patched strategically: a condition replaces the one of its type, the others
stay. A patch names the pod's uid, so that it never lands on another pod of the same name.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from wukong.actions import Action, Bind, Delete, Note, Patch
from wukong.api.core import Pod
from wukong.api.kinds import PODS
from wukong.api.resources import key_of
from wukong.ports import PatchBody

POD_SCHEDULED, DISRUPTION_TARGET = "PodScheduled", "DisruptionTarget"
UNSCHEDULABLE, ERROR, PREEMPTED = "Unschedulable", "SchedulerError", "PreemptionByScheduler"
NOT_MODELLED = "NotModelled"
SCHEDULING = "Scheduling"  # what a scheduler does, in Events
LONGEST_NOTE = 1024


def bind(pod: Pod, node: str) -> tuple[Action, ...]:
    text = f"Successfully assigned {pod.key} to {node}"
    return Bind(key_of(pod), node, pod.metadata.uid), build_note(pod, pod, "Scheduled", "Binding", text)


def refuse(pod: Pod, reason: str, message: str, nominated: str | None, now: float) -> tuple[Action, ...]:
    """Record why the pod has no node. `nominated` is where room is made; "" takes a nomination back, None keeps it.

    kube-scheduler repeats the Event at every attempt and writes the status only where it changed; so do we.
    """
    note = build_note(pod, pod, "FailedScheduling", SCHEDULING, shorten(message), is_warning=True)
    status = _build_condition_patch(pod, POD_SCHEDULED, "False", reason, message, now)
    if nominated is not None and nominated != pod.status.nominated_node_name:
        status["nominatedNodeName"] = nominated or None
    return (note, patch_status(pod, status)) if status else (note,)


def refuse_unmodelled(pod: Pod, problem: str) -> tuple[Action, ...]:
    """Record why the pod is left alone. Nothing else of it is touched."""
    text = f"{pod.spec.scheduler_name} leaves this pod alone: {problem}. Let another scheduler place it."
    return (build_note(pod, pod, NOT_MODELLED, SCHEDULING, shorten(text), is_warning=True),)


def preempt(preemptor: Pod, victim: Pod, node: str, now: float) -> tuple[Action, ...]:
    """Mark the victim and delete it. One that is terminating already is left alone."""
    if victim.is_terminating:
        return ()
    message = f"{preemptor.spec.scheduler_name}: preempting to accommodate a higher priority pod"
    status = _build_condition_patch(victim, DISRUPTION_TARGET, "True", PREEMPTED, message, now)
    text = f"Preempted by pod {preemptor.metadata.uid} on node {node}"
    return (
        *((patch_status(victim, status),) if status else ()),
        Delete(PODS, key_of(victim), uid=victim.metadata.uid),
        build_note(victim, preemptor, "Preempted", "Preempting", text),
    )


def take_back_nomination(pod: Pod) -> Patch:
    return patch_status(pod, {"nominatedNodeName": None})


def patch_status(pod: Pod, status: dict[str, Any]) -> Patch:
    body = {"metadata": {"uid": pod.metadata.uid}, "status": status}
    return Patch(PODS, key_of(pod), PatchBody("strategic", body), subresource="status")


def build_note(pod: Pod, decided_pod: Pod, reason: str, action: str, text: str, *, is_warning: bool = False) -> Note:
    """Return an Event about a pod, reported by the scheduler that decided about another or the same."""
    return Note(
        PODS,
        key_of(pod),
        reason,
        text,
        uid=pod.metadata.uid,
        is_warning=is_warning,
        action=action,
        reporter=decided_pod.spec.scheduler_name,
    )


def shorten(message: str) -> str:
    """Cut the message to what an Event may hold; the API counts bytes."""
    raw = message.encode()
    return message if len(raw) <= LONGEST_NOTE else raw[: LONGEST_NOTE - 4].decode(errors="ignore") + " ..."


def _build_condition_patch(
    pod: Pod, condition_type: str, status: str, reason: str, message: str, now: float
) -> dict[str, Any]:
    """Return the status to patch; empty if the pod has this condition. Its time is when `status` changed last."""
    current = next((entry for entry in pod.status.conditions if entry.type == condition_type), None)
    if current is not None and (current.status, current.reason, current.message) == (status, reason, message):
        return {}
    condition: dict[str, Any] = {"type": condition_type, "status": status, "reason": reason, "message": message}
    condition["lastProbeTime"] = None
    if pod.metadata.generation:
        condition["observedGeneration"] = pod.metadata.generation
    if current is None or current.status != status:
        condition["lastTransitionTime"] = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"conditions": [condition]}
