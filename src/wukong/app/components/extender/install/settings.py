"""What an installation of the extender is made by, and the names and ports that its documents share.

Filled in by `wukong manifests extender`; read by every module beside this one. Nothing here is a document.
"""

from __future__ import annotations

import ipaddress

import msgspec

from wukong.app.components import Component
from wukong.errors import InputError
from wukong.ports import Document

NAMESPACE = "wukong-system"
EXTENDER = "wukong-extender"  # Deployment, Service, account, budget, roles
SERVER_SECRET = "wukong-extender-server"  # certificate and key of the server, and whose clients it believes
CLIENT_SECRET = "wukong-extender-client"  # what the scheduler shows, and whose server it believes
LEASE = "wukong"
SECOND_SCHEDULER = "wukong-scheduler"  # Deployment, account, configuration, lease
PROBES_PORT = 8080
SERVICE_PORT = {False: 8443, True: 8080}  # is_plain → port of the Service: http://<service>:8080 as in the seeds
CONTAINER_PORT = {False: 8443, True: 8880}  # 8080 inside the pod are the probes
SHARED_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


class SecondScheduler(msgspec.Struct, frozen=True, kw_only=True):
    """A stock kube-scheduler of our own, for control planes that nobody lets us configure."""

    image: str
    name: str = "wukong"  # what pods say as schedulerName


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    image: str
    components: tuple[Component, ...]
    namespace: str = NAMESPACE
    replicas: int = 2
    is_plain: bool = False  # HTTP without certificates
    weight: int = 5
    prometheus: str = ""
    critical_priority: int | None = None
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
        host, port = split_address(self.address) if self.address else (self.cluster_ip or self.dns_name, self.port)
        shown = f"[{host}]" if ":" in host else host
        return f"{'http' if self.is_plain else 'https'}://{shown}:{port}"

    @property
    def hosts(self) -> list[str]:
        """Every name and address the server's certificate must be good for."""
        names = [EXTENDER, f"{EXTENDER}.{self.namespace}", self.dns_name, f"{self.dns_name}.cluster.local"]
        given = [self.cluster_ip, split_address(self.address)[0] if self.address else ""]
        return list(dict.fromkeys([*names, *(host for host in given if host)]))


def checked(settings: Settings) -> Settings:
    """The same settings, if they can be installed; else every problem at once, by option."""
    problems = [*_address_problems(settings), *_namespace_problems(settings)]
    names = [component.name for component in settings.components]
    if "extender" not in names:
        problems.append(f"--components: expected extender among them, got {','.join(names)}. Add it.")
    if problems:
        raise InputError(*problems)
    return settings


def meta(settings: Settings, name: str, component: str, *, is_namespaced: bool = True) -> Document:
    """Metadata with the labels that Kubernetes recommends."""
    where = {"namespace": settings.namespace} if is_namespaced else {}
    return {"name": name, **where, "labels": labels(component)}


def labels(component: str) -> dict[str, str]:
    """Also what selectors ask for: none of them changes with a version, as a Deployment's selector never may."""
    return {"app.kubernetes.io/name": "wukong", "app.kubernetes.io/component": component}


def is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def split_address(text: str) -> tuple[str, int]:
    """Of HOST:PORT or [IPV6]:PORT."""
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def _address_problems(settings: Settings) -> list[str]:
    problems = []
    if settings.cluster_ip and not is_ip(settings.cluster_ip):
        found = f"got {settings.cluster_ip!r}"
        problems.append(f"--cluster-ip: expected an address of the Service range such as 10.96.0.50, {found}.")
    host, _, port = settings.address.rpartition(":")
    if settings.address and not (host and port.isdigit() and 0 < int(port) < 65536):
        problems.append(f"--address: expected HOST:PORT such as 10.0.0.5:8443, got {settings.address!r}.")
    return problems


def _namespace_problems(settings: Settings) -> list[str]:
    if settings.namespace not in SHARED_NAMESPACES:
        return []
    why = "it gets the Pod Security level restricted, which would keep out pods of others"
    return [f"--namespace: expected one of Wukong's own, got {settings.namespace!r}: {why}. Try {NAMESPACE}."]
