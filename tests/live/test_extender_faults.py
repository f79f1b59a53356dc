"""A real kube-scheduler whose extender goes away and comes back."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from live.extending import extender_running, free_port, furnish, scene, scheduler_config
from testbed.pytest_plugin import Bed, OwnBed

pytestmark = pytest.mark.slow


async def a_bed(own_bed: OwnBed, folder: Path, port: int, *, ignorable: bool) -> Bed:
    bed = own_bed(nodes=0, scheduler_config=scheduler_config(folder, port, ignorable=ignorable))
    async with bed.client() as client:
        await furnish(client)
    return bed


async def test_scheduling_goes_on_while_the_extender_is_dead_and_is_spot_first_again_after(
    own_bed: OwnBed, tmp_path: Path
) -> None:
    port, log = free_port(), tmp_path / "extender.log"
    bed = await a_bed(own_bed, tmp_path, port, ignorable=True)
    with extender_running(bed.kubeconfig, port, log) as process:
        async with scene(bed, port) as here:
            await here.nodes("spot", "spot", capacity={"cpu": "2"})
            await here.nodes("on-demand", "od", capacity={"cpu": "8"})
            # The scheduler alone prefers the emptier node, the extender spot.
            assert await here.place("before", cpu="1") == "spot"
            process.send_signal(signal.SIGKILL)
            process.wait()
            assert await here.place("meanwhile", cpu="100m") == "od"
            with extender_running(bed.kubeconfig, port, log):
                assert await here.place("after", cpu="100m") == "spot"


async def test_pods_wait_for_a_dead_extender_where_it_is_not_ignorable(own_bed: OwnBed, tmp_path: Path) -> None:
    """Why we ship `ignorable: true`."""
    port, log = free_port(), tmp_path / "extender.log"
    bed = await a_bed(own_bed, tmp_path, port, ignorable=False)
    with extender_running(bed.kubeconfig, port, log) as process:
        async with scene(bed, port) as here:
            await here.nodes("spot", "spot")
            await here.nodes("on-demand", "od")
            process.send_signal(signal.SIGKILL)
            process.wait()
            await here.make("web")
            # "connection refused", or "EOF" where the scheduler tries a connection first that it had kept open.
            assert f"http://127.0.0.1:{port}/filter" in await here.refused("web")
            with extender_running(bed.kubeconfig, port, log):
                assert await here.node_of("web") == "spot"
