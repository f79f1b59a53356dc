"""A session with an embedded cluster, for tests of what changes workloads: the code of the verbs, in virtual time.

    with a_session(nodes=2, workloads=[a_deployment(replicas=2)]) as site:
        code = change_workload(site.session, …)

`site.answers` are what is said to questions, one after the other; `site.before_write` is called before each write, as
somebody else would act meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

from forecast.clusters import nodes as build_nodes
from wukong.actions import Action
from wukong.api.kinds import KINDS, NODES, PODS
from wukong.api.resources import Key, Resource
from wukong.app.embedded import Settings, build_world
from wukong.cli.changes.session import Session
from wukong.cluster.layers import Layer
from wukong.embedded.scenario.play.steps import Drains
from wukong.embedded.store import Store
from wukong.embedded.world.world import World
from wukong.ports import Cluster, Document, PatchBody, Selection

T = TypeVar("T")
WEB = Key("default", "web")


class WorldObservation:
    """Waiting lets the world go on until something changes in it."""

    def __init__(self, world: World) -> None:
        self._world, self._is_changed = world, False
        world.listen(self._hear)

    def _hear(self, _: object) -> None:
        self._is_changed = True

    def now(self) -> float:
        return self._world.clock.now()

    async def wait(self, seconds: float) -> None:
        self._is_changed = False
        self._world.run(until=lambda _: self._is_changed, seconds=seconds)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class _Meanwhile(Layer):
    """Lets somebody else act before each write that is no dry run."""

    def __init__(self, cluster: Cluster, act: Callable[[Action], None]) -> None:
        super().__init__(cluster)
        self._act = act

    async def write(self, action: Action, answer: T, perform: Callable[[], Coroutine[Any, Any, T]]) -> T:
        if not getattr(getattr(action, "patch", None), "is_dry_run", False):
            self._act(action)
        return await perform()


class Site:
    def __init__(self, world: World, runner: asyncio.Runner, minor: int | None) -> None:
        self.world, self.questions, self.writes = world, list[str](), list[Action]()
        self.answers: list[bool] = []
        self.before_write: Callable[[Action], None] = lambda action: None
        cluster = _Meanwhile(Store(server=world.server), self._write)
        self.fewest_available = 1_000_000
        self.session = Session(
            cluster, world.clock, lambda resource, key: WorldObservation(world), runner, minor, self._ask
        )

    def _write(self, action: Action) -> None:
        self.before_write(action)
        self.writes.append(action)

    def _ask(self, question: str) -> bool:
        self.questions.append(question)
        return self.answers.pop(0) if self.answers else True

    def get(self, resource: Resource, key: Key = WEB) -> Document:
        return self.world.server.get(resource, key)

    def patch(self, resource: Resource, body: Document, key: Key = WEB) -> None:
        """As somebody else."""
        self.world.server.patch(resource, key, PatchBody("merge", body, manager="kubectl-edit"))

    def nodes_of_pods(self, app: str = "web") -> list[str]:
        pods = self.world.server.list(PODS, Selection("default", f"app={app}")).items
        return sorted(pod["spec"].get("nodeName", "") for pod in pods if "deletionTimestamp" not in pod["metadata"])


@contextmanager
def a_session(
    nodes: int = 2, workloads: Sequence[Document] = (), minor: int | None = 35, seed: int = 0
) -> Iterator[Site]:
    world = build_world(Settings(seed=seed), Drains())
    for node in build_nodes(nodes):
        node["status"]["conditions"] = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
        world.server.create(NODES, node)
    for document in workloads:
        kind = KINDS.of_document(document["kind"], document["apiVersion"])
        assert kind is not None
        world.server.create(kind.resource, document, document["metadata"]["namespace"])
    world.run(seconds=120.0)
    with asyncio.Runner() as runner:
        yield Site(world, runner, minor)
