"""How many replicas usage asks for, by one metric: numbers in, a number or a reason out. Pure.

Follows kube-controller-manager's replica_calculator.go (1.35), for metrics of resources of pods or of one container.
Called by metrics.py. Pods that are missing from the metrics, or not ready, are guessed at so that the guess dampens
the change: as using all they request where there would be fewer pods, as using nothing where there would be more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import NamedTuple

CPU_INITIALIZATION_SECONDS = 300.0
INITIAL_READINESS_SECONDS = 30.0
TOLERANCE = 0.1


class PodSample(NamedTuple):
    """A pod as its autoscaler sees it. Requests and usage are in thousandths of the resource."""

    name: str
    phase: str = "Running"
    is_terminating: bool = False
    has_ready_condition: bool = True
    is_ready: bool = True
    ready_since: float = 0.0  # or not ready since
    started_at: float | None = 0.0
    request: int | str = 0  # or why there is none
    usage: int | None = None
    is_measured: bool = False  # there are metrics of it, though perhaps not of this resource or container
    measured_at: float = 0.0
    window_seconds: float = 0.0


class Tolerances(NamedTuple):
    down: float = TOLERANCE
    up: float = TOLERANCE

    def include(self, ratio: float) -> bool:
        return 1.0 - self.down <= ratio <= 1.0 + self.up


class Proposal(NamedTuple):
    """`is_settled`: nothing about its pods will change merely because time passes."""

    replicas: int = 0
    utilization: int | None = None
    average: int = 0  # thousandths
    problem: str = ""
    is_settled: bool = True


class _Groups(NamedTuple):
    ready_count: int
    unready: set[str]
    missing: set[str]
    ignored: set[str]
    is_settled: bool


def propose_by_utilization(
    pods: Sequence[PodSample], current: int, target: int, resource: str, tolerances: Tolerances, now: float
) -> Proposal:
    """`target` is a percentage of what is requested."""
    usage = {pod.name: pod.usage for pod in pods if pod.usage is not None}
    groups, problem = _group(pods, usage, resource, now)
    if problem:
        return Proposal(problem=problem, is_settled=groups.is_settled)
    missing_request = next((pod.request for pod in pods if isinstance(pod.request, str)), "")
    if missing_request:
        return Proposal(problem=missing_request, is_settled=groups.is_settled)
    requests = {pod.name: pod.request for pod in pods if isinstance(pod.request, int)}
    measured = _measure_utilization(usage, requests, target)
    if measured is None:
        return Proposal(problem="no metrics returned matched known pods", is_settled=groups.is_settled)
    ratio, utilization, average = measured
    fallback = {name: requests[name] * max(100, target) // 100 for name in groups.missing}
    replicas = _propose(
        groups,
        usage,
        current,
        ratio,
        tolerances,
        fallback,
        lambda: (_measure_utilization(usage, requests, target) or (0.0,))[0],
    )
    return Proposal(replicas, utilization, average, is_settled=groups.is_settled)


def propose_by_average(
    pods: Sequence[PodSample], current: int, target: int, resource: str, tolerances: Tolerances, now: float
) -> Proposal:
    """`target` is in thousandths of the resource, for each pod."""
    usage = {pod.name: pod.usage for pod in pods if pod.usage is not None}
    groups, problem = _group(pods, usage, resource, now)
    if problem:
        return Proposal(problem=problem, is_settled=groups.is_settled)
    average = sum(usage.values()) // len(usage)
    fallback = dict.fromkeys(groups.missing, target)
    replicas = _propose(
        groups,
        usage,
        current,
        average / target,
        tolerances,
        fallback,
        lambda: (sum(usage.values()) // len(usage)) / target,
    )
    return Proposal(replicas, None, average, is_settled=groups.is_settled)


def _group(pods: Sequence[PodSample], usage: dict[str, int], resource: str, now: float) -> tuple[_Groups, str]:
    """Tell the pods apart, and leave only the usage of those that count. Gives why none does."""
    unready: set[str] = set()
    missing: set[str] = set()
    ignored: set[str] = set()
    ready_count, is_settled = 0, True
    for pod in pods:
        if pod.is_terminating or pod.phase == "Failed":
            ignored.add(pod.name)
        elif pod.phase == "Pending":
            unready.add(pod.name)
        elif pod.name not in usage:
            missing.add(pod.name)
        elif resource == "cpu" and _is_unready(pod, now):
            unready.add(pod.name)
            is_settled = False
        else:
            ready_count += 1
    groups = _Groups(ready_count, unready, missing, ignored, is_settled)
    if not usage and not any(pod.is_measured for pod in pods):
        return groups, "unable to get metrics for resource {}: no metrics returned from resource metrics API"
    if not pods:
        return groups, "no pods returned by selector while calculating replica count"
    for name in ignored | unready:
        usage.pop(name, None)
    return groups, "" if usage else "did not receive metrics for targeted pods (pods might be unready)"


def _is_unready(pod: PodSample, now: float) -> bool:
    """Whether the usage of cpu says little: the pod is starting, or has never been ready."""
    if not pod.has_ready_condition or pod.started_at is None:
        return True
    if pod.started_at + CPU_INITIALIZATION_SECONDS > now:
        return not pod.is_ready or pod.measured_at < pod.ready_since + pod.window_seconds
    return not pod.is_ready and pod.started_at + INITIAL_READINESS_SECONDS > pod.ready_since


def _measure_utilization(
    usage: Mapping[str, int], requests: Mapping[str, int], target: int
) -> tuple[float, int, int] | None:
    """The ratio of usage to target, the percentage of what is requested, and the average in thousandths."""
    names = [name for name in usage if name in requests]
    requested = sum(requests[name] for name in names)
    if not requested:
        return None
    used = sum(usage[name] for name in names)
    utilization = used * 100 // requested
    return utilization / target, utilization, used // len(names)


def _propose(
    groups: _Groups,
    usage: dict[str, int],
    current: int,
    ratio: float,
    tolerances: Tolerances,
    fallback: Mapping[str, int],
    measure_again: Callable[[], float],
) -> int:
    grows_with_unready = bool(groups.unready) and ratio > 1.0
    if not grows_with_unready and not groups.missing:
        return current if tolerances.include(ratio) else ceil(ratio * groups.ready_count)
    if ratio < 1.0:
        usage.update(fallback)
    elif ratio > 1.0:
        usage.update(dict.fromkeys(groups.missing, 0))
    if grows_with_unready:
        usage.update(dict.fromkeys(groups.unready, 0))
    guess = measure_again()
    turns = (ratio < 1.0 < guess) or (guess < 1.0 < ratio)
    if tolerances.include(guess) or turns:
        return current
    replicas = ceil(guess * len(usage))
    if (guess < 1.0 and replicas > current) or (guess > 1.0 and replicas < current):
        return current
    return replicas
