"""Installs KubeVirt beside a control plane. supervisor.py calls it.

It does what KubeVirt's operator does, in the order that takes the least time. virt-api and virt-controller are started
with the control plane. They wait for their kubeconfig files, which are written when the API server has their roles and
CustomResourceDefinitions; that goes on while the controller manager and the scheduler start. When virt-api answers, its
webhooks and aggregated APIs follow. There are no KubeVirt pods and no Service that routes: webhooks are called by
address, aggregated APIs through a Service of type ExternalName.
"""

from __future__ import annotations

import asyncio
import base64
import subprocess
from pathlib import Path

import msgspec

from testbed import certificates
from testbed.build import kubevirt_version, locked
from testbed.client import Client, Json
from testbed.components import BURST, QPS
from testbed.control_plane import Addition, ControlPlane, write_whole
from testbed.errors import TestbedError
from testbed.ports import free_ports

NAMESPACE = "kubevirt"
ACCOUNTS = ("kubevirt-apiserver", "kubevirt-controller", "kubevirt-handler")  # also the names of their kubeconfig files
OBJECTS = ("crds", "webhooks", "rbac", "apiservices")
SERVER_NAMES = ("localhost", "virt-api", f"virt-api.{NAMESPACE}", f"virt-api.{NAMESPACE}.svc")
# All that virt-api and virt-controller wait for, and the pools. The others are large or of no use without storage.
CRDS = (
    "virtualmachines.kubevirt.io",
    "virtualmachineinstances.kubevirt.io",
    "virtualmachineinstancemigrations.kubevirt.io",
    "kubevirts.kubevirt.io",
    "migrationpolicies.migrations.kubevirt.io",
    "virtualmachineinstancepresets.kubevirt.io",
    "virtualmachinerestores.snapshot.kubevirt.io",
)
COLLECTIONS = {
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "ValidatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "MutatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "APIService": "/apis/apiregistration.k8s.io/v1/apiservices",
}
KUBEVIRTS = f"/apis/kubevirt.io/v1/namespaces/{NAMESPACE}/kubevirts"
LIMITS = {"rateLimiter": {"tokenBucketRateLimiter": {"qps": QPS, "burst": BURST}}}
CONFIGURATION = {
    "developerConfiguration": {"useEmulation": True},  # nodes need no /dev/kvm
    "apiConfiguration": {"restClient": LIMITS},
    "controllerConfiguration": {"restClient": LIMITS},
    "webhookConfiguration": {"restClient": LIMITS},
    # A GPU is refused unless its device is permitted; who offers it is not KubeVirt's device plugin here.
    "permittedHostDevices": {
        "pciHostDevices": [
            {"pciVendorSelector": "10DE:1EB8", "resourceName": "nvidia.com/gpu", "externalResourceProvider": True}
        ]
    },
}
READY_SECONDS = 60.0
# Kubernetes' components go without a watcher of their certificates, KubeVirt's do not.
NO_WATCHER = "Failed to create an inotify watcher"
MORE_WATCHERS = """
A control plane with KubeVirt has 17 inotify instances, and a user may have fs.inotify.max_user_instances, often 128.
Run fewer of them at a time, or as root: sysctl fs.inotify.max_user_instances=1024"""


class Installation:
    """KubeVirt beside one control plane: made before that is started, finished by `finish`."""

    def __init__(self, plane: ControlPlane, program: Path) -> None:
        self.plane = plane
        self.objects = read_objects(program)
        self.api_port, controller_port = free_ports(2)
        self.components = {
            "virt-api": virt_api(plane, program, self.api_port),
            "virt-controller": virt_controller(
                plane.layout.keys, plane.layout.kubeconfig("kubevirt-controller"), program, controller_port
            ),
        }
        plane.additions |= self.components
        plane.on_api_server = lambda: asyncio.run(self.install_objects())

    async def install_objects(self) -> None:
        """What the components need, and last what they wait for."""
        async with Client.of(self.plane.kubeconfig) as client:
            await client.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
            roles = create_all(client, self.objects["rbac"])
            await asyncio.gather(roles, create_custom_resources(client, self.objects["crds"]))
        make_keys(self.plane)

    async def finish(self, client: Client) -> None:
        """Until virtual machines can be created. Raises TestbedError with the log of what did not start."""
        try:
            await asyncio.gather(*(asyncio.to_thread(self.plane.await_ready, name) for name in self.components))
        except TestbedError as error:
            raise TestbedError(f"{error}{MORE_WATCHERS if NO_WATCHER in str(error) else ''}") from None
        await call_virt_api(self.plane, client, self.objects, self.api_port)


def read_objects(program: Path) -> dict[str, list[Json]]:
    """What the program prints, kept beside it: it needs seconds to start."""
    file = program.with_suffix(".json")
    with locked(program.with_suffix(".lock")):
        if not file.exists():
            printed = subprocess.run([program, *OBJECTS], capture_output=True, check=False)
            if printed.returncode:
                raise TestbedError(f"{program} printed no objects:\n{printed.stderr.decode(errors='replace')}")
            write_whole(file, printed.stdout)
    return msgspec.json.decode(file.read_bytes(), type=dict[str, list[Json]])


def make_keys(plane: ControlPlane) -> None:
    """virt-api's certificate, and a kubeconfig for each account: nobody else may write the status of a VM."""
    layout = plane.layout
    authority = certificates.Authority.read(layout.keys, "ca")
    authority.issue("virt-api", "virt-api", addresses=("127.0.0.1",), names=SERVER_NAMES)
    for account in ACCOUNTS:
        user = f"system:serviceaccount:{NAMESPACE}:{account}"
        certificates.make_client(authority, account, user, "", layout.server)


def virt_api(plane: ControlPlane, program: Path, port: int) -> Addition:
    keys = plane.layout.keys
    flags = [
        f"--kubeconfig={plane.layout.kubeconfig('kubevirt-apiserver')}",
        "--listen=127.0.0.1",
        f"--port={port}",
        f"--tls-cert-file={keys}/virt-api.crt",
        f"--tls-key-file={keys}/virt-api.key",
        f"--handler-cert-file={keys}/virt-api.crt",
        f"--handler-key-file={keys}/virt-api.key",
    ]
    url = f"https://127.0.0.1:{port}/apis/subresources.kubevirt.io/v1/healthz"
    return Addition(argv=[str(program), "virt-api", *flags], health_url=url)


def virt_controller(keys: Path, kubeconfig: Path, program: Path, port: int) -> Addition:
    flags = [
        f"--kubeconfig={kubeconfig}",
        "--listen=127.0.0.1",
        f"--port={port}",
        f"--launcher-image=quay.io/kubevirt/virt-launcher:{kubevirt_version()}",
        f"--exporter-image=quay.io/kubevirt/virt-exportserver:{kubevirt_version()}",
        f"--prom-cert-file={keys}/virt-api.crt",
        f"--prom-key-file={keys}/virt-api.key",
    ]
    # It answers long before its controllers run.
    url = f"https://127.0.0.1:{port}/leader"
    return Addition(argv=[str(program), "virt-controller", *flags], health_url=url, health_words=b'"true"')


async def create_custom_resources(client: Client, crds: list[Json]) -> None:
    wanted = [crd for crd in crds if crd["metadata"]["name"] in CRDS]
    await create_all(client, wanted)
    paths = [f"{COLLECTIONS[crd['kind']]}/{crd['metadata']['name']}" for crd in wanted]
    await asyncio.gather(*(client.wait_until(path, is_established, READY_SECONDS) for path in paths))
    kind = {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt"}
    await client.create(KUBEVIRTS, {**kind, "metadata": {"name": "kubevirt"}, "spec": {"configuration": CONFIGURATION}})
    status = {"phase": "Deployed", "defaultArchitecture": "amd64"}  # the operator's; without it every VM is refused
    await client.patch(f"{KUBEVIRTS}/kubevirt/status", {"status": status})


def is_established(crd: Json) -> bool:
    conditions = crd.get("status", {}).get("conditions") or ()
    return any(known["type"] == "Established" and known["status"] == "True" for known in conditions)


async def call_virt_api(plane: ControlPlane, client: Client, objects: dict[str, list[Json]], port: int) -> None:
    """Let the API server ask virt-api from now on."""
    authority = base64.b64encode((plane.layout.keys / "ca.crt").read_bytes()).decode()
    for configuration in objects["webhooks"]:
        for webhook in configuration["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": authority}
    for service in objects["apiservices"]:
        service["spec"]["service"]["port"] = port
        service["spec"]["caBundle"] = authority
    services = f"/api/v1/namespaces/{NAMESPACE}/services"
    spec = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
    await client.create(services, {"metadata": {"name": "virt-api"}, "spec": spec})
    await create_all(client, [*objects["webhooks"], *objects["apiservices"]])


async def create_all(client: Client, objects: list[Json]) -> None:
    async def create(item: Json) -> None:
        path = COLLECTIONS[item["kind"]].format(namespace=item["metadata"].get("namespace"))
        await client.create(path, {key: item[key] for key in item if key != "status"})

    await asyncio.gather(*(create(item) for item in objects))
