"""A control plane with real KubeVirt, as story_play.py wants one: a namespace of it, with nodes for it alone."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

from testbed import nodes
from testbed.client import ApiError, Client, Event, Json, Listed, as_json
from testbed.kubevirt.virtual_machines import VirtualMachines
from testbed.kubevirt.vm_nodes import a_vm_node
from vm_comparison.embedded_cluster import words_of
from vm_comparison.story import Observer

Observe = Callable[..., None]


class RealCluster:
    """Its nodes are called after the namespace; stories know them by their plain names."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client, self.namespace = client, namespace
        self.observer = Observer()
        self.vms = VirtualMachines(client, namespace)
        self._changed = asyncio.Event()
        self._nodes: list[str] = []

    @contextlib.asynccontextmanager
    async def watched(self) -> AsyncIterator[RealCluster]:
        """Follow all that the story is told of; remove the nodes in the end."""
        observer = self.observer
        followed = {
            "virtualmachineinstances": observer.observe_instance,
            "virtualmachineinstancemigrations": observer.observe_migration,
            "pods": observer.observe_pod,
        }
        tasks = [asyncio.create_task(self._follow(resource, observe)) for resource, observe in followed.items()]
        try:
            yield self
        finally:
            for task in tasks:
                task.cancel()
            for node in self._nodes:
                await self.client.delete(f"/api/v1/nodes/{node}")

    async def _follow(self, resource: str, observe: Observe) -> None:
        async for change in self.client.follow(self.vms.path(resource)):
            for raw in change.items if isinstance(change, Listed) else [change.object]:
                is_deleted = isinstance(change, Event) and change.type == "DELETED"
                observe(_with_plain_node(as_json(raw), self.namespace), is_deleted=is_deleted)
            self._changed.set()

    def _name(self, node: str) -> str:
        return f"{node}.{self.namespace}"

    async def add_node(self, name: str, labels: dict[str, str]) -> None:
        reserved = nodes.reserved(self.namespace)
        own = self._name(name)
        self._nodes.append(own)
        node = a_vm_node(own, now=time.time(), labels={**labels, **reserved["labels"]}, taints=reserved["taints"])
        await nodes.create(self.client, [node])
        await self.client.wait_until(f"/api/v1/nodes/{own}", nodes.is_usable)

    async def set_cordon(self, node: str, is_cordoned: bool) -> None:
        await self.client.patch(f"/api/v1/nodes/{self._name(node)}", {"spec": {"unschedulable": is_cordoned or None}})

    async def add_taint(self, node: str, key: str) -> None:
        taints = [*nodes.reserved(self.namespace)["taints"], {"key": key, "effect": "NoSchedule"}]
        await self.client.patch(f"/api/v1/nodes/{self._name(node)}", {"spec": {"taints": taints}})

    async def create_vm(self, vm: Json) -> None:
        template = vm["spec"]["template"]
        spec = {**template["spec"], **nodes.on_reserved(self.namespace)}
        await self.vms.create({**vm, "spec": {**vm["spec"], "template": {**template, "spec": spec}}})

    async def create_migration(self, machine: str) -> str:
        body = {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstanceMigration",
            "metadata": {"generateName": "move-"},
            "spec": {"vmiName": machine},
        }
        try:
            await self.client.create(self.vms.path("virtualmachineinstancemigrations"), body)
        except ApiError as error:
            return words_of(str(error).partition(": ")[2], self.namespace)
        return ""

    async def evict(self, pod: Json) -> str:
        try:
            await self.vms.evict(pod)
        except ApiError as error:
            return words_of(str(error).partition(": ")[2], self.namespace)
        return ""

    async def wait(self, seconds: float, until: Callable[[], bool] | None = None) -> bool:
        deadline = time.monotonic() + seconds
        while until is None or not until():
            self._changed.clear()
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), left)
        return True


def _with_plain_node(document: Json, namespace: str) -> Json:
    """Node names as the story has them."""
    for part in ("spec", "status"):
        node = (document.get(part) or {}).get("nodeName")
        if node:
            document[part]["nodeName"] = node.removesuffix(f".{namespace}")
    return document
