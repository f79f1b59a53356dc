"""A real kube-scheduler with our extender beside it: what pods get, and what happens when things go wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from live.extending import (
    extender_running,
    free_port,
    install_policies,
    make_nodes,
    make_pod,
    node_of,
    place,
    seed_config,
)
from testbed.pytest_plugin import OwnBed

pytestmark = pytest.mark.slow


async def test_pods_go_to_spot_and_to_on_demand_once_spot_is_cordoned_or_full(own_bed: OwnBed, tmp_path: Path) -> None:
    """With the configuration that seed 004 has, unchanged: no node cache, so nodes travel in full."""
    port = free_port()
    bed = own_bed(nodes=0, scheduler_config=seed_config(tmp_path, port))
    async with bed.client() as client:
        await install_policies(client)
        await make_nodes(client, "spot", "spot-1", "spot-2", capacity={"cpu": "1"})
        await make_nodes(client, "on-demand", "od-1", "od-2")
        with extender_running(bed, port, tmp_path / "extender.log"):
            spread = [await place(client, f"first-{number}", cpu="200m") for number in range(4)]
            assert set(spread) <= {"spot-1", "spot-2"}
            await client.patch("/api/v1/nodes/spot-1", {"spec": {"unschedulable": True}})
            assert await place(client, "second") == "spot-2"
            await make_pod(client, "filler", cpu="1")  # more than spot-2 has left
            assert (await node_of(client, "filler")).startswith("od-")
            await client.patch("/api/v1/nodes/spot-2", {"spec": {"unschedulable": True}})
            assert (await place(client, "third")).startswith("od-")
            await client.patch("/api/v1/nodes/spot-2", {"spec": {"unschedulable": False}})
            assert await place(client, "fourth") == "spot-2"
