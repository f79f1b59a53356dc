"""The status of a pod in each stage: a document in, a strategic merge patch out. controller.py sends it.

The same fields as the test bed's hollow kubelets write.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from wukong.embedded.actors.kubelet.behaviour import Stage
from wukong.embedded.actors.pods import condition
from wukong.embedded.store.documents import condition_of, format_time, meta_of, value_at
from wukong.embedded.world.objects import Pod
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


def is_written(pod: Pod, stage: Stage) -> bool:
    """Whether the pod's status already says what this stage says."""
    if pod.status.phase != stage.phase:
        return False
    ready = condition(pod, "Ready")
    if ready is None or (ready.status == "True") != (stage.is_ready and _gates_are_open(pod.document)):
        return False
    statuses = pod.document["status"].get("containerStatuses") or ()
    if "readinessGates" in pod.document["spec"] and any(status.get("ready") != stage.is_ready for status in statuses):
        return False  # whatever its gates say, its containers have become ready, or are no longer
    return len(statuses) == len(pod.document["spec"]["containers"]) and all(
        _waiting_reason_of(status) == stage.waiting for status in statuses
    )


def is_changed_by_others(pod: Pod, stage: Stage) -> bool:
    """Whether this stage was written, and somebody else has changed the condition Ready since."""
    statuses = pod.document["status"].get("containerStatuses") or ()
    return (
        pod.status.phase == stage.phase
        and "readinessGates" not in pod.document["spec"]
        and len(statuses) == len(pod.document["spec"]["containers"])
        and all(
            _waiting_reason_of(status) == stage.waiting and status.get("ready") == stage.is_ready for status in statuses
        )
    )


def _waiting_reason_of(status: Document) -> str:
    waiting = (status.get("state") or {}).get("waiting") or {}
    reason: str = waiting.get("reason") or ""
    return reason


def _build_conditions(pod: Document, stage: Stage, now: float) -> list[Document]:
    has_sandbox = not stage.waiting and stage.exit_code is None
    reason = "PodCompleted" if stage.phase == "Succeeded" else "ContainersNotReady"
    are_ready, is_ready = stage.is_ready, stage.is_ready and _gates_are_open(pod)
    is_initialized = not stage.waiting or not pod["spec"].get("initContainers")
    present = {entry.get("type"): entry for entry in reversed(value_at(pod, "status.conditions") or [])}
    generation, time = meta_of(pod).get("generation", 0), format_time(now)

    def build(kind: str, is_true: bool, reason: str | None = None) -> Document:
        text, before = "True" if is_true else "False", present.get(kind)
        since = before.get("lastTransitionTime") if before is not None and before.get("status") == text else None
        return {
            "type": kind,
            "status": text,
            "lastTransitionTime": since or time,
            # A reason that is there from before (the node controller's NodeNotReady) is removed by null.
            "reason": reason,
            "message": None,
            "observedGeneration": generation,
        }

    return [
        build("PodReadyToStartContainers", has_sandbox),
        build("Initialized", is_initialized),
        build("Ready", is_ready, None if is_ready else "ReadinessGatesNotReady" if are_ready else reason),
        build("ContainersReady", are_ready, None if are_ready else reason),
        build("PodScheduled", True),
    ]


def _gates_are_open(pod: Document) -> bool:
    if "readinessGates" not in pod["spec"]:
        return True
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
    before = next((status for status in statuses if status.get("name") == container["name"]), None)
    started = value_at(before, "state.running.startedAt") if before is not None else None
    if stage.exit_code is not None:
        return {"terminated": _build_terminated(stage.exit_code, started or format_time(now), now)}
    return {"running": {"startedAt": started or format_time(now)}}


def _build_terminated(code: int, started: str, now: float) -> Document:
    reason = "Error" if code else "Completed"
    return {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": format_time(now)}


def _build_identifiers(pod: Document, container: Document) -> Document:
    container_hash = hashlib.sha256(f"{meta_of(pod)['uid']}/{container['name']}".encode()).hexdigest()
    return {"imageID": _image_id_of(container.get("image", "")), "containerID": f"hollow://{container_hash}"}


@lru_cache(1024)
def _image_id_of(image: str) -> str:
    repository = image.partition("@")[0]
    name, _, tag = repository.rpartition(":")
    repository = name if name and "/" not in tag else repository  # a colon before a slash is a registry's port
    return f"{repository}@sha256:{hashlib.sha256(image.encode()).hexdigest()}"
