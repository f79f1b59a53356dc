"""`extended`: a cluster whose kube-scheduler asks `wukong run --components extender`. One per run.

`webhooks`: a cluster whose API server asks `wukong run --components admission`. One per run.

`vm_component`: the control plane with KubeVirt, our kinds, and `wukong run --components vm`. One per run.
`kinds`: a control plane with our kinds, and nobody who acts on them but whom a test starts. One per run.
`few_controllers`: a control plane whose controllers are those of budgets and DaemonSets alone. One per run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from live.accounts import service_account
from live.admitting import SPOT_FIRST, Webhooks, put_policy
from live.extending import ACCOUNT, PERMISSIONS, Extended, extender_running, free_port, furnish, scheduler_config
from live.node_metrics import CRD
from live.test_policies import install, path_of, until_served
from testbed import supervisor
from testbed.client import Client
from testbed.control_plane import ControlPlane
from testbed.programs import Programs
from testbed.pytest_plugin import RUN, Bed, close_with_last_use
from testbed.supervisor import Order
from vm_comparison.machinery import component_running
from vm_comparison.machinery import furnish as furnish_for_vms


@pytest.fixture(scope="session")
def extended(
    request: pytest.FixtureRequest, testbed_programs: Programs, tmp_path_factory: pytest.TempPathFactory
) -> Extended:
    folder = tmp_path_factory.mktemp("extended")
    port, probes = free_port(), free_port()
    order = Order(nodes=0, owner=request.config.stash[RUN].owner, scheduler_config=scheduler_config(folder, port))
    stack = close_with_last_use(request)
    state = supervisor.up(folder / "bed", order, lambda line: None)
    stack.callback(supervisor.down, folder / "bed", keep_logs=True)
    bed, log = Bed(state.kubeconfig, state.seconds), folder / "extender.log"
    kubeconfig = asyncio.run(prepare(bed, folder))
    stack.enter_context(extender_running(kubeconfig, port, log, "--probes", f"127.0.0.1:{probes}"))
    return Extended(bed, port, probes, log)


@pytest.fixture(scope="session")
def kinds(request: pytest.FixtureRequest, testbed_programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Bed:
    folder = tmp_path_factory.mktemp("kinds") / "bed"
    stack = close_with_last_use(request)
    state = supervisor.up(folder, Order(nodes=0, owner=request.config.stash[RUN].owner), lambda line: None)
    stack.callback(supervisor.down, folder, keep_logs=True)
    bed = Bed(state.kubeconfig, state.seconds)
    asyncio.run(install_kinds(bed))
    return bed


ONLY_THOSE = "--controllers=serviceaccount-controller,disruption-controller,daemonset-controller"


@pytest.fixture(scope="session")
def few_controllers_of_run(
    request: pytest.FixtureRequest, testbed_programs: Programs, tmp_path_factory: pytest.TempPathFactory
) -> ControlPlane:
    flags = {"controller-manager": [ONLY_THOSE]}
    plane = ControlPlane(tmp_path_factory.mktemp("few-controllers"), testbed_programs, extra_flags=flags)
    close_with_last_use(request).callback(plane.stop)
    plane.start()
    return plane


@pytest.fixture
def few_controllers(few_controllers_of_run: ControlPlane) -> Iterator[ControlPlane]:
    """With its controller manager, and without what the test before has made. There is nobody who collects garbage."""
    plane = few_controllers_of_run
    if "controller-manager" not in plane.running:
        plane.launch("controller-manager")
        plane.await_ready("controller-manager")
    yield plane
    asyncio.run(delete_all(plane))


async def delete_all(plane: ControlPlane) -> None:
    in_default = "namespaces/default"
    async with Client.of(plane.kubeconfig) as client:
        await client.delete(f"/apis/apps/v1/{in_default}/daemonsets")
        await client.delete(f"/apis/policy/v1/{in_default}/poddisruptionbudgets")
        await client.delete(f"/api/v1/{in_default}/pods", grace_seconds=0)
        await client.delete("/api/v1/nodes")


async def install_kinds(bed: Bed) -> None:
    await install(bed)
    async with bed.client() as client:
        await until_served(client, path_of("Wukong", ""))


async def prepare(bed: Bed, folder: Path) -> Path:
    """A kubeconfig with exactly the extender's rights; metrics.k8s.io as a kind of its own."""
    async with bed.client() as client:
        await furnish(client)
        await client.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
        return await service_account(client, bed, "default", ACCOUNT, PERMISSIONS, folder)


# The autoscaler looks every second, and believes what it is told of pods that have just started.
QUICK_AUTOSCALER = [
    f"--horizontal-pod-autoscaler-{name}=1s"
    for name in ("sync-period", "cpu-initialization-period", "initial-readiness-delay")
]


@pytest.fixture(scope="session")
def webhooks(
    request: pytest.FixtureRequest, testbed_programs: Programs, tmp_path_factory: pytest.TempPathFactory
) -> Webhooks:
    """A cluster of its own: other tests' pods are none of our business."""
    folder = tmp_path_factory.mktemp("admission")
    flags = {"controller-manager": QUICK_AUTOSCALER}
    order = Order(nodes=0, owner=request.config.stash[RUN].owner, extra_flags=flags)
    stack = close_with_last_use(request)
    state = supervisor.up(folder / "bed", order, lambda line: None)
    stack.callback(supervisor.down, folder / "bed", keep_logs=True)
    webhooks = Webhooks(Bed(state.kubeconfig, state.seconds), folder)
    stack.callback(webhooks.end)
    asyncio.run(install_webhooks(webhooks))
    return webhooks


async def install_webhooks(webhooks: Webhooks) -> None:
    await webhooks.install()
    async with webhooks.bed.client() as client:
        await put_policy(client, "web", SPOT_FIRST)
    await webhooks.start()


@pytest.fixture(scope="session")
def vm_component(request: pytest.FixtureRequest, kubevirt_bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Bed:
    """It acts on every Wukong there, and restarts machines that ask for it after a second."""
    folder = tmp_path_factory.mktemp("vm")
    kubeconfig = asyncio.run(furnish_for_vms(kubevirt_bed, folder))
    stack = close_with_last_use(request)
    stack.enter_context(component_running(kubeconfig, folder / "vm.log", "--restart-pause-seconds", "1"))
    return kubevirt_bed
