"""What an installation of the extender is told, and the names and ports that its documents share.

Filled in by `wukong manifests extender`; read by every module beside this one. Nothing here is a document.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from wukong.app.addresses import find_address_problem, read_address
from wukong.app.components.wukongs import WukongOptions
from wukong.app.install.installation import Installation, find_memory_problems, find_namespace_problems, is_ip
from wukong.app.permissions import LEASE_NAME
from wukong.errors import InputError
from wukong.placement.vm.settings import ResourceAffinityMode

NAME = "extender"  # the component's own
EXTENDER = "wukong-extender"  # Deployment, Service, account, budget, roles
SERVER_SECRET = "wukong-extender-server"  # certificate and key of the server, and whose clients it believes
CLIENT_SECRET = "wukong-extender-client"  # what the scheduler shows, and whose server it believes
LEASE = LEASE_NAME
SECOND_SCHEDULER = "wukong-scheduler"  # Deployment, account, configuration, lease
SCHEDULER_COMPONENT = "scheduler"  # in its labels
PROBES_PORT = 8080
SERVICE_PORT = {False: 8443, True: 8080}  # is_plain → port of the Service: http://<service>:8080 as in the seeds
CONTAINER_PORT = {False: 8443, True: 8880}  # 8080 inside the pod are the probes


class SecondScheduler(msgspec.Struct, frozen=True, kw_only=True):
    """A stock kube-scheduler of our own, for control planes that nobody lets us configure."""

    image: str
    name: str = "wukong"  # what pods say as schedulerName


class ExtenderInstallation(Installation, frozen=True, kw_only=True):
    is_plain: bool = False  # HTTP without certificates
    weight: int = 5
    prometheus: str = ""
    critical_priority: int | None = None
    resource_affinity: ResourceAffinityMode = WukongOptions().resource_affinity  # as the component vm is told
    cluster_ip: str = ""  # of the Service; "" lets the cluster choose
    address: str = ""  # HOST:PORT by which the scheduler finds the extender, if not by the Service
    scheduler_kubeconfig: str = "/etc/kubernetes/scheduler.conf"  # of the control plane's own scheduler
    second: SecondScheduler | None = None

    @property
    def port(self) -> int:
        """Of the Service."""
        return SERVICE_PORT[self.is_plain]

    @property
    def dns_name(self) -> str:
        return f"{EXTENDER}.{self.namespace}.svc"

    @property
    def url(self) -> str:
        """Where the scheduler calls the extender."""
        host, port = read_address(self.address) if self.address else (self.cluster_ip or self.dns_name, self.port)
        shown = f"[{host}]" if ":" in host else host
        return f"{'http' if self.is_plain else 'https'}://{shown}:{port}"

    @property
    def hosts(self) -> list[str]:
        """Every name and address the server's certificate must be good for."""
        names = [EXTENDER, f"{EXTENDER}.{self.namespace}", self.dns_name, f"{self.dns_name}.cluster.local"]
        addresses = [self.cluster_ip, read_address(self.address)[0] if self.address else ""]
        return list(dict.fromkeys([*names, *(host for host in addresses if host)]))


def check_installation(installation: ExtenderInstallation) -> None:
    """Raises InputError with every problem, by option, if it cannot be installed."""
    problems = [*_find_address_problems(installation), *find_namespace_problems(installation)]
    problems += find_memory_problems(installation)
    names = [component.name for component in installation.components]
    if NAME not in names:
        problems.append(f"--components: expected {NAME} among them, got {','.join(names)}. Add it.")
    if problems:
        raise InputError(*problems)


def _find_address_problems(installation: ExtenderInstallation) -> Iterator[str]:
    if installation.cluster_ip and not is_ip(installation.cluster_ip):
        got = f"got {installation.cluster_ip!r}"
        yield f"--cluster-ip: expected an address of the Service range such as 10.96.0.50, {got}."
    address = installation.address
    if not address:
        return
    if find_address_problem(address) or not all(read_address(address)):
        yield f"--address: expected HOST:PORT such as 10.0.0.5:8443 or [fd00::5]:8443, got {address!r}."
