"""What kube-scheduler does while bindings are under way: why the checkers judge them by what was assumed then."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import yaml
from aiohttp import web

from live.second_leader import HoldingProxy
from testbed.client import Client
from testbed.control_plane import ControlPlane
from testbed.pytest_plugin import OwnControlPlane

NODES, PODS = "/api/v1/nodes", "/api/v1/namespaces/default/pods"
BESIDE_FIRST = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "first"}}}
        ]
    }
}


class RefusingProxy(HoldingProxy):
    """Refuses every binding of the pod `first`, once the pod `second` is to be bound, too; and only then lets that."""

    def __init__(self, original: Path) -> None:
        super().__init__(original)
        self.first_came, self._second_came, self._first_refused = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        if request.path == f"{PODS}/first/binding":
            self.first_came.set()
            await self._second_came.wait()
            self._first_refused.set()
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict", "code": 409}
            return web.json_response(status, status=409)
        if request.path == f"{PODS}/second/binding":
            self._second_came.set()
            await self._first_refused.wait()
        return await super()._pass_on(request)


async def test_a_pod_is_bound_beside_one_whose_own_binding_failed_meanwhile(
    own_control_plane: OwnControlPlane, tmp_path: Path
) -> None:
    """The second decision counts on the first, which is assumed; nobody takes it back when that fails."""
    with own_control_plane() as plane:
        plane.end("scheduler")
        proxy = RefusingProxy(plane.kubeconfig)
        async with Client.of(plane.kubeconfig) as client, proxy.kubeconfig(tmp_path) as kubeconfig:
            await add_node(client)
            await create_pod(client, "first", {})
            launch_scheduler(plane, kubeconfig)
            async with asyncio.timeout(60):
                await proxy.first_came.wait()
            await create_pod(client, "second", BESIDE_FIRST)
            await client.wait_until(f"{PODS}/second", lambda pod: pod["spec"].get("nodeName") == "n0")
            assert "nodeName" not in (await client.get(f"{PODS}/first"))["spec"]


async def add_node(client: Client) -> None:
    ready = {"type": "Ready", "status": "True"}
    status = {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"}, "conditions": [ready]}
    labels = {"kubernetes.io/hostname": "n0"}
    await client.create(NODES, {"metadata": {"name": "n0", "labels": labels}, "status": status})
    await client.patch(f"{NODES}/n0", {"spec": {"taints": None}})


async def create_pod(client: Client, name: str, affinity: Mapping[str, object]) -> None:
    spec = {"containers": [{"name": "main", "image": "main:1"}], "affinity": affinity}
    await client.create(PODS, {"metadata": {"name": name, "labels": {"app": name}}, "spec": spec})


def launch_scheduler(plane: ControlPlane, kubeconfig: Path) -> None:
    """With a client that leads through the proxy."""
    path = plane.layout.scheduler_config
    config = yaml.safe_load(path.read_text())
    config["clientConnection"] |= {"kubeconfig": str(kubeconfig)}
    path.write_text(yaml.safe_dump(config))
    plane.launch("scheduler")
