"""What the scheduler writes, word for word as kube-scheduler does: bindings, conditions, nominations, Events.

Called by controllers.scheduler. Status is patched strategically: a condition replaces the one of its type, the others
stay. A patch names the pod's uid, so that it never lands on another pod of the same name.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from wukong.actions import Action, Bind, Delete, Note, Patch
from wukong.api.core import Pod
from wukong.api.kinds import PODS
from wukong.api.resources import Key
from wukong.ports import PatchBody

SCHEDULED, DISRUPTED = "PodScheduled", "DisruptionTarget"
UNSCHEDULABLE, ERROR, PREEMPTED = "Unschedulable", "SchedulerError", "PreemptionByScheduler"
LONGEST_NOTE = 1024


def bind(pod: Pod, node: str) -> tuple[Action, ...]:
    text = f"Successfully assigned {pod.key} to {node}"
    return Bind(key_of(pod), node, pod.metadata.uid), note(pod, "Scheduled", text)


def refuse(pod: Pod, reason: str, message: str, nominated: str | None, now: float) -> tuple[Action, ...]:
    """Say why the pod has no node. `nominated` is where room is being made; "" takes a nomination back, None keeps it.

    kube-scheduler repeats the Event at every attempt and writes the status only where it changed; so do we.
    """
    told = note(pod, "FailedScheduling", shortened(message), is_warning=True)
    status = _condition_change(pod, SCHEDULED, "False", reason, message, now)
    if nominated is not None and nominated != pod.status.nominated_node_name:
        status["nominatedNodeName"] = nominated or None
    return (told, patch_status(pod, status)) if status else (told,)


def preempt(preemptor: Pod, victim: Pod, node: str, now: float) -> tuple[Action, ...]:
    """Mark the victim and delete it. One that is leaving already is left alone."""
    if victim.is_terminating:
        return ()
    message = f"{preemptor.spec.scheduler_name}: preempting to accommodate a higher priority pod"
    status = _condition_change(victim, DISRUPTED, "True", PREEMPTED, message, now)
    text = f"Preempted by pod {preemptor.metadata.uid} on node {node}"
    return (
        *((patch_status(victim, status),) if status else ()),
        Delete(PODS, key_of(victim), uid=victim.metadata.uid),
        note(victim, "Preempted", text),
    )


def take_back_nomination(pod: Pod) -> Patch:
    return patch_status(pod, {"nominatedNodeName": None})


def patch_status(pod: Pod, status: dict[str, Any]) -> Patch:
    body = {"metadata": {"uid": pod.metadata.uid}, "status": status}
    return Patch(PODS, key_of(pod), PatchBody("strategic", body), subresource="status")


def note(pod: Pod, reason: str, text: str, *, is_warning: bool = False) -> Note:
    return Note(PODS, key_of(pod), reason, text, uid=pod.metadata.uid, is_warning=is_warning)


def shortened(message: str) -> str:
    """As long as an Event may be; the API counts bytes."""
    raw = message.encode()
    return message if len(raw) <= LONGEST_NOTE else raw[: LONGEST_NOTE - 4].decode(errors="ignore") + " ..."


def key_of(pod: Pod) -> Key:
    return Key(pod.metadata.namespace, pod.metadata.name)


def _condition_change(pod: Pod, kind: str, status: str, reason: str, message: str, now: float) -> dict[str, Any]:
    """The status to patch; empty if the pod says so already. The time is that of the last change of `status`."""
    held = next((each for each in pod.status.conditions if each.type == kind), None)
    if held is not None and (held.status, held.reason, held.message) == (status, reason, message):
        return {}
    condition: dict[str, Any] = {"type": kind, "status": status, "reason": reason, "message": message}
    condition["lastProbeTime"] = None
    if pod.metadata.generation:
        condition["observedGeneration"] = pod.metadata.generation
    if held is None or held.status != status:
        condition["lastTransitionTime"] = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"conditions": [condition]}
