"""Our scheduler killed again and again while pods arrive: no pod is bound twice, no node filled beyond its size."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from live.accounts import audited
from live.cluster import as_pod
from live.scheduler_process import OwnPods, await_ready, condition_of, is_bound, keep_apart, spread, start_scheduler
from testbed.client import Client, Json, Listed, as_json
from testbed.pytest_plugin import Bed, HollowNodes
from wukong.api.core import Pod
from wukong.api.decode import decode_objects
from wukong.api.objects import Objects
from wukong.api.profile import default_profile
from wukong.app.components.scheduler import SchedulerOptions
from wukong.app.components.scheduler.options import name_lease
from wukong.rules.cluster import Cluster
from wukong.rules.filters import Filters

KILLS, PODS, NODES, CPUS = 10, 300, 12, 4
FEW = 5
ADMIN = "wukong-testbed-admin"
SECONDS = 180.0
replace = msgspec.structs.replace


@pytest.mark.slow(waits=20)
async def test_killed_ten_times_while_300_pods_arrive_it_binds_none_twice_and_fills_no_node_beyond_its_size(
    bed: Bed, namespace: str, hollow_nodes: HollowNodes, tmp_path: Path
) -> None:
    """Together the pods want more than there is. Each process is killed with bindings under way."""
    names = await hollow_nodes(NODES, capacity={"cpu": str(CPUS)})
    scheduler, log = f"ours-{namespace[-8:]}", tmp_path / "scheduler.log"
    async with bed.client() as client:
        pods = OwnPods(client, namespace, scheduler)
        for number in range(KILLS):
            started = start_scheduler(bed.kubeconfig, scheduler, log, "--no-leader-election")
            try:
                await asyncio.to_thread(await_ready, started)
                async with asyncio.TaskGroup() as group:
                    for each in range(number, PODS, KILLS):
                        group.create_task(create(pods, each))
                    group.create_task(until_decided(pods, number * PODS // KILLS + FEW))
            finally:
                started.process.kill()
                started.process.wait()
        started = start_scheduler(bed.kubeconfig, scheduler, log, "--no-leader-election")
        try:
            found = await until_at_rest(client, pods, names)
        finally:
            started.process.terminate()
            started.process.wait()
    bindings = Counter(
        entry["objectRef"]["name"]
        for entry in audited(bed, ADMIN)
        if entry["objectRef"].get("subresource") == "binding"
        and entry["objectRef"]["namespace"] == namespace
        and entry["stage"] == "ResponseComplete"
        and entry["responseStatus"]["code"] == 201
    )
    # Where the scheduler was killed before the answer, the log says that it was not answered: those are missing here.
    assert bindings <= Counter(pod.metadata.name for pod in found if pod.spec.node_name)
    assert len(bindings) > PODS // 3


@pytest.mark.slow(waits=6)
async def test_when_the_leader_is_killed_the_one_that_stands_by_goes_on(
    bed: Bed, namespace: str, hollow_nodes: HollowNodes, tmp_path: Path
) -> None:
    (node,) = await hollow_nodes(1, capacity={"cpu": "1"})
    scheduler = f"ours-{namespace[-8:]}"
    lease = f"/apis/coordination.k8s.io/v1/namespaces/default/leases/{name_lease(SchedulerOptions((scheduler,)))}"
    started = []
    try:
        async with bed.client() as client:
            pods = OwnPods(client, namespace, scheduler)
            for number in range(2):
                log = tmp_path / f"{number}.log"
                started.append(start_scheduler(bed.kubeconfig, scheduler, log, "--lease-seconds", "4"))
                await asyncio.to_thread(await_ready, started[-1])
                await client.wait_until(lease, lambda found: is_held_by(found, started[0].process.pid))
            await pods.create("first", "600m")
            assert await pods.node_of("first") == node
            started[0].process.kill()
            await pods.create("second", "300m")
            await pods.create("third", "300m")
            assert await pods.node_of("second") == node
            await pods.until("third", is_decided)
            await client.wait_until(lease, lambda found: is_held_by(found, started[1].process.pid))
    finally:
        for process in (entry.process for entry in started):
            process.kill()
            process.wait()


def is_held_by(lease: Json, pid: int) -> bool:
    return f"_{pid}_" in lease["spec"]["holderIdentity"]


async def create(pods: OwnPods, number: int) -> None:
    """Most want nothing but room; some keep apart, some are spread."""
    cpu, kind = f"{(100, 200, 300)[number % 3]}m", number % 10
    app = {1: f"apart-{number % 30 // 10}", 2: "spread"}.get(kind, "plain")
    rules = keep_apart(app) if kind == 1 else spread(app) if kind == 2 else {}
    await pods.create(f"pod-{number:03d}", cpu, {"app": app}, **rules)


async def until_decided(pods: OwnPods, count: int) -> None:
    """Until so many are bound or refused: all that came before, and some of those that come now. It is at work then."""
    decided: set[str] = set()
    async with asyncio.timeout(SECONDS):
        async for change in pods.client.follow(pods.path):
            for raw in change.items if isinstance(change, Listed) else [change.object]:
                if is_decided(pod := as_json(raw)):
                    decided.add(pod["metadata"]["name"])
            if len(decided) >= count:
                return


def is_decided(pod: Json) -> bool:
    return is_bound(pod) or bool(condition_of(pod, "PodScheduled"))


async def until_at_rest(client: Client, pods: OwnPods, names: list[str]) -> list[Pod]:
    """Until every pod is bound, or was told that no node suits it and none does; what is bound may be where it is."""
    async with asyncio.timeout(SECONDS):
        while True:
            documents = await pods.list_all()
            if all(map(is_decided, documents)):
                nodes = [await client.get(f"/api/v1/nodes/{name}") for name in names]
                found = [as_pod(msgspec.json.encode(document)) for document in documents]
                cluster = build_cluster(nodes, found)
                if not any(fits_somewhere(cluster, pod) for pod in found if not pod.spec.node_name):
                    break
            await asyncio.sleep(0.2)
    assert len(found) == PODS
    assert [problem for pod in found if pod.spec.node_name for problem in find_problems(cluster, pod)] == []
    spread_over = Counter(pod.spec.node_name for pod in found if pod.metadata.labels["app"] == "spread")
    assert max(spread_over[name] for name in names) - min(spread_over[name] for name in names) <= 1
    return found


def build_cluster(nodes: list[Json], pods: list[Pod]) -> Cluster:
    objects = Objects()
    for node in nodes:
        for decoded in decode_objects(msgspec.json.encode(node)):
            objects.add(decoded)
    objects.pods = pods
    return Cluster(objects)


def fits_somewhere(cluster: Cluster, pod: Pod) -> bool:
    filters = Filters(cluster, pod, default_profile())
    return any(filters.reject(info) is None for info in cluster.nodes.values())


def find_problems(cluster: Cluster, pod: Pod) -> list[str]:
    """What the oracle has against the node of this pod, with all others where they are."""
    info, _ = cluster.find(pod.key)
    unbound = replace(pod, spec=replace(pod.spec, node_name="", topology_spread_constraints=[]))
    cluster.remove(pod.key)
    verdict = Filters(cluster, unbound, default_profile()).reject(info)
    cluster.add(pod, info.name)
    return [f"{pod.key} on {info.name}: {verdict}"] if verdict is not None else []
