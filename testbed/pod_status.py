"""The status of a pod in each stage: plain data in, a strategic merge patch out. kubelet.py sends it."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from testbed.behaviour import Stage
from testbed.client import Json
from testbed.objects import Container, Pod, condition


def patch(pod: Pod, stage: Stage, now: float, *, pod_address: str, host_address: str) -> Json:
    """Everything a kubelet writes. Times of what did not change are kept as they were read."""
    status: Json = {
        "phase": stage.phase,
        "observedGeneration": pod.metadata.generation,
        "startTime": pod.status.start_time or stamp(now),
        "hostIP": host_address,
        "hostIPs": [{"ip": host_address}],
        "conditions": conditions(pod, stage, now),
        "containerStatuses": [container_status(pod, it, stage, now) for it in pod.spec.containers],
    }
    if pod.spec.init_containers:
        status["initContainerStatuses"] = [init_status(pod, it, stage, now) for it in pod.spec.init_containers]
    if not stage.waiting:  # a pod without a sandbox has no address
        status |= {"podIP": pod_address, "podIPs": [{"ip": pod_address}]}
    return {"status": status}


def refusal(pod: Pod, message: str) -> Json:
    """For a pod whose annotations make no sense: people look at the status first."""
    return {
        "status": {"phase": "Failed", "reason": "BadTestbedAnnotation", "message": f"{pod.metadata.name}: {message}"}
    }


def is_shown(pod: Pod, stage: Stage) -> bool:
    """Whether the pod's status already says what this stage says."""
    ready, containers_ready = (condition(pod.status.conditions, kind) for kind in ("Ready", "ContainersReady"))
    states = [it.state.waiting.reason if it.state.waiting else "" for it in pod.status.container_statuses or ()]
    return (
        pod.status.phase == stage.phase
        and ready is not None
        and (ready.status == "True") == (stage.is_ready and gates_are_open(pod))
        and containers_ready is not None
        and (containers_ready.status == "True") == stage.is_ready
        and states == [stage.waiting] * len(pod.spec.containers)
    )


def conditions(pod: Pod, stage: Stage, now: float) -> list[Json]:
    has_sandbox = not stage.waiting and stage.exit_code is None
    reasons = {"reason": "PodCompleted"} if stage.phase == "Succeeded" else {"reason": "ContainersNotReady"}
    are_ready, is_ready = stage.is_ready, stage.is_ready and gates_are_open(pod)
    return [
        conditioned(pod, "PodReadyToStartContainers", has_sandbox, now),
        conditioned(pod, "Initialized", is_initialized(pod, stage), now),
        conditioned(pod, "Ready", is_ready, now, **({} if is_ready else reasons)),
        conditioned(pod, "ContainersReady", are_ready, now, **({} if are_ready else reasons)),
        conditioned(pod, "PodScheduled", True, now),
    ]


def conditioned(pod: Pod, kind: str, is_true: bool, now: float, **more: str) -> Json:
    text = "True" if is_true else "False"
    before = condition(pod.status.conditions, kind)
    since = before.last_transition_time if before and before.status == text else None
    made: Json = {"type": kind, "status": text, "lastTransitionTime": since or stamp(now)}
    # A reason that stands there from before (the node controller's NodeNotReady) is taken away by null.
    return {**made, "reason": None, "message": None, "observedGeneration": pod.metadata.generation, **more}


def is_initialized(pod: Pod, stage: Stage) -> bool:
    return not stage.waiting or not pod.spec.init_containers


def gates_are_open(pod: Pod) -> bool:
    found = [condition(pod.status.conditions, gate.condition_type) for gate in pod.spec.readiness_gates or ()]
    return all(it is not None and it.status == "True" for it in found)


def container_status(pod: Pod, container: Container, stage: Stage, now: float) -> Json:
    is_running = stage.phase == "Running"
    return {
        "name": container.name,
        "image": container.image,
        "restartCount": 0,
        "ready": stage.is_ready,
        "started": is_running,
        "state": state(pod, container, stage, now),
        "lastState": {},
        **({} if stage.waiting else identifiers(pod, container)),
    }


def init_status(pod: Pod, container: Container, stage: Stage, now: float) -> Json:
    """Init containers are over when the others run; those with restartPolicy Always run beside them."""
    if stage.waiting or container.restart_policy == "Always":
        return container_status(pod, container, stage, now)
    over = {"terminated": terminated(0, pod.status.start_time or stamp(now), now)}
    return {**container_status(pod, container, stage, now), "ready": True, "started": False, "state": over}


def state(pod: Pod, container: Container, stage: Stage, now: float) -> Json:
    if stage.waiting:
        return {"waiting": {"reason": stage.waiting}}
    started = started_at(pod, container) or stamp(now)
    if stage.exit_code is not None:
        return {"terminated": terminated(stage.exit_code, started, now)}
    return {"running": {"startedAt": started}}


def terminated(code: int, started: str, now: float) -> Json:
    reason = "Error" if code else "Completed"
    return {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": stamp(now)}


def started_at(pod: Pod, container: Container) -> str | None:
    found = (it.state.running for it in pod.status.container_statuses or () if it.name == container.name)
    return next((running.started_at for running in found if running), None)


def identifiers(pod: Pod, container: Container) -> Json:
    digest = hashlib.sha256(container.image.encode()).hexdigest()
    repository = container.image.partition("@")[0]
    name, _, tag = repository.rpartition(":")
    repository = name if name and "/" not in tag else repository  # a colon before a slash is a registry's port
    own = hashlib.sha256(f"{pod.metadata.uid}/{container.name}".encode()).hexdigest()
    return {"imageID": f"{repository}@sha256:{digest}", "containerID": f"hollow://{own}"}


def stamp(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_of(stamped: str) -> float:
    return datetime.fromisoformat(stamped).timestamp()
