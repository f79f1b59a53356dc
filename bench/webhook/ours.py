"""Wukong's webhooks as a process of their own, for the benchmark: 1,000 policies mirrored, each with a share of spot.

`python -m bench.webhook.ours [CERTIFICATE KEY]` prints the port it listens on and serves until it is ended. Nothing is
left out but the cluster: state, policies, decisions, metrics, HTTP and TLS are those of `wukong run`.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from bench.webhook import requests
from wukong.api.kinds import PLACEMENT_POLICIES
from wukong.api.placement import PlacementPolicy
from wukong.app.components.admission.server import Reviewers
from wukong.placement.rules import BUILT_IN
from wukong.replies.admission.own_kinds import KindAdmission
from wukong.replies.admission.pods import PodAdmission
from wukong.runtime.metrics import AdmissionMetrics, Metrics
from wukong.runtime.short_collections import keep_collections_short
from wukong.serve.admission.server import build_admission_app
from wukong.serve.site import serve
from wukong.serve.tls import CertificateFiles
from wukong.state import State


class WallClock:
    is_synced = True

    def now(self) -> float:
        return time.time()


def build_policy(number: int) -> PlacementPolicy:
    app = requests.app_of(number)
    spec = {
        "selector": {"matchLabels": {"app": app}},
        "capacity": {"strategy": "spot-preferred", "onDemandBase": 2, "spotPercent": 60},
        "versionAntiAffinity": {"preferred": {"weight": 50}},
        "scheduling": {"tolerations": [{"key": "team", "operator": "Equal", "value": "shop", "effect": "NoSchedule"}]},
    }
    return msgspec.convert({"metadata": {"name": app, "namespace": "shop"}, "spec": spec}, PlacementPolicy)


def build() -> Reviewers:
    state = State()
    state.replace(PLACEMENT_POLICIES.group_kind, [build_policy(number) for number in range(requests.POLICIES)])
    return Reviewers(PodAdmission(state, lambda: secrets.token_hex(8)), KindAdmission(BUILT_IN))


async def main() -> None:
    wall, metrics = WallClock(), Metrics()
    app = build_admission_app(build(), wall, AdmissionMetrics(metrics), wall)
    async with AsyncExitStack() as stack:
        stack.enter_context(keep_collections_short())  # as `wukong run` does
        paths = [Path(text) for text in sys.argv[1:]]
        tls = CertificateFiles(paths[0], paths[1], None).build_context() if paths else None
        print(await serve(stack, app, "127.0.0.1", 0, tls), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
