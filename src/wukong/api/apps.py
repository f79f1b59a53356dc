"""The apps and policy API groups: workloads with a pod template, and disruption budgets."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import field

from wukong.api.core import PersistentVolumeClaimTemplate, PodTemplateSpec
from wukong.api.meta import Base, LabelSelector, Object


class RollingUpdate(Base):
    max_surge: int | str | None = None
    max_unavailable: int | str | None = None
    partition: int | None = None


class Strategy(Base):
    type: str = ""
    rolling_update: RollingUpdate | None = None


class WorkloadSpec(Base):
    """The part of ReplicaSet, Deployment, StatefulSet and DaemonSet specs that placement depends on."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec | None = None
    min_ready_seconds: int = 0
    paused: bool = False
    progress_deadline_seconds: int | None = None
    strategy: Strategy | None = None
    update_strategy: Strategy | None = None
    pod_management_policy: str = ""
    volume_claim_templates: list[PersistentVolumeClaimTemplate] = []  # of a StatefulSet


class Workload(Object):
    spec: WorkloadSpec = field(default_factory=WorkloadSpec)


class ReplicaSet(Workload):
    pass


class Deployment(Workload):
    pass


class StatefulSet(Workload):
    pass


class DaemonSet(Workload):
    pass


class PodDisruptionBudgetSpec(Base):
    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: Literal["IfHealthyBudget", "AlwaysAllow"] = "IfHealthyBudget"


class PodDisruptionBudgetStatus(Base):
    observed_generation: int = 0
    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str | None] = {}
    desired_healthy: int = 0


class PodDisruptionBudget(Object):
    spec: PodDisruptionBudgetSpec = field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = field(default_factory=PodDisruptionBudgetStatus)


class ControllerRevision(Object):
    """A version that a StatefulSet or a DaemonSet has kept."""

    data: dict[str, Any] = {}
    revision: int = 0
