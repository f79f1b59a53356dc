"""Host ports: which a pod asks for, and when two of them conflict."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from wukong.api.core import Pod
from wukong.semantics.requests import is_sidecar

EVERY_IP = "0.0.0.0"


class HostPort(NamedTuple):
    protocol: str
    ip: str
    port: int

    def conflicts_with(self, other: HostPort) -> bool:
        """The address 0.0.0.0 stands for every address of the node."""
        is_same_port = self.protocol == other.protocol and self.port == other.port
        return is_same_port and (self.ip == other.ip or EVERY_IP in (self.ip, other.ip))


def host_ports_of(pod: Pod) -> list[HostPort]:
    """The host ports of sidecars and containers. Other init containers are gone before they could conflict."""
    sidecars = [container for container in pod.spec.init_containers if is_sidecar(container)]
    return [
        HostPort(port.protocol or "TCP", port.host_ip or EVERY_IP, port.host_port)
        for container in (*sidecars, *pod.spec.containers)
        for port in container.ports
        if port.host_port > 0
    ]


def has_conflict(wanted: Collection[HostPort], used: Collection[HostPort]) -> bool:
    return any(port.conflicts_with(used_port) for port in wanted for used_port in used)
