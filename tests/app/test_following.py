"""Following a rollout while the API server fails to answer for a while, or for good."""

from __future__ import annotations

import asyncio
from typing import TypeVar

import pytest

from small_cluster import ManualClock
from wukong.api.kinds import DEPLOYMENTS
from wukong.api.resources import Key, Resource
from wukong.app.changes.following import SILENT_SECONDS, follow_rollout
from wukong.app.changes.reading import format_selector
from wukong.cluster.layers import Layer
from wukong.embedded.store import Server, Store
from wukong.errors import ServerFailed
from wukong.ports import Document

T = TypeVar("T")
WEB = Key("default", "web")


class Observation:
    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    def now(self) -> float:
        return self._clock.now()

    async def wait(self, seconds: float) -> None:
        self._clock.time += seconds


class Failing(Layer):
    """Fails so many reads, then answers."""

    failures = 0

    async def get(self, resource: Resource, key: Key, read: type[T]) -> T:
        if self.failures:
            self.failures -= 1
            raise ServerFailed("the server is restarted")
        return await super().get(resource, key, read)


def follow(failures: int) -> list[str]:
    clock = ManualClock()
    server = Server(clock, definitions=())
    labels = {"app": "web"}
    template: Document = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "w", "image": "web:1"}]},
    }
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    server.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec}, "default")

    async def run() -> list[str]:
        cluster = Failing(Store(server=server))
        cluster.failures = failures
        looks = follow_rollout(cluster, DEPLOYMENTS, WEB, Observation(clock), timeout_seconds=1.0)
        return [look.progress.state async for look in looks]

    return asyncio.run(run())


def test_an_api_server_that_fails_for_a_while_is_asked_again() -> None:
    assert follow(failures=5) == ["running"]


def test_an_api_server_that_fails_for_good_is_said() -> None:
    with pytest.raises(ServerFailed):
        follow(failures=int(SILENT_SECONDS))


def test_a_selector_is_written_as_kubectl_takes_it() -> None:
    expressions = [
        {"key": "tier", "operator": "NotIn", "values": ["a", "b"]},
        {"key": "x", "operator": "Exists"},
        {"key": "y", "operator": "DoesNotExist"},
    ]
    selector = {"matchLabels": {"app": "web"}, "matchExpressions": expressions}
    assert format_selector(selector) == "app=web,tier notin (a,b),x,!y"
    assert format_selector(None) == ""
