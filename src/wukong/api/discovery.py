"""EndpointSlice (discovery.k8s.io/v1): where the pods of a Service are reached. Kept by the controller that we play."""

from __future__ import annotations

from msgspec import field

from wukong.api.meta import Base, Object

SERVICE_LABEL, MANAGER_LABEL = "kubernetes.io/service-name", "endpointslice.kubernetes.io/managed-by"
MANAGER = "endpointslice-controller.k8s.io"


class EndpointConditions(Base):
    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class TargetReference(Base):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class Endpoint(Base):
    addresses: list[str] = []
    conditions: EndpointConditions = field(default_factory=EndpointConditions)
    target_ref: TargetReference | None = None
    node_name: str = ""
    zone: str = ""


class EndpointPort(Base):
    name: str = ""
    port: int | None = None
    protocol: str = "TCP"
    app_protocol: str | None = None


class EndpointSlice(Object):
    address_type: str = "IPv4"
    endpoints: list[Endpoint] = []
    ports: list[EndpointPort] = []
