"""A dry run of components, on the embedded store: everything is said, nothing is written, and nobody leads."""

from __future__ import annotations

import asyncio
import logging

import pytest

from embedded.store_fixtures import NAMESPACE, key
from runtime.virtual import LoopClock, play
from wukong.api.kinds import LEASES, NAMESPACES
from wukong.api.kinds import PLACEMENT_POLICIES as POLICIES
from wukong.app.assemble import assemble
from wukong.app.component import Context
from wukong.app.components.policy import POLICY
from wukong.app.live import build_loop, say_dry_run
from wukong.app.run_config import RunConfig, RunOptions
from wukong.cluster.layers import DryRun
from wukong.embedded.store import Store
from wukong.placement.rules import BUILT_IN
from wukong.ports import PatchBody
from wukong.runtime import Metrics
from wukong.state import State

TOUCHED = PatchBody("merge", {"metadata": {"labels": {"a": "b"}}})


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_dry_run_says_each_write_and_changes_nothing(dry_run: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        config = RunConfig((POLICY,), RunOptions(dry_run=dry_run))
        clock, metrics = LoopClock(), Metrics()
        async with Store(clock) as store:
            await store.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
            cluster = DryRun(store, say_dry_run) if dry_run else store
            assembly = assemble(config.components, Context(State(), metrics, clock, BUILT_IN, config.options))
            loop = build_loop(cluster, clock, metrics, assembly, config, "one")
            stop = asyncio.Event()
            task = asyncio.create_task(loop.run(stop))
            await asyncio.sleep(5)
            await store.create(POLICIES, {"metadata": {"name": "web"}, "spec": {}}, NAMESPACE)
            await asyncio.sleep(60)
            await store.patch(POLICIES, key("web"), TOUCHED)
            await asyncio.sleep(60)
            stop.set()
            await task
            policy = await store.get(POLICIES, key("web"), dict)
            assert ("status" in policy) == (not dry_run)
            assert len((await store.list(LEASES, dict)).items) == (not dry_run)

    with caplog.at_level(logging.INFO):
        play(story())
    said = [vars(record)["action"] for record in caplog.records if record.message == "dry run: would write"]
    assert said == ([f"Patch PlacementPolicy {NAMESPACE}/web"] * 2 if dry_run else [])
