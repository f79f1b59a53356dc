"""What an autoscaler measures: its target's pods, what they request and use, and how many replicas a metric asks for.

Usage is that of PodMetrics, where somebody writes them, or else what WorkloadUsage says of the workload; who says
nothing has no metrics. As from metrics-server, a pod has metrics once it has run for a while. Called by controller.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from wukong.api.autoscaling import HorizontalPodAutoscaler, MetricSpec, PodMetrics, ResourceMetricSource, WorkloadUsage
from wukong.api.core import Pod as AnyPod
from wukong.api.kinds import POD_METRICS, WORKLOAD_USAGES
from wukong.api.meta import LabelSelector
from wukong.api.quantity import milli, parse_quantity
from wukong.api.resources import Key
from wukong.embedded.actors import pods as podlike
from wukong.embedded.actors.horizontal_autoscaler.replica_calculator import (
    PodSample,
    Proposal,
    Tolerances,
    propose_by_average,
    propose_by_utilization,
)
from wukong.embedded.store.documents import parse_time, value_at
from wukong.embedded.store.limits.amounts import Amount
from wukong.embedded.world.objects import Pod
from wukong.ports import Document
from wukong.semantics.requests import is_sidecar
from wukong.state import State

METRICS_SECONDS = 15.0  # metrics-server's resolution: how old a pod is when there are metrics, and their window
_DURATION = re.compile(r"(\d+(?:\.\d+)?)s")
_OTHER_METRICS = {
    "Pods": ("FailedGetPodsMetric", "failed to get pods metric value", "custom"),
    "Object": ("FailedGetObjectMetric", "failed to get object metric value", "custom"),
    "External": ("FailedGetExternalMetric", "failed to get external metric value", "external"),
}


class Measured(NamedTuple):
    """What one metric says. `problem` and `reason` are what the condition ScalingActive says where it says nothing."""

    replicas: int = 0
    name: str = ""
    status: Document = {}
    reason: str = ""
    problem: str = ""
    error: str = ""  # as Events have it
    is_settled: bool = True


class Target(NamedTuple):
    """What is scaled. `pods` are those that its selector selects."""

    key: Key
    kind: str
    replicas: int
    pods: Sequence[Pod]


def find_pods(state: State, namespace: str, selector: LabelSelector) -> list[Pod]:
    found = (state.get(Pod, key) for key in state.pods.list_matching(namespace, selector))
    return [pod for pod in found if pod is not None]


def measure(
    metric: MetricSpec, autoscaler: HorizontalPodAutoscaler, target: Target, state: State, now: float
) -> Measured:
    source = metric.container_resource if metric.type == "ContainerResource" else metric.resource
    if source is None or metric.type not in ("Resource", "ContainerResource"):
        reason, error, kind = _OTHER_METRICS.get(metric.type, ("InvalidMetricSourceType", "", ""))
        problem = f"no {kind} metrics are known"
        return Measured(reason=reason, problem=problem, error=f"{error}: {problem}")
    container = source.container if metric.type == "ContainerResource" else ""
    usage = UsageReader(target, state, now)
    samples = [usage.read(pod, source.name, container) for pod in target.pods]
    proposal = _propose(source, samples, target.replicas, _tolerances_of(autoscaler), now)
    is_settled = proposal.is_settled and not usage.awaits_metrics
    what = "usage" if source.target.average_value is not None else "utilization"
    if proposal.problem:
        problem = f"failed to get {source.name} {what}: {proposal.problem.format(source.name)}"
        reason = "FailedGetContainerResourceMetric" if container else "FailedGetResourceMetric"
        subject = f"{container} container" if container else f"{source.name} resource"
        error = f"failed to get {subject} metric value: {problem}"
        return Measured(reason=reason, problem=problem, error=error, is_settled=is_settled)
    name = f"{source.name} resource"
    if proposal.utilization is not None:
        title = "container resource" if container else "resource"
        name = f"{source.name} {title} utilization (percentage of request)"
    return Measured(proposal.replicas, name, _build_status(metric.type, source, proposal), is_settled=is_settled)


def _propose(
    source: ResourceMetricSource, samples: Sequence[PodSample], current: int, tolerances: Tolerances, now: float
) -> Proposal:
    target = source.target
    if target.average_value is not None:
        amount = milli(parse_quantity(target.average_value))
        return propose_by_average(samples, current, amount, source.name, tolerances, now)
    if target.average_utilization is None:
        problem = "invalid resource metric source: neither an average utilization target nor an average value"
        return Proposal(problem=f"{problem} (usage) target was set")
    return propose_by_utilization(samples, current, target.average_utilization, source.name, tolerances, now)


def _tolerances_of(autoscaler: HorizontalPodAutoscaler) -> Tolerances:
    behavior, default = autoscaler.spec.behavior, Tolerances()
    if behavior is None:
        return default
    up, down = (rules.tolerance if rules is not None else None for rules in (behavior.scale_up, behavior.scale_down))
    return Tolerances(
        default.down if down is None else parse_quantity(down) / 10**9,
        default.up if up is None else parse_quantity(up) / 10**9,
    )


def _build_status(type_: str, source: ResourceMetricSource, proposal: Proposal) -> Document:
    average = Amount(proposal.average * 10**6, "binary" if source.name == "memory" else "decimal")
    current: Document = {"averageValue": str(average)}
    if proposal.utilization is not None:
        current["averageUtilization"] = proposal.utilization
    name = type_[0].lower() + type_[1:]
    container = {"container": source.container} if type_ == "ContainerResource" else {}
    return {"type": type_, name: {"name": source.name, **container, "current": current}}


class UsageReader:
    """Reads what pods of one target request and use. `awaits_metrics`: of one there will be metrics later."""

    def __init__(self, target: Target, state: State, now: float) -> None:
        self.state, self.now, self.awaits_metrics = state, now, False
        usage = state.objects.get(WORKLOAD_USAGES.group_kind, {}).get(target.key)
        is_ours = isinstance(usage, WorkloadUsage) and usage.workload_kind in ("", target.kind)
        self.usage = usage if is_ours and isinstance(usage, WorkloadUsage) else None
        self.ready_count = sum(podlike.is_active(pod) and podlike.is_ready(pod) for pod in target.pods)

    def read(self, pod: Pod, resource: str, container: str) -> PodSample:
        ready = podlike.condition(pod, "Ready")
        started_at = value_at(pod.document, "status.startTime")
        used, measured_at, window = self._find_usage(pod, resource, container)
        return PodSample(
            pod.metadata.name,
            pod.status.phase,
            pod.is_terminating,
            ready is not None,
            ready is not None and ready.status != "False",
            podlike.ready_since(pod),
            parse_time(started_at) if started_at else None,
            _request_of(pod, resource, container),
            used,
            used is not None or self._has_metrics(pod),
            measured_at,
            window,
        )

    def _has_metrics(self, pod: Pod) -> bool:
        return Key(pod.metadata.namespace, pod.metadata.name) in self.state.objects.get(POD_METRICS.group_kind, {})

    def _find_usage(self, pod: Pod, resource: str, container: str) -> tuple[int | None, float, float]:
        metrics = self.state.objects.get(POD_METRICS.group_kind, {}).get(Key(pod.metadata.namespace, pod.metadata.name))
        if isinstance(metrics, PodMetrics):
            window = _DURATION.fullmatch(metrics.window)
            measured_at = parse_time(metrics.timestamp) if metrics.timestamp else self.now
            return _used_of(metrics, resource, container), measured_at, float(window[1]) if window else 0.0
        amount = self._share_of(pod, resource, container)
        started_at = value_at(pod.document, "status.startTime")
        if amount is None or pod.status.phase != "Running" or not started_at:
            return None, 0.0, 0.0
        if parse_time(started_at) + METRICS_SECONDS > self.now:
            self.awaits_metrics = True
            return None, 0.0, 0.0
        return amount, self.now, METRICS_SECONDS

    def _share_of(self, pod: Pod, resource: str, container: str) -> int | None:
        """What a pod uses by what is said of its workload. Pods that are ready share a total."""
        if self.usage is None:
            return None
        if resource in self.usage.totals:
            if not podlike.is_ready(pod) or not self.ready_count:
                return 0
            return milli(parse_quantity(self.usage.totals[resource])) // self.ready_count
        percent, request = self.usage.percents.get(resource), _request_of(pod, resource, container)
        return int(request * percent / 100) if percent is not None and isinstance(request, int) else None


def _used_of(metrics: PodMetrics, resource: str, container: str) -> int | None:
    """None where it lacks the resource of one of the containers that count."""
    counted = [entry for entry in metrics.containers if not container or entry.name == container]
    if not counted or any(resource not in entry.usage for entry in counted):
        return None
    return sum(milli(parse_quantity(entry.usage[resource])) for entry in counted)


def _request_of(pod: AnyPod, resource: str, container: str) -> int | str:
    """What the pod, or one container, requests in thousandths; or why that is not known."""
    own = pod.spec.resources
    if not container and own is not None and own.requests:
        if resource not in own.requests:
            return f"missing pod-level request for {resource} in Pod {pod.metadata.name}"
        return milli(parse_quantity(own.requests[resource]))
    total = 0
    for entry in (*pod.spec.containers, *filter(is_sidecar, pod.spec.init_containers)):
        if container in ("", entry.name):
            if resource not in entry.resources.requests:
                return f"missing request for {resource} in container {entry.name} of Pod {pod.metadata.name}"
            total += milli(parse_quantity(entry.resources.requests[resource]))
        if container == entry.name:
            return total
    return f"container {container} not found in Pod {pod.metadata.name}" if container else total
