"""Wukong's extender as a process of its own, for the benchmark: nodes mirrored, a policy with preferences and rules.

`python -m bench.extender.ours` prints the port it listens on and serves until it is ended. Nothing is left out but the
cluster: state, policy, usage, rules, metrics and HTTP are those of `wukong run`.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack

import msgspec

from bench.extender import requests
from wukong.api.decode import decode_objects
from wukong.api.kinds import NODE_USAGES
from wukong.api.meta import ObjectMeta
from wukong.api.placement import PlacementPolicy
from wukong.api.usage import NodeUsage
from wukong.app.components.extender.server import CountingExtender
from wukong.replies.extender.usage import UsageSettings
from wukong.replies.extender.verbs import Extender, Settings
from wukong.runtime.metrics import ExtenderMetrics, Metrics
from wukong.serve.extender.server import build_extender_app
from wukong.serve.site import serve
from wukong.state import State

POLICY = {
    "kind": "PlacementPolicy",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "capacity": {"strategy": "spot-first"},
        "scheduling": {
            "resourceAffinity": {
                "preferredCPU": {"weight": 60, "threshold": "70%"},
                "preferredMemory": {"weight": 40, "threshold": "80%"},
            },
            "schedulingPolicy": {
                "rules": [
                    {"name": "cost-aware", "type": "score", "weight": 50, "config": {"costFactor": 0.6}},
                    {"name": "label-match", "type": "score", "weight": 20, "config": {"matchLabels": {"disk": "ssd"}}},
                ]
            },
        },
    },
}


class WallClock:
    is_synced = True

    def now(self) -> float:
        return time.time()


def build() -> Extender:
    state = State()
    state.replace("Node", decode_objects(requests.node_list()))
    state.replace("PlacementPolicy.placement.novasphere.dev", [msgspec.convert(POLICY, PlacementPolicy)])
    now = time.time()
    usages = [
        NodeUsage(
            metadata=ObjectMeta(name=requests.name_of(number)),
            measured_at=now,
            cpu=float(number * 7 % 100),
            memory=float(number * 3 % 100),
        )
        for number in range(requests.NODES)
    ]
    state.replace(NODE_USAGES.group_kind, usages)
    return Extender(state, Settings(usage=UsageSettings(stale_seconds=3600)))


async def main() -> None:
    wall, metrics = WallClock(), Metrics()
    app = build_extender_app(CountingExtender(build(), metrics, wall), wall, ExtenderMetrics(metrics), wall)
    async with AsyncExitStack() as stack:
        print(await serve(stack, app, "127.0.0.1", 0), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
