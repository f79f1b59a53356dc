"""The apps and policy API groups: workloads with a pod template, and disruption budgets."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from msgspec import field

from wukong.api.core import PersistentVolumeClaimTemplate, PodTemplateSpec
from wukong.api.meta import Base, LabelSelector, Object, ObjectMeta


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


class ManagedSpec(Base):
    replicas: dict[str, Any] | None = field(default=None, name="f:replicas")


class ManagedObject(Base):
    spec: ManagedSpec | None = field(default=None, name="f:spec")


class ManagedFieldsEntry(Base):
    """Who manages fields, and whether the size is one of them."""

    manager: str = ""
    subresource: str = ""
    fields_v1: ManagedObject | None = None


class WorkloadMeta(ObjectMeta):
    managed_fields: list[ManagedFieldsEntry] = []


class SizeManager(NamedTuple):
    """Who has set the size of a workload, and by which subresource."""

    name: str
    subresource: str


class ReplicaStatus(Base):
    """How far a Deployment or a StatefulSet is: what has to be equal before its replicas are recorded."""

    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0
    update_revision: str = ""  # of a StatefulSet


class Workload(Object):
    spec: WorkloadSpec = field(default_factory=WorkloadSpec)


class ScaledWorkload(Workload):
    """One whose size others set."""

    metadata: WorkloadMeta = field(default_factory=WorkloadMeta)

    @property
    def managed_fields(self) -> list[ManagedFieldsEntry]:
        return self.metadata.managed_fields

    @property
    def size_managers(self) -> frozenset[SizeManager]:
        """Who has set its size last; several who asked for the same. None where the API server does not say."""
        return frozenset(
            SizeManager(entry.manager, entry.subresource)
            for entry in self.managed_fields
            if entry.fields_v1 is not None and (spec := entry.fields_v1.spec) is not None and spec.replicas is not None
        )


class ReplicaSet(ScaledWorkload):
    pass


class Deployment(ScaledWorkload):
    status: ReplicaStatus = field(default_factory=ReplicaStatus)


class StatefulSet(Workload):
    status: ReplicaStatus = field(default_factory=ReplicaStatus)


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
