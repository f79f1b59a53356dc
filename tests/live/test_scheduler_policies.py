"""Our scheduler on a real cluster with policies: it judges them as the extender does, and an edit holds at once."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from live.extending import Extended, scene
from live.scheduler_process import scheduler_running

pytestmark = pytest.mark.slow

WEB = {"app": "web"}


async def test_a_policy_refuses_a_pod_until_it_is_edited_and_chooses_among_nodes(
    extended: Extended, tmp_path: Path
) -> None:
    scheduler = f"ours-{secrets.token_hex(4)}"
    spec = {"selector": {"matchLabels": WEB}}
    async with scene(extended.bed, extended.port) as here:
        await here.nodes("on-demand", "od")
        await here.policy("web", {**spec, "capacity": {"strategy": "spot-only"}})
        with scheduler_running(extended.bed.kubeconfig, scheduler, tmp_path / "scheduler.log"):
            await here.make("web-1", cpu="800m", labels=WEB, schedulerName=scheduler)
            assert "1 not spot: spot-only (PlacementPolicy default/web)" in await here.refused("web-1")
            await here.nodes("spot", "spot", capacity={"cpu": "1"})
            assert await here.node_of("web-1") == "spot"
            await here.make("web-2", cpu="800m", labels=WEB, schedulerName=scheduler)
            await here.refused("web-2")
            await here.policy("web", {**spec, "capacity": {"strategy": "spot-first"}})
            assert await here.node_of("web-2") == "od"
            event = await here.event("CapacityFallback", "web-2")
    assert "No spot node is left for spot-first; using on-demand" in event["note"]
