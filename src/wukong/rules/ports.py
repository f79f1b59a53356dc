"""Host ports: which a pod wants, which are taken, and when two collide (the NodePorts filter).

Called by the cluster, which keeps the taken ports of each node, and by the filters.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import NamedTuple

from wukong.api.core import Container, Pod
from wukong.rules.resources import is_sidecar
from wukong.rules.verdict import Rejection, build_rejection

EVERY_IP = "0.0.0.0"
REASON = "node(s) didn't have free ports for the requested pod ports"


class HostPort(NamedTuple):
    ip: str
    protocol: str
    port: int


def host_ports_of(pod: Pod) -> set[HostPort]:
    """The host ports of containers and sidecars. Other init containers are gone before they could collide."""
    sidecars = [container for container in pod.spec.init_containers if is_sidecar(container)]
    return _collect_ports(sidecars + pod.spec.containers)


def container_ports_of(pod: Pod) -> set[HostPort]:
    """The host ports that count where those of sidecars do not."""
    return _collect_ports(pod.spec.containers)


def _collect_ports(containers: list[Container]) -> set[HostPort]:
    return {
        HostPort(port.host_ip or EVERY_IP, port.protocol or "TCP", port.host_port)
        for container in containers
        for port in container.ports
        if port.host_port > 0
    }


def reject(pod: Pod, used: AbstractSet[HostPort]) -> Rejection | None:
    return _reject(host_ports_of(pod), used)


def reject_without_sidecars(pod: Pod, used: AbstractSet[HostPort]) -> Rejection | None:
    return _reject(container_ports_of(pod), used)


def _reject(wanted_ports: set[HostPort], used: AbstractSet[HostPort]) -> Rejection | None:
    has_conflict = any(_conflict(wanted, taken) for wanted in wanted_ports for taken in used)
    return build_rejection(REASON) if has_conflict else None


def _conflict(wanted: HostPort, taken: HostPort) -> bool:
    """The address 0.0.0.0 stands for every address of the node."""
    same_address = wanted.ip == taken.ip or EVERY_IP in (wanted.ip, taken.ip)
    return same_address and (wanted.protocol, wanted.port) == (taken.protocol, taken.port)
