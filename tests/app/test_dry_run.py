"""A dry run of components, on the embedded store: everything is said, nothing is written, and nobody leads."""

from __future__ import annotations

import asyncio
import logging

import pytest

from embedded.store_fixtures import NAMESPACE, key
from runtime.virtual import LoopClock, play
from wukong.actions import Action, Bind, Delete, Patch
from wukong.api.kinds import LEASES, NAMESPACES, PODS
from wukong.api.kinds import PLACEMENT_POLICIES as POLICIES
from wukong.api.resources import Key
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


@pytest.mark.parametrize(
    ("action", "said", "details"),
    [
        (Patch(POLICIES, Key("shop", "web"), TOUCHED), "Patch PlacementPolicy shop/web", {"patch", "subresource"}),
        (Delete(PODS, Key("shop", "web"), uid="u"), "Delete Pod shop/web", None),
        (Bind(Key("shop", "web"), "node-a", "u"), "Bind Pod shop/web", {"node", "uid"}),
    ],
)
def test_what_would_be_written_is_said_with_its_details_and_the_object_once(
    action: Action, said: str, details: set[str] | None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        say_dry_run(action)
    (record,) = caplog.records
    assert vars(record)["action"].startswith(said)
    told = vars(record)["details"]
    assert not told.keys() & {"type", "resource", "key"}
    if details is not None:
        assert told.keys() == details
