"""How far the rollout of a workload is, and why it waits, read from documents. Pure.

Called by app/changes/following.py at every change. It is over when `kubectl rollout status` says so:

    Deployment    generation seen; all pods of the new version; no old ones; all available. Failed: past its deadline
    StatefulSet   generation seen; all ready; those at and above the partition of the new version
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from wukong.api.times import parse_time
from wukong.placement.workloads.rules import VERSION_LABELS
from wukong.ports import Document

State = Literal["running", "complete", "failed"]
UNNOTICED_SECONDS = 30.0  # after which a pod that no scheduler has looked at is said to wait for one
TO_BE_SCHEDULED, TO_START, TO_BE_READY = "to be scheduled", "to start", "to be ready"
USUAL_REASONS = frozenset({TO_BE_SCHEDULED, TO_START, TO_BE_READY})  # what every pod waits for


class PodPlace(msgspec.Struct, frozen=True, rename="camel"):
    """A pod of the workload: where it is, of which version, and what it waits for."""

    name: str
    node: str
    is_new: bool
    is_ready: bool
    is_terminating: bool
    waits_for: str = ""  # in the scheduler's or the kubelet's words


class Progress(msgspec.Struct, frozen=True, rename="camel"):
    state: State
    text: str  # what it waits for, or how it ended
    wanted: int
    new: int
    old: int
    available: int
    pods: tuple[PodPlace, ...] = ()
    new_available: int = 0  # of a Deployment

    @property
    def waiting(self) -> dict[str, int]:
        """What pods wait for, and how many do, most first."""
        reasons: dict[str, int] = {}
        for pod in self.pods:
            if pod.waits_for:
                reasons[pod.waits_for] = reasons.get(pod.waits_for, 0) + 1
        return dict(sorted(reasons.items(), key=lambda entry: (-entry[1], entry[0])))


def read_progress(
    workload: Document, replica_sets: Sequence[Document], pods: Sequence[Document], now: float
) -> Progress:
    """`replica_sets` and `pods` are the workload's own."""
    status, spec = _map(workload, "status"), _map(workload, "spec")
    version = find_version(workload, replica_sets)
    places = tuple(_read_pod(pod, version, workload["kind"], now) for pod in sorted(pods, key=_name_of))
    active = [place for place in places if not place.is_terminating]
    judge = _judge_deployment if workload["kind"] == "Deployment" else _judge_stateful_set
    state, text = judge(workload, spec, status)
    return Progress(
        state=state,
        text=text,
        wanted=_replicas(spec),
        new=sum(place.is_new for place in active),
        old=sum(not place.is_new for place in active),
        available=_number(status, "availableReplicas"),
        pods=places,
        new_available=_count_new_available(version, replica_sets) if workload["kind"] == "Deployment" else 0,
    )


def _count_new_available(version: str, replica_sets: Sequence[Document]) -> int:
    """What the ReplicaSet of the new version says: it knows minReadySeconds."""
    label = VERSION_LABELS["Deployment"]
    new = [entry for entry in replica_sets if _map(_map(entry, "metadata"), "labels").get(label) == version]
    return sum(_number(_map(entry, "status"), "availableReplicas") for entry in new) if version else 0


def find_rollout_obstacle(workload: Document) -> str:
    """Why nobody rolls out what was changed, so that there is nothing to wait for; "" where somebody does."""
    spec = _map(workload, "spec")
    if spec.get("paused"):
        return "it is paused: nothing is rolled out before it goes on"
    if _map(spec, "updateStrategy").get("type") == "OnDelete":
        return "its update strategy is OnDelete: a pod changes when somebody deletes it"
    return ""


def find_version(workload: Document, replica_sets: Sequence[Document]) -> str:
    """The value of the version label that new pods have; "" while nobody has made the new version."""
    if workload["kind"] != "Deployment":
        return str(_map(workload, "status").get("updateRevision") or "")
    for replica_set in replica_sets:
        if is_same_template(_map(replica_set, "spec").get("template"), _map(workload, "spec").get("template")):
            labels = _map(_map(replica_set, "metadata"), "labels")
            return str(labels.get(VERSION_LABELS["Deployment"]) or "")
    return ""


def is_same_template(left: Any, right: Any) -> bool:
    """Whether two pod templates are equal but for the version label, as the Deployment controller compares them."""
    return without_version_label(left) == without_version_label(right)


def without_version_label(template: Any) -> Document:
    """A ReplicaSet's template as its Deployment had it."""
    meta = _map(template, "metadata")
    labels = {name: text for name, text in _map(meta, "labels").items() if name != VERSION_LABELS["Deployment"]}
    rest = {name: value for name, value in meta.items() if name not in ("labels", "creationTimestamp")}
    meta = {**({"labels": labels} if labels else {}), **rest}
    return {**template, "metadata": meta} if isinstance(template, dict) else {}


# ---- whether it is over


def _judge_deployment(workload: Document, spec: Document, status: Document) -> tuple[State, str]:
    wanted, updated = _replicas(spec), _number(status, "updatedReplicas")
    total, available = _number(status, "replicas"), _number(status, "availableReplicas")
    if not _is_observed(workload, status):
        return "running", "waits until the Deployment controller has seen the change"
    progressing, failure = _condition(status, "Progressing"), _condition(status, "ReplicaFailure")
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        seconds = spec.get("progressDeadlineSeconds", 600)
        return "failed", f"exceeded its progress deadline: nothing moved for {seconds} s"
    if updated < wanted:
        if failure.get("status") == "True":
            return "running", f"pods cannot be created: {failure.get('message', '')}"
        paused = "; it is paused" if spec.get("paused") else ""
        return "running", f"{updated} of {wanted} new pods are there{paused}"
    if total > updated:
        return "running", f"{_count_pods(total - updated)} of older versions have yet to go"
    if available < updated:
        return "running", f"{available} of {updated} new pods are available"
    return "complete", f"{_count_pods(wanted)} of the new version available"


def _judge_stateful_set(workload: Document, spec: Document, status: Document) -> tuple[State, str]:
    wanted, strategy = _replicas(spec), _map(spec, "updateStrategy")
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return "failed", f"nobody rolls it out: its update strategy is {strategy['type']}"
    if not _is_observed(workload, status):
        return "running", "waits until the StatefulSet controller has seen the change"
    ready, updated = _number(status, "readyReplicas"), _number(status, "updatedReplicas")
    if ready < wanted:
        return "running", f"{ready} of {wanted} pods are ready"
    partition = _number(_map(strategy, "rollingUpdate"), "partition")
    if partition and status.get("updateRevision") != status.get("currentRevision"):
        if updated < wanted - partition:
            return "running", f"{updated} of {max(0, wanted - partition)} new pods are there (partition {partition})"
        return "complete", f"ordinals from {partition} on are of the new version, as the partition says"
    if status.get("updateRevision") != status.get("currentRevision"):
        return "running", f"{updated} of {wanted} pods are of the new version"
    return "complete", f"{_count_pods(wanted)} of the new version ready"


def _is_observed(workload: Document, status: Document) -> bool:
    return _number(status, "observedGeneration") >= _number(_map(workload, "metadata"), "generation")


# ---- pods


def _read_pod(pod: Document, version: str, kind: str, now: float) -> PodPlace:
    meta, spec, status = _map(pod, "metadata"), _map(pod, "spec"), _map(pod, "status")
    label = _map(meta, "labels").get(VERSION_LABELS[kind])
    is_ready = _condition(status, "Ready").get("status") == "True"
    is_terminating = bool(meta.get("deletionTimestamp"))
    is_new = bool(version) and label == version
    return PodPlace(
        name=_name_of(pod),
        node=str(spec.get("nodeName") or ""),
        is_new=is_new,
        is_ready=is_ready,
        is_terminating=is_terminating,
        waits_for="" if is_ready or is_terminating else _find_reason(meta, spec, status, now),
    )


def _find_reason(meta: Document, spec: Document, status: Document, now: float) -> str:
    scheduled = _condition(status, "PodScheduled")
    if not spec.get("nodeName"):
        created = parse_time(str(meta.get("creationTimestamp") or ""))
        if not scheduled and created is not None and now - created > UNNOTICED_SECONDS:
            return f"no scheduler has looked at it: does one named {spec.get('schedulerName', '')} run?"
        return str(scheduled.get("message") or TO_BE_SCHEDULED)
    for container in _items(status, "initContainerStatuses", "containerStatuses"):
        waiting = _map(_map(container, "state"), "waiting")
        if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
            return ": ".join(filter(None, (str(waiting["reason"]), str(waiting.get("message") or ""))))
    return TO_START if status.get("phase") == "Pending" else TO_BE_READY


def _items(status: Document, *names: str) -> Iterable[Document]:
    for name in names:
        value = status.get(name)
        yield from (item for item in (value if isinstance(value, list) else ()) if isinstance(item, dict))


def _condition(status: Document, type_: str) -> Document:
    return next((item for item in _items(status, "conditions") if item.get("type") == type_), {})


def _name_of(document: Document) -> str:
    return str(_map(document, "metadata").get("name") or "")


def _replicas(spec: Document) -> int:
    return _number(spec, "replicas") if spec.get("replicas") is not None else 1


def _number(parent: Document, name: str) -> int:
    value = parent.get(name)
    return value if isinstance(value, int) else 0


def _map(parent: Any, name: str) -> Document:
    value = parent.get(name) if isinstance(parent, dict) else None
    return value if isinstance(value, dict) else {}


def _count_pods(number: int) -> str:
    return f"{number} pod" if number == 1 else f"{number} pods"
