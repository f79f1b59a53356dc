"""Host ports: which a pod wants, which are taken, and when two collide (the NodePorts filter).

Called by the cluster, which keeps the taken ports of each node, and by the filters.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import NamedTuple

from wukong.api.core import Pod
from wukong.rules.resources import is_sidecar
from wukong.rules.verdict import Rejection, rejected

EVERY_IP = "0.0.0.0"
REASON = "node(s) didn't have free ports for the requested pod ports"


class HostPort(NamedTuple):
    ip: str
    protocol: str
    port: int


def host_ports(pod: Pod) -> set[HostPort]:
    """The host ports of containers and sidecars. Other init containers are gone before they could collide."""
    containers = [container for container in pod.spec.init_containers if is_sidecar(container)] + pod.spec.containers
    return {
        HostPort(port.host_ip or EVERY_IP, port.protocol or "TCP", port.host_port)
        for container in containers
        for port in container.ports
        if port.host_port > 0
    }


def reject(pod: Pod, used: AbstractSet[HostPort]) -> Rejection | None:
    collides = any(_collide(wanted, taken) for wanted in host_ports(pod) for taken in used)
    return rejected(REASON) if collides else None


def _collide(one: HostPort, other: HostPort) -> bool:
    """The address 0.0.0.0 stands for every address of the node."""
    same_address = one.ip == other.ip or EVERY_IP in (one.ip, other.ip)
    return same_address and (one.protocol, one.port) == (other.protocol, other.port)
