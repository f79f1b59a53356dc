"""`extended`: a cluster whose kube-scheduler asks `wukong run --components extender`. One per run.

`vm_component`: the control plane with KubeVirt, our kinds, and `wukong run --components vm`. One per run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from live.accounts import service_account
from live.extending import ACCOUNT, PERMISSIONS, Extended, extender_running, free_port, furnish, scheduler_config
from live.node_metrics import CRD
from testbed import supervisor
from testbed.programs import Programs
from testbed.pytest_plugin import RUN, Bed
from testbed.supervisor import Order
from vm_comparison.machinery import component_running
from vm_comparison.machinery import furnish as furnish_for_vms


@pytest.fixture(scope="session")
def extended(
    request: pytest.FixtureRequest, testbed_programs: Programs, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Extended]:
    folder = tmp_path_factory.mktemp("extended")
    port, probes = free_port(), free_port()
    order = Order(nodes=0, owner=request.config.stash[RUN].owner, scheduler_config=scheduler_config(folder, port))
    state = supervisor.up(folder / "bed", order, lambda line: None)
    bed, log = Bed(state.kubeconfig, state.seconds), folder / "extender.log"
    try:
        kubeconfig = asyncio.run(prepare(bed, folder))
        with extender_running(kubeconfig, port, log, "--probes", f"127.0.0.1:{probes}"):
            yield Extended(bed, port, probes, log)
    finally:
        supervisor.down(folder / "bed", keep_logs=True)


async def prepare(bed: Bed, folder: Path) -> Path:
    """A kubeconfig with exactly the extender's rights; metrics.k8s.io as a kind of its own."""
    async with bed.client() as client:
        await furnish(client)
        await client.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
        return await service_account(client, bed, "default", ACCOUNT, PERMISSIONS, folder)


@pytest.fixture(scope="session")
def vm_component(kubevirt_bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """It acts on every Wukong there, and restarts machines that ask for it after a second."""
    folder = tmp_path_factory.mktemp("vm")
    kubeconfig = asyncio.run(furnish_for_vms(kubevirt_bed, folder))
    with component_running(kubeconfig, folder / "vm.log", "--restart-pause-seconds", "1"):
        yield kubevirt_bed
