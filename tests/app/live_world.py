"""A cluster for tests of app/sim_live without a control plane: an embedded one behind the port, in virtual time.

    def test_…() -> None:
        async def story(site: LiveWorld) -> None:
            await play_live(site.cluster, scenario, Options(), site.say)

        play_in_live_world(story)

Its clock is the event loop's, so what takes minutes there takes milliseconds here. `site.when(seconds, act)` lets
others act meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from unittest.mock import patch

import msgspec

from runtime.virtual import EPOCH, LoopClock, play
from wukong.api.kinds import KINDS, NAMESPACES, NODES, SERVICE_ACCOUNTS
from wukong.api.resources import Key, Resource
from wukong.app.embedded import Settings, build_world
from wukong.embedded.scenario import Scenario, read_scenario
from wukong.embedded.scenario.play.steps import Drains
from wukong.embedded.store import Store
from wukong.errors import NotFound
from wukong.ports import Document, PatchBody

TEMPLATE: Document = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "1"}}}]},
}
TICK_SECONDS = 0.05  # between two moments at which the cluster's controllers are let run


def a_workload(kind: str = "Deployment", name: str = "web", **spec: Any) -> Document:
    """Two pods of app=web in namespace shop."""
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE, **spec},
    }


def a_scenario(*timeline: Document, manifests: list[Document] | None = None, **fields: Any) -> Scenario:
    """Nodes own-1 and own-2, and `a_workload()` if nothing else is given."""
    document = {
        "nodes": [{"namePrefix": "own-", "count": 2}],
        "manifests": [a_workload()] if manifests is None else manifests,
        "timeline": list(timeline),
        "until": "2m",
        **fields,
    }
    return read_scenario(msgspec.json.encode(document))


class LiveWorld:
    def __init__(self) -> None:
        self.world = build_world(Settings(takes_time=False), Drains())
        self.cluster = Store(server=self.world.server)
        self.messages: list[str] = []
        self.say = self.messages.append
        self.makes_accounts = True
        self.has_hollow_kubelets = False  # those that say so, as the test bed's do
        self._others: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        """Play Kubernetes' own controllers, and give each namespace its account, as a controller manager does."""
        while True:
            self.world.run(deadline=EPOCH + asyncio.get_running_loop().time())
            for namespace in self.world.server.list(NAMESPACES).items:
                name = namespace["metadata"]["name"]
                is_active = "deletionTimestamp" not in namespace["metadata"]
                if self.makes_accounts and is_active and self.find(SERVICE_ACCOUNTS, Key(name, "default")) is None:
                    self.world.server.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, name)
            for node in self.world.server.list(NODES).items if self.has_hollow_kubelets else ():
                if not node["status"]["nodeInfo"]["containerRuntimeVersion"]:
                    status = {"status": {"nodeInfo": {"containerRuntimeVersion": "hollow://1"}}}
                    self.world.server.patch(
                        NODES, Key("", node["metadata"]["name"]), PatchBody("merge", status), "status"
                    )
            await asyncio.sleep(TICK_SECONDS)

    def when(self, seconds: float, act: Callable[[], object]) -> None:
        """Have somebody else act after so many seconds."""

        async def wait_and_act() -> None:
            await asyncio.sleep(seconds)
            act()

        self._others.append(asyncio.ensure_future(wait_and_act()))

    def find(self, resource: Resource, key: Key) -> Document | None:
        try:
            return self.world.server.get(resource, key)
        except NotFound:
            return None

    def add_nodes(self, *names: str, **spec: Any) -> None:
        capacity = {"cpu": "4", "memory": "16Gi", "pods": "110"}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        for name in names:
            status = {"capacity": capacity, "allocatable": capacity, "conditions": [ready]}
            meta = {"name": name, "labels": {"kubernetes.io/hostname": name}}
            self.world.server.create(NODES, {"metadata": meta, "spec": spec, "status": status})

    def cordon(self, name: str, is_cordoned: bool = True) -> None:
        body = {"spec": {"unschedulable": is_cordoned or None}}
        self.world.server.patch(NODES, Key("", name), PatchBody("merge", body, manager="kubectl-cordon"))

    def is_cordoned(self, name: str) -> bool:
        return bool(self.world.server.get(NODES, Key("", name))["spec"].get("unschedulable"))

    def add_namespace(self, name: str = "shop") -> None:
        self.world.server.create(NAMESPACES, {"metadata": {"name": name}})

    def names(self, kind: str) -> list[str]:
        documents = self.world.server.list(KINDS.resource_named(kind)).items
        return [document["metadata"]["name"] for document in documents]


def play_in_live_world(story: Callable[[LiveWorld], Awaitable[None]]) -> None:
    async def run() -> None:
        site = LiveWorld()
        running = asyncio.ensure_future(site.run())
        try:
            async with asyncio.timeout(3600):
                await story(site)
        finally:
            if running.done():
                running.result()
            for task in (running, *site._others):
                task.cancel()

    with patch("wukong.app.sim_live.real_cluster.WallClock", LoopClock):
        play(run())
