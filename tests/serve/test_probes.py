"""The probes answer over HTTP what the loop knows."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from aiohttp.test_utils import TestClient, TestServer

from wukong.runtime.metrics import Metrics
from wukong.runtime.mirror_age import OldWatch
from wukong.serve.probes import build_probes_app


@dataclass
class Status:
    is_synced: bool
    old: list[OldWatch] = field(default_factory=list)

    def list_troubles(self) -> list[str]:
        return [str(watch) for watch in self.old]

    def describe_unsynced(self) -> list[str]:
        return [] if self.is_synced else ["Pod has not been listed yet: the answer is not JSON"]


def test_probes() -> None:
    async def story() -> None:
        status, metrics = Status(False), Metrics()
        metrics.leader.set(1)
        metrics.actions.labels("Bind", "ok").inc()
        async with TestClient(TestServer(build_probes_app(status, metrics))) as client:
            assert (await client.get("/healthz")).status == 200
            answer = await client.get("/readyz")
            assert (answer.status, await answer.text()) == (
                503,
                "not every kind has been listed yet\nPod has not been listed yet: the answer is not JSON\n",
            )
            status.is_synced = True
            assert (await client.get("/readyz")).status == 200
            status.old = [OldWatch("Node", 162.4, 150.0), OldWatch("Pod", 150.1, 150.0)]
            answer = await client.get("/readyz")
            assert (answer.status, await answer.text()) == (
                503,
                "the watch of Node is 163 s old (limit 150 s)\nthe watch of Pod is 151 s old (limit 150 s)\n",
            )
            assert (await client.get("/healthz")).status == 200
            text = await (await client.get("/metrics")).text()
        assert "wukong_leader 1.0" in text
        assert 'wukong_actions_total{action="Bind",result="ok"} 1.0' in text

    asyncio.run(story())
