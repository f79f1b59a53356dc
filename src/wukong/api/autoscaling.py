"""HorizontalPodAutoscaler (autoscaling/v2), and the usage that it goes by. Read by the autoscaler we play."""

from __future__ import annotations

from msgspec import field

from wukong.api.core import Quantities
from wukong.api.meta import Base, Object


class ScaleTargetReference(Base):
    kind: str = ""
    name: str = ""
    api_version: str = ""


class MetricTarget(Base):
    type: str = ""
    average_utilization: int | None = None
    average_value: str | int | float | None = None
    value: str | int | float | None = None


class ResourceMetricSource(Base):
    """`container` is that of a ContainerResource metric."""

    name: str = ""
    container: str = ""
    target: MetricTarget = field(default_factory=MetricTarget)


class MetricSpec(Base):
    """Metrics of other types than Resource and ContainerResource are told apart by their type alone."""

    type: str = ""
    resource: ResourceMetricSource | None = None
    container_resource: ResourceMetricSource | None = None


class ScalingPolicy(Base):
    type: str = ""
    value: int = 0
    period_seconds: int = 0


class ScalingRules(Base):
    stabilization_window_seconds: int | None = None
    select_policy: str | None = None
    policies: list[ScalingPolicy] = []
    tolerance: str | int | float | None = None


class ScalingBehavior(Base):
    scale_up: ScalingRules | None = None
    scale_down: ScalingRules | None = None


class HorizontalPodAutoscalerSpec(Base):
    scale_target_ref: ScaleTargetReference = field(default_factory=ScaleTargetReference)
    min_replicas: int | None = None
    max_replicas: int = 0
    metrics: list[MetricSpec] = []
    behavior: ScalingBehavior | None = None


class HorizontalPodAutoscaler(Object):
    spec: HorizontalPodAutoscalerSpec = field(default_factory=HorizontalPodAutoscalerSpec)


class ContainerMetrics(Base):
    name: str = ""
    usage: Quantities = {}


class PodMetrics(Object):
    """What one pod uses, as metrics-server tells it."""

    timestamp: str = ""
    window: str = "0s"
    containers: list[ContainerMetrics] = []


class WorkloadUsage(Object):
    """What the pods of a workload use: an internal kind, written by scenarios. Named after the workload."""

    workload_kind: str = ""  # "" for any workload of this name
    percents: dict[str, float] = {}  # resource → percent of what each container requests
    totals: Quantities = {}  # resource → what the pods that are ready use together
