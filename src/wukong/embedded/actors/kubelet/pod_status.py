"""The status of a pod in each stage: a document in, a strategic merge patch out. controller.py sends it.

The same fields as the test bed's hollow kubelets write.
"""

from __future__ import annotations

import hashlib

from wukong.embedded.actors.kubelet.behaviour import Stage
from wukong.embedded.store.documents import condition_of, format_time, meta_of, value_at
from wukong.ports import Document


def build_patch(pod: Document, stage: Stage, now: float, *, pod_address: str, host_address: str) -> Document:
    """Everything a kubelet writes. Times of what did not change stay as they are."""
    spec = pod["spec"]
    status: Document = {
        "phase": stage.phase,
        "observedGeneration": meta_of(pod).get("generation", 0),
        "startTime": value_at(pod, "status.startTime") or format_time(now),
        "hostIP": host_address,
        "hostIPs": [{"ip": host_address}],
        "conditions": _build_conditions(pod, stage, now),
        "containerStatuses": [_build_container(pod, container, stage, now) for container in spec["containers"]],
    }
    if spec.get("initContainers"):
        status["initContainerStatuses"] = [
            _build_init_container(pod, container, stage, now) for container in spec["initContainers"]
        ]
    if not stage.waiting:  # a pod without a sandbox has no address
        status |= {"podIP": pod_address, "podIPs": [{"ip": pod_address}]}
    return {"metadata": {"uid": meta_of(pod)["uid"]}, "status": status}


def build_refusal(pod: Document, message: str) -> Document:
    """The patch for a pod whose annotations cannot be read: people look at the status first."""
    status = {"phase": "Failed", "reason": "BadTestbedAnnotation", "message": f"{meta_of(pod)['name']}: {message}"}
    return {"metadata": {"uid": meta_of(pod)["uid"]}, "status": status}


def is_written(pod: Document, stage: Stage) -> bool:
    """Whether the pod's status already says what this stage says."""
    ready = condition_of(pod, "Ready")
    statuses = value_at(pod, "status.containerStatuses") or ()
    reasons = [value_at(status, "state.waiting.reason") or "" for status in statuses]
    return (
        value_at(pod, "status.phase") == stage.phase
        and ready is not None
        and (ready["status"] == "True") == (stage.is_ready and _gates_are_open(pod))
        and reasons == [stage.waiting] * len(pod["spec"]["containers"])
    )


def _build_conditions(pod: Document, stage: Stage, now: float) -> list[Document]:
    has_sandbox = not stage.waiting and stage.exit_code is None
    reason = "PodCompleted" if stage.phase == "Succeeded" else "ContainersNotReady"
    are_ready, is_ready = stage.is_ready, stage.is_ready and _gates_are_open(pod)
    is_initialized = not stage.waiting or not pod["spec"].get("initContainers")
    return [
        _build_condition(pod, "PodReadyToStartContainers", has_sandbox, now),
        _build_condition(pod, "Initialized", is_initialized, now),
        _build_condition(pod, "Ready", is_ready, now, reason=None if is_ready else reason),
        _build_condition(pod, "ContainersReady", are_ready, now, reason=None if are_ready else reason),
        _build_condition(pod, "PodScheduled", True, now),
    ]


def _build_condition(pod: Document, kind: str, is_true: bool, now: float, reason: str | None = None) -> Document:
    text = "True" if is_true else "False"
    before = condition_of(pod, kind) or {}
    since = before.get("lastTransitionTime") if before.get("status") == text else None
    condition = {"type": kind, "status": text, "lastTransitionTime": since or format_time(now)}
    # A reason that is there from before (the node controller's NodeNotReady) is removed by null.
    return {**condition, "reason": reason, "message": None, "observedGeneration": meta_of(pod).get("generation", 0)}


def _gates_are_open(pod: Document) -> bool:
    conditions = [condition_of(pod, gate["conditionType"]) for gate in pod["spec"].get("readinessGates") or ()]
    return all(condition is not None and condition["status"] == "True" for condition in conditions)


def _build_container(pod: Document, container: Document, stage: Stage, now: float) -> Document:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "restartCount": 0,
        "ready": stage.is_ready,
        "started": stage.phase == "Running",
        "state": _build_state(pod, container, stage, now),
        "lastState": {},
        **({} if stage.waiting else _build_identifiers(pod, container)),
    }


def _build_init_container(pod: Document, container: Document, stage: Stage, now: float) -> Document:
    """Init containers have ended when the others run; those with restartPolicy Always run beside them."""
    status = _build_container(pod, container, stage, now)
    if stage.waiting or container.get("restartPolicy") == "Always":
        return status
    ended = {"terminated": _build_terminated(0, value_at(pod, "status.startTime") or format_time(now), now)}
    return {**status, "ready": True, "started": False, "state": ended}


def _build_state(pod: Document, container: Document, stage: Stage, now: float) -> Document:
    if stage.waiting:
        return {"waiting": {"reason": stage.waiting}}
    statuses = value_at(pod, "status.containerStatuses") or ()
    before = next((status for status in statuses if status["name"] == container["name"]), None)
    started = value_at(before, "state.running.startedAt") if before is not None else None
    if stage.exit_code is not None:
        return {"terminated": _build_terminated(stage.exit_code, started or format_time(now), now)}
    return {"running": {"startedAt": started or format_time(now)}}


def _build_terminated(code: int, started: str, now: float) -> Document:
    reason = "Error" if code else "Completed"
    return {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": format_time(now)}


def _build_identifiers(pod: Document, container: Document) -> Document:
    image = container.get("image", "")
    repository = image.partition("@")[0]
    name, _, tag = repository.rpartition(":")
    repository = name if name and "/" not in tag else repository  # a colon before a slash is a registry's port
    container_hash = hashlib.sha256(f"{meta_of(pod)['uid']}/{container['name']}".encode()).hexdigest()
    digest = hashlib.sha256(image.encode()).hexdigest()
    return {"imageID": f"{repository}@sha256:{digest}", "containerID": f"hollow://{container_hash}"}
