"""The endpoints that a Service should have: one for each of its pods, by the ports they are reached at. Pure.

Follows k8s.io/endpointslice 0.35: an endpoint serves while its pod is ready, is ready if it serves and does not
terminate (or always, with publishNotReadyAddresses), and stays until its pod is gone or has ended. A pod that runs and
whose status names no address, as in a snapshot, has one made of its uid. Called by controller.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from wukong.api.core import Container, Pod, Service, ServicePort
from wukong.api.resources import Key
from wukong.embedded.actors import pods as podlike
from wukong.embedded.actors.kubelet.controller import pod_address_of
from wukong.embedded.store.documents import value_at
from wukong.embedded.world.objects import Node
from wukong.embedded.world.objects import Pod as WholePod
from wukong.ports import Document
from wukong.semantics.requests import is_sidecar
from wukong.state import State

ZONE = "topology.kubernetes.io/zone"
Ports = tuple[tuple[str, int, str, str | None], ...]  # name, number, protocol, application protocol


class DesiredEndpoints(NamedTuple):
    """Endpoints by ports, each by the uid of its pod; `has_lost_nodes`: one was left out, for its node is gone."""

    by_ports: dict[Ports, dict[str, Document]]
    has_lost_nodes: bool = False


def find_endpoints(service: Service, pods: Iterable[WholePod], state: State, address_type: str) -> DesiredEndpoints:
    by_ports: dict[Ports, dict[str, Document]] = {}
    has_lost_nodes = False
    for pod in pods:
        address = _address_of(pod)
        if pod.is_finished or not address:
            continue
        endpoints = by_ports.setdefault(_find_ports(service, pod), {})
        node = state.get(Node, Key("", pod.spec.node_name))
        if node is None and not service.spec.publish_not_ready_addresses:
            has_lost_nodes = True
        elif (":" in address) == (address_type == "IPv6"):
            endpoints[pod.metadata.uid] = _build_endpoint(service, pod, node, address)
    return DesiredEndpoints(by_ports, has_lost_nodes)


def _address_of(pod: WholePod) -> str:
    known: str = value_at(pod.document, "status.podIP") or ""
    return known or (pod_address_of(pod) if pod.status.phase == "Running" and pod.spec.node_name else "")


def _build_endpoint(service: Service, pod: WholePod, node: Node | None, address: str) -> Document:
    serving, terminating = podlike.is_ready(pod), pod.is_terminating
    ready = service.spec.publish_not_ready_addresses or (serving and not terminating)
    endpoint: Document = {
        "addresses": [address],
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
        "targetRef": {
            "kind": "Pod",
            "namespace": pod.metadata.namespace,
            "name": pod.metadata.name,
            "uid": pod.metadata.uid,
        },
    }
    if pod.spec.node_name:
        endpoint["nodeName"] = pod.spec.node_name
    if node is not None and node.metadata.labels.get(ZONE):
        endpoint["zone"] = node.metadata.labels[ZONE]
    subdomain = value_at(pod.document, "spec.subdomain")
    if value_at(pod.document, "spec.hostname") and subdomain == service.metadata.name:
        endpoint["hostname"] = value_at(pod.document, "spec.hostname")
    return endpoint


def _find_ports(service: Service, pod: WholePod) -> Ports:
    """The ports of a Service as numbers of this pod; those that it does not have are left out."""
    found = ((port, _find_number(port, pod)) for port in service.spec.ports)
    return tuple((port.name, number, port.protocol, port.app_protocol) for port, number in found if number is not None)


def _find_number(port: ServicePort, pod: WholePod) -> int | None:
    target = port.target_port if port.target_port is not None else port.port
    if isinstance(target, int):
        return target or port.port
    for container in (*pod.spec.containers, *filter(is_sidecar, pod.spec.init_containers)):
        for name, entry in zip(_port_names(container, pod), container.ports, strict=True):
            if name == target and (entry.protocol or "TCP") == port.protocol:
                return entry.container_port
    return None


def _port_names(container: Container, pod: Pod) -> list[str]:
    """The names of its ports, which placement does not read."""
    document: Document = getattr(pod, "document", {})
    spec = document.get("spec") or {}
    for entry in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        if entry.get("name") == container.name:
            return [port.get("name", "") for port in entry.get("ports") or ()]
    return []
