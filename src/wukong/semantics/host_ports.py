"""Host ports: which a pod asks for, and when two of them conflict."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from wukong.api.core import Container, Pod
from wukong.semantics.requests import is_sidecar

EVERY_IP = "0.0.0.0"


class HostPort(NamedTuple):
    protocol: str
    ip: str
    port: int
    leaves_out_sidecars: bool = False  # of a list in which sidecars hold nothing, as kube-scheduler 1.33 has it

    def conflicts_with(self, other: HostPort) -> bool:
        """The address 0.0.0.0 stands for every address of the node. Ports of the two lists never conflict."""
        is_same_list = self.leaves_out_sidecars == other.leaves_out_sidecars
        is_same_port = is_same_list and self.protocol == other.protocol and self.port == other.port
        return is_same_port and (self.ip == other.ip or EVERY_IP in (self.ip, other.ip))


def host_ports_of(pod: Pod) -> list[HostPort]:
    """The host ports of sidecars and containers. Other init containers are gone before they could conflict."""
    sidecars = [container for container in pod.spec.init_containers if is_sidecar(container)]
    return _list_ports([*sidecars, *pod.spec.containers])


def host_ports_in_both_lists(pod: Pod) -> list[HostPort]:
    """The host ports with those of sidecars, and once more without: a node keeps both, a version reads one."""
    ports = _list_ports(pod.spec.containers)
    return host_ports_of(pod) + [port._replace(leaves_out_sidecars=True) for port in ports]


def _list_ports(containers: list[Container]) -> list[HostPort]:
    return [
        HostPort(port.protocol or "TCP", port.host_ip or EVERY_IP, port.host_port)
        for container in containers
        for port in container.ports
        if port.host_port > 0
    ]


def has_conflict(wanted: Collection[HostPort], used: Collection[HostPort]) -> bool:
    return any(port.conflicts_with(used_port) for port in wanted for used_port in used)
