"""The few fields of Node and Pod that a hollow kubelet looks at, decoded by msgspec; all others are skipped.

kubelet.py decodes into these, behaviour.py and pod_status.py read them. They are ours alone: the product has its own.
"""

from __future__ import annotations

import msgspec


class Slim(msgspec.Struct, rename="camel", kw_only=True):
    """Python's names here, Kubernetes' names on the wire."""


class Meta(Slim):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = "0"
    generation: int = 0
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None


class Condition(Slim):
    type: str
    status: str
    last_transition_time: str | None = None


class Address(Slim):
    type: str
    address: str


class NodeStatus(Slim):
    conditions: list[Condition] | None = None
    allocatable: dict[str, str] | None = None
    addresses: list[Address] | None = None


class Node(Slim):
    metadata: Meta
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class Container(Slim):
    name: str
    image: str = ""
    restart_policy: str = ""


class ReadinessGate(Slim):
    condition_type: str


class PodSpec(Slim):
    node_name: str = ""
    containers: list[Container] = msgspec.field(default_factory=list)
    init_containers: list[Container] | None = None
    host_network: bool = False
    restart_policy: str = "Always"
    readiness_gates: list[ReadinessGate] | None = None


class Running(Slim):
    started_at: str | None = None


class Waiting(Slim):
    reason: str = ""


class State(Slim):
    running: Running | None = None
    waiting: Waiting | None = None


class ContainerStatus(Slim):
    name: str
    state: State = msgspec.field(default_factory=State)


class PodStatus(Slim):
    phase: str = "Pending"
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    start_time: str | None = None
    pod_ip: str = msgspec.field(name="podIP", default="")


class Pod(Slim):
    metadata: Meta
    spec: PodSpec
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.metadata.namespace}/pods/{self.metadata.name}"


def condition(among: list[Condition] | None, kind: str) -> Condition | None:
    return next((found for found in among or () if found.type == kind), None)
