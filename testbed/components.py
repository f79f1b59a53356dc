"""The flags of each component: plain data made of a folder and ports. control_plane.py runs what this says.

Everything that Kubernetes has on by default stays on (admission plugins, controllers, fair queueing); what is set
here is where things listen, who they are, client limits that do not hold a test back, and Go's collector of garbage.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import yaml

from testbed.certificates import FRONT_PROXY_USER
from testbed.errors import TestbedError
from testbed.ports import free_ports

SERVICE_RANGE = "10.96.0.0/12"
SERVICE_ADDRESS = "10.96.0.1"
QPS, BURST = 500, 1000
# Go collects garbage when a program has grown to twice what it holds: of a busy API server a seventh of the processor
# time, on cores that tests share. Five times as much memory is some hundred megabytes more.
ENVIRONMENT = {"GOGC": "400"}


class Ports(msgspec.Struct, frozen=True):
    etcd: int
    etcd_peer: int
    apiserver: int
    controller_manager: int
    scheduler: int

    @classmethod
    def free(cls) -> Ports:
        return cls(*free_ports(len(cls.__struct_fields__)))


class Layout(msgspec.Struct, frozen=True):
    """Where one control plane lives."""

    folder: Path
    ports: Ports

    @property
    def keys(self) -> Path:
        return self.folder / "keys"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def data(self) -> Path:
        return self.folder / "etcd"

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.ports.apiserver}"

    @property
    def audit_policy(self) -> Path:
        return self.folder / "audit-policy.yaml"

    @property
    def scheduler_config(self) -> Path:
        return self.folder / "scheduler.yaml"

    def kubeconfig(self, client: str = "admin") -> Path:
        return self.keys / f"{client}.kubeconfig"


def flags(component: str, layout: Layout) -> list[str]:
    return FLAGS[component](layout)


def health_url(component: str, layout: Layout) -> str:
    """Answers 200 once the component does its work."""
    ports = layout.ports
    return {
        "etcd": f"http://127.0.0.1:{ports.etcd}/health",
        "apiserver": f"https://127.0.0.1:{ports.apiserver}/readyz",
        "controller-manager": f"https://127.0.0.1:{ports.controller_manager}/healthz",
        "scheduler": f"https://127.0.0.1:{ports.scheduler}/readyz",
    }[component]


def etcd(layout: Layout) -> list[str]:
    client, peer = (f"http://127.0.0.1:{port}" for port in (layout.ports.etcd, layout.ports.etcd_peer))
    return [
        f"--data-dir={layout.data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",  # a test bed that loses power is started again
        "--log-level=warn",
    ]


def apiserver(layout: Layout) -> list[str]:
    keys = layout.keys
    return [
        f"--etcd-servers=http://127.0.0.1:{layout.ports.etcd}",
        f"--secure-port={layout.ports.apiserver}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",  # Kubernetes refuses endpoints on loopback
        f"--cert-dir={keys}",
        f"--tls-cert-file={keys}/apiserver.crt",
        f"--tls-private-key-file={keys}/apiserver.key",
        f"--client-ca-file={keys}/ca.crt",
        f"--requestheader-client-ca-file={keys}/front-proxy-ca.crt",
        f"--requestheader-allowed-names={FRONT_PROXY_USER}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={keys}/front-proxy.crt",
        f"--proxy-client-key-file={keys}/front-proxy.key",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={keys}/service-account.pub",
        f"--service-account-signing-key-file={keys}/service-account.key",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--authorization-mode=RBAC",
        f"--audit-policy-file={layout.audit_policy}",
        f"--audit-log-path={layout.logs}/audit.log",
        "--allow-privileged",
    ]


def controller_manager(layout: Layout) -> list[str]:
    keys, kubeconfig = layout.keys, layout.kubeconfig("controller-manager")
    return [
        *as_client(kubeconfig, layout.ports.controller_manager, keys / "controller-manager-serving"),
        f"--kubeconfig={kubeconfig}",
        "--use-service-account-credentials",
        f"--kube-api-qps={QPS}",
        f"--kube-api-burst={BURST}",
        "--leader-elect=false",
        # A claim whose binding met a conflict is looked at again after so long (15 s where nothing is said).
        "--pvclaimbinder-sync-period=1s",
        "--horizontal-pod-autoscaler-sync-period=1s",  # 15 s by default: tests would wait for nothing
        f"--root-ca-file={keys}/ca.crt",
        f"--service-account-private-key-file={keys}/service-account.key",
        f"--cluster-signing-cert-file={keys}/ca.crt",
        f"--cluster-signing-key-file={keys}/ca.key",
    ]


def scheduler(layout: Layout) -> list[str]:
    kubeconfig = layout.kubeconfig("scheduler")
    return [
        *as_client(kubeconfig, layout.ports.scheduler, layout.keys / "scheduler-serving"),
        f"--config={layout.scheduler_config}",
    ]


def as_client(kubeconfig: Path, port: int, serving: Path) -> list[str]:
    return [
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        f"--cert-dir={serving}",
    ]


FLAGS: dict[str, Callable[[Layout], list[str]]] = {
    "etcd": etcd,
    "apiserver": apiserver,
    "controller-manager": controller_manager,
    "scheduler": scheduler,
}


# Who wrote what, one JSON line each in logs/audit.log; heartbeats and events of others would drown it.
AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None  # the controller manager's own accounts look at everything all the time
  userGroups: ["system:serviceaccounts:kube-system"]
  verbs: [get, list, watch]
- level: Metadata  # whoever else acts as a service account is under test: reads and heartbeats count
  userGroups: ["system:serviceaccounts"]
- level: None
  verbs: [get, list, watch]
- level: None
  resources:
  - {group: coordination.k8s.io, resources: [leases]}
  - {group: "", resources: [events]}
  - {group: events.k8s.io, resources: [events]}
  - {group: authentication.k8s.io}
  - {group: authorization.k8s.io}
- level: Metadata
"""


def scheduler_configuration(layout: Layout, given: Path | None) -> str:
    """The given configuration (profiles, extenders) with our connection put in; its other settings stay."""
    config: dict[str, object] = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    if given is not None:
        read = yaml.safe_load(given.read_text("utf-8"))
        if not isinstance(read, dict) or read.get("kind") != "KubeSchedulerConfiguration":
            raise TestbedError(f"{given}: expected a KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1)")
        config = read
    connection = {"qps": QPS, "burst": BURST, **(config.get("clientConnection") or {})}  # type: ignore[dict-item]
    config["clientConnection"] = {**connection, "kubeconfig": str(layout.kubeconfig("scheduler"))}
    config["leaderElection"] = {"leaderElect": False}
    return yaml.safe_dump(config, sort_keys=False)
