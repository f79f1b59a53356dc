"""A real kube-scheduler whose extender goes away and comes back."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from live.extending import Extended, extender_running, free_port, scene_beside, scheduler_config
from testbed.programs import Programs

pytestmark = pytest.mark.slow


async def test_scheduling_goes_on_while_the_extender_is_dead_and_is_spot_first_again_after(
    extended: Extended, testbed_programs: Programs, tmp_path: Path
) -> None:
    port, log, kubeconfig = free_port(), tmp_path / "extender.log", extended.bed.kubeconfig
    config = scheduler_config(tmp_path, port, ignorable=True)
    with extender_running(kubeconfig, port, log) as process:
        async with scene_beside(extended, testbed_programs, config, port) as here:
            await here.nodes("spot", "spot", capacity={"cpu": "2"})
            await here.nodes("on-demand", "od", capacity={"cpu": "8"})
            # The scheduler alone prefers the emptier node, the extender spot.
            assert await here.place("before", cpu="1") == "spot"
            process.send_signal(signal.SIGKILL)
            process.wait()
            assert await here.place("meanwhile", cpu="100m") == "od"
            with extender_running(kubeconfig, port, log):
                assert await here.place("after", cpu="100m") == "spot"


async def test_pods_wait_for_a_dead_extender_where_it_is_not_ignorable(
    extended: Extended, testbed_programs: Programs, tmp_path: Path
) -> None:
    """Why we ship `ignorable: true`."""
    port, log, kubeconfig = free_port(), tmp_path / "extender.log", extended.bed.kubeconfig
    config = scheduler_config(tmp_path, port, ignorable=False)
    with extender_running(kubeconfig, port, log) as process:
        async with scene_beside(extended, testbed_programs, config, port) as here:
            await here.nodes("spot", "spot")
            await here.nodes("on-demand", "od")
            process.send_signal(signal.SIGKILL)
            process.wait()
            await here.make("web")
            # "connection refused", or "EOF" where the scheduler tries a connection first that it had kept open.
            assert f"http://127.0.0.1:{port}/filter" in await here.refused("web")
            with extender_running(kubeconfig, port, log):
                assert await here.node_of("web") == "spot"
