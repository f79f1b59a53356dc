"""The status of a pod in each stage: a document in, a strategic merge patch out. kubelet.py sends it.

The same fields as the test bed's hollow kubelets write.
"""

from __future__ import annotations

import hashlib

from wukong.embedded.actors.kubelet.behaviour import Stage
from wukong.embedded.store.documents import condition_of, format_time, meta_of, value_at
from wukong.ports import Document


def patch(pod: Document, stage: Stage, now: float, *, pod_address: str, host_address: str) -> Document:
    """Everything a kubelet writes. Times of what did not change are kept as they were read."""
    spec = pod["spec"]
    status: Document = {
        "phase": stage.phase,
        "observedGeneration": meta_of(pod).get("generation", 0),
        "startTime": value_at(pod, "status.startTime") or format_time(now),
        "hostIP": host_address,
        "hostIPs": [{"ip": host_address}],
        "conditions": _conditions(pod, stage, now),
        "containerStatuses": [_container(pod, each, stage, now) for each in spec["containers"]],
    }
    if spec.get("initContainers"):
        status["initContainerStatuses"] = [_init(pod, each, stage, now) for each in spec["initContainers"]]
    if not stage.waiting:  # a pod without a sandbox has no address
        status |= {"podIP": pod_address, "podIPs": [{"ip": pod_address}]}
    return {"metadata": {"uid": meta_of(pod)["uid"]}, "status": status}


def refusal(pod: Document, message: str) -> Document:
    """For a pod whose annotations make no sense: people look at the status first."""
    said = {"phase": "Failed", "reason": "BadTestbedAnnotation", "message": f"{meta_of(pod)['name']}: {message}"}
    return {"metadata": {"uid": meta_of(pod)["uid"]}, "status": said}


def is_shown(pod: Document, stage: Stage) -> bool:
    """Whether the pod's status already says what this stage says."""
    ready = condition_of(pod, "Ready")
    states = [value_at(each, "state.waiting.reason") or "" for each in value_at(pod, "status.containerStatuses") or ()]
    return (
        value_at(pod, "status.phase") == stage.phase
        and ready is not None
        and (ready["status"] == "True") == (stage.is_ready and _gates_are_open(pod))
        and states == [stage.waiting] * len(pod["spec"]["containers"])
    )


def _conditions(pod: Document, stage: Stage, now: float) -> list[Document]:
    has_sandbox = not stage.waiting and stage.exit_code is None
    reason = "PodCompleted" if stage.phase == "Succeeded" else "ContainersNotReady"
    are_ready, is_ready = stage.is_ready, stage.is_ready and _gates_are_open(pod)
    is_initialized = not stage.waiting or not pod["spec"].get("initContainers")
    return [
        _condition(pod, "PodReadyToStartContainers", has_sandbox, now),
        _condition(pod, "Initialized", is_initialized, now),
        _condition(pod, "Ready", is_ready, now, reason=None if is_ready else reason),
        _condition(pod, "ContainersReady", are_ready, now, reason=None if are_ready else reason),
        _condition(pod, "PodScheduled", True, now),
    ]


def _condition(pod: Document, kind: str, is_true: bool, now: float, reason: str | None = None) -> Document:
    text = "True" if is_true else "False"
    before = condition_of(pod, kind) or {}
    since = before.get("lastTransitionTime") if before.get("status") == text else None
    made = {"type": kind, "status": text, "lastTransitionTime": since or format_time(now)}
    # A reason that stands there from before (the node controller's NodeNotReady) is taken away by null.
    return {**made, "reason": reason, "message": None, "observedGeneration": meta_of(pod).get("generation", 0)}


def _gates_are_open(pod: Document) -> bool:
    found = [condition_of(pod, gate["conditionType"]) for gate in pod["spec"].get("readinessGates") or ()]
    return all(each is not None and each["status"] == "True" for each in found)


def _container(pod: Document, container: Document, stage: Stage, now: float) -> Document:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "restartCount": 0,
        "ready": stage.is_ready,
        "started": stage.phase == "Running",
        "state": _state(pod, container, stage, now),
        "lastState": {},
        **({} if stage.waiting else _identifiers(pod, container)),
    }


def _init(pod: Document, container: Document, stage: Stage, now: float) -> Document:
    """Init containers are over when the others run; those with restartPolicy Always run beside them."""
    made = _container(pod, container, stage, now)
    if stage.waiting or container.get("restartPolicy") == "Always":
        return made
    over = {"terminated": _terminated(0, value_at(pod, "status.startTime") or format_time(now), now)}
    return {**made, "ready": True, "started": False, "state": over}


def _state(pod: Document, container: Document, stage: Stage, now: float) -> Document:
    if stage.waiting:
        return {"waiting": {"reason": stage.waiting}}
    found = [each for each in value_at(pod, "status.containerStatuses") or () if each["name"] == container["name"]]
    started = value_at(found[0], "state.running.startedAt") if found else None
    if stage.exit_code is not None:
        return {"terminated": _terminated(stage.exit_code, started or format_time(now), now)}
    return {"running": {"startedAt": started or format_time(now)}}


def _terminated(code: int, started: str, now: float) -> Document:
    reason = "Error" if code else "Completed"
    return {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": format_time(now)}


def _identifiers(pod: Document, container: Document) -> Document:
    image = container.get("image", "")
    repository = image.partition("@")[0]
    name, _, tag = repository.rpartition(":")
    repository = name if name and "/" not in tag else repository  # a colon before a slash is a registry's port
    own = hashlib.sha256(f"{meta_of(pod)['uid']}/{container['name']}".encode()).hexdigest()
    digest = hashlib.sha256(image.encode()).hexdigest()
    return {"imageID": f"{repository}@sha256:{digest}", "containerID": f"hollow://{own}"}
