"""Virtual machines for tests: objects, and waiting for what becomes of them. Used with any client of the test bed.

Waiting is watching, with a deadline that says what was last seen. Nothing here knows of pytest.
"""

from __future__ import annotations

import asyncio
from typing import Any

from testbed.client import Client, Event, Json, Listed, as_json
from testbed.errors import TestbedError

IMAGE = "quay.io/containerdisks/fedora:latest"
KUBEVIRT = "/apis/kubevirt.io/v1"
SUBRESOURCES = "/apis/subresources.kubevirt.io/v1"


def a_vm(
    name: str,
    *,
    memory: str = "128Mi",
    cores: int = 1,
    eviction_strategy: str | None = None,
    run_strategy: str = "Always",
    binding: str = "masquerade",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    spec: Json | None = None,
    domain: Json | None = None,
) -> Json:
    """A VirtualMachine that boots from an image. Labels, annotations, `spec` and `domain` are its template's.

    Bound by `masquerade` it can be migrated, by `bridge`, which KubeVirt takes if nothing is said, it cannot.
    """
    disks = [{"name": "root", "disk": {"bus": "virtio"}}]
    machine = {
        "cpu": {"cores": cores},
        "memory": {"guest": memory},
        "devices": {"disks": disks, "interfaces": [{"name": "default", binding: {}}]},
        **(domain or {}),
    }
    template: Json = {
        "domain": machine,
        "networks": [{"name": "default", "pod": {}}],
        "volumes": [{"name": "root", "containerDisk": {"image": IMAGE}}],
        **({"evictionStrategy": eviction_strategy} if eviction_strategy else {}),
        **(spec or {}),
    }
    metadata = {"labels": labels or {}, "annotations": annotations or {}}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name},
        "spec": {"runStrategy": run_strategy, "template": {"metadata": metadata, "spec": template}},
    }


class VirtualMachines:
    """Those of one namespace."""

    def __init__(self, client: Client, namespace: str, seconds: float = 60.0) -> None:
        self.client = client
        self.namespace = namespace
        self.seconds = seconds

    def path(self, resource: str, name: str = "") -> str:
        """Of pods, and of KubeVirt's `virtualmachines`, `virtualmachineinstances` and so on."""
        group = "/api/v1" if resource == "pods" else KUBEVIRT
        return f"{group}/namespaces/{self.namespace}/{resource}" + (f"/{name}" if name else "")

    async def create(self, vm: Json) -> Json:
        return await self.client.create(self.path("virtualmachines"), vm)

    async def patch(self, name: str, body: Json) -> Json:
        """A merge patch of the VirtualMachine."""
        return await self.client.patch(self.path("virtualmachines", name), body)

    async def annotate_guest(self, name: str, **settings: str) -> None:
        """Of a running VirtualMachineInstance: `migration_fails="true"`."""
        annotations = {f"sim.novasphere.dev/{key.replace('_', '-')}": text for key, text in settings.items()}
        path = self.path("virtualmachineinstances", name)
        await self.client.patch(path, {"metadata": {"annotations": annotations}})

    async def shut_down_guest(self, name: str, exit_code: int = 0) -> None:
        """From within, as its own `poweroff` does; with another code than 0 it crashes."""
        settings = {"sim.novasphere.dev/run-seconds": "0", "sim.novasphere.dev/exit-code": str(exit_code)}
        pod = await self.launcher_pod(name)
        await self.client.patch(self.path("pods", pod["metadata"]["name"]), {"metadata": {"annotations": settings}})

    async def act(self, name: str, verb: str) -> None:
        """`start`, `stop`, `restart` or `migrate`, as virtctl does it."""
        await self.client.send("PUT", f"{SUBRESOURCES}/namespaces/{self.namespace}/virtualmachines/{name}/{verb}", {})

    async def evict(self, pod: Json) -> None:
        """Raises ApiError 429 where KubeVirt migrates instead."""
        name = pod["metadata"]["name"]
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        await self.client.create(f"{self.path('pods', name)}/eviction", eviction)

    async def wait_until_running(self, name: str, *, after: str = "") -> Json:
        """The VirtualMachineInstance when its guest runs and is ready; `after` one with this uid, which may be over."""

        def is_so(vmi: Json) -> bool:
            is_running = vmi.get("status", {}).get("phase") == "Running" and has_condition(vmi, "Ready")
            return is_running and has_condition(vmi, "LiveMigratable", None) and vmi["metadata"]["uid"] != after

        return await self.client.wait_until(self.path("virtualmachineinstances", name), is_so, self.seconds)

    async def wait_until_migrated(self, name: str, *, away_from: str) -> Json:
        """The VirtualMachineInstance when it runs on another node and its migration is over."""

        def is_so(vmi: Json) -> bool:
            status = vmi.get("status", {})
            is_over = status.get("migrationState", {}).get("completed", False)
            return bool(is_over and status.get("nodeName") != away_from and not status.get("evacuationNodeName"))

        return await self.client.wait_until(self.path("virtualmachineinstances", name), is_so, self.seconds)

    async def wait_for_status(self, name: str, word: str) -> Json:
        """The VirtualMachine when its `printableStatus` is this."""

        def is_so(vm: Json) -> bool:
            return bool(vm.get("status", {}).get("printableStatus") == word)

        return await self.client.wait_until(self.path("virtualmachines", name), is_so, self.seconds)

    async def wait_for_migration(self, name: str, phase: str) -> Json:
        """The first migration of this VM that is in this phase, such as `Succeeded` or `Failed`."""
        path, last = self.path("virtualmachineinstancemigrations"), "none"
        try:
            async with asyncio.timeout(self.seconds):
                async for change in self.client.follow(path):
                    for raw in change.items if isinstance(change, Listed) else [change.object]:
                        migration = as_json(raw)
                        if migration["spec"]["vmiName"] != name or is_deletion(change):
                            continue
                        last = migration.get("status", {}).get("phase", "")
                        if last == phase:
                            return migration
        except TimeoutError:
            message = f"no migration of {name} was {phase} within {self.seconds:.0f} s; last seen: {last}"
            raise TestbedError(message) from None
        raise AssertionError("follow never ends")

    async def launcher_pods(self, name: str) -> list[Json]:
        """All of them, oldest first: also those of migrations that are over."""
        pods, _ = await self.client.list_all(self.path("pods"), labelSelector=f"vm.kubevirt.io/name={name}")
        return sorted(map(as_json, pods), key=lambda pod: pod["metadata"]["creationTimestamp"])

    async def launcher_pod(self, name: str) -> Json:
        """The one that its guest runs in."""
        vmi = await self.client.get(self.path("virtualmachineinstances", name))
        node, uid = vmi["status"]["nodeName"], vmi["metadata"]["uid"]
        pods = [pod for pod in await self.launcher_pods(name) if pod["spec"].get("nodeName") == node]
        living = [pod for pod in pods if pod["metadata"]["labels"]["kubevirt.io/created-by"] == uid and is_living(pod)]
        if not living:
            raise TestbedError(f"{name} has no virt-launcher pod on {node}")
        return living[-1]


def is_living(pod: Json) -> bool:
    return pod["status"]["phase"] not in ("Succeeded", "Failed")


def is_deletion(change: Listed | Event) -> bool:
    return isinstance(change, Event) and change.type == "DELETED"


def has_condition(item: Json, kind: str, status: str | None = "True") -> bool:
    """Whether it has this condition with this status; with any where it is None."""
    conditions: list[Any] = item.get("status", {}).get("conditions") or []
    return any(known["type"] == kind and status in (None, known["status"]) for known in conditions)
