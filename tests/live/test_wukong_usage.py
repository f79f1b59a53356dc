"""Resource affinity of a Wukong on a real kube-scheduler, usage by a real Prometheus: by labels, and by the extender.

Seed 001's thresholds: a node that is busy is avoided, and chosen again when it is calm; a floor keeps nodes out that
have too little free, until they have enough.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from live.extending import (
    DEADLINE_SECONDS,
    NODES,
    PODS,
    Extended,
    ExtendedCluster,
    Json,
    ask,
    extender_running,
    free_port,
    install_policies,
    make_pod,
    node_of,
    scene_beside,
    scheduler_config,
)
from live.test_load import running
from live.test_policies import KNOWN_SCHEDULING
from testbed import nodes
from testbed.client import Client
from testbed.exporter import Exporter
from testbed.programs import Programs
from testbed.pytest_plugin import OwnBed, RunPrometheus
from wukong.api.kinds import WUKONGS
from wukong.api.vm import NAME_LABEL, Wukong
from wukong.cluster.usage_queries import Queries
from wukong.placement.vm import VmSettings, build_virtual_machine

pytestmark = pytest.mark.slow

CORES = 10
FLOOR = {"resourceType": "cpu", "minAvailable": "8"}
AFFINITY = {**KNOWN_SCHEDULING["resource-aware"]["resourceAffinity"], "requiredResources": [FLOOR]}
LABELS = {NAME_LABEL: "db"}
CPU_BY_GAUGE = ("--prometheus-cpu", Queries().storage)  # node_exporter's counter would need minutes of history


def a_wukong(name: str = "db") -> Json:
    return {
        "apiVersion": WUKONGS.api_version,
        "kind": "Wukong",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"cpu": 1, "memory": "1Gi", "scheduling": {"resourceAffinity": AFFINITY}},
    }


async def create_wukong(client: Client) -> None:
    await client.create(WUKONGS.path("default"), a_wukong())


@contextlib.asynccontextmanager
async def usage_of(exporter: Exporter) -> AsyncIterator[Callable[[str, float], None]]:
    """Sets how much of a node is in use, in percent of cpu and memory."""

    def expose(node: str, percent: float) -> None:
        exporter.usage[node] = {"storage": percent, "memory": percent}

    yield expose


# By labels ---------------------------------------------------------------------------------------------------------


async def test_by_labels_a_busy_node_is_avoided_and_chosen_again_when_it_is_calm(
    own_bed: OwnBed, prometheus: RunPrometheus, tmp_path: Path
) -> None:
    """Pods carry what the virtual machines of the Wukong carry; the scheduler is a stock one, without configuration."""
    log = tmp_path / "run.log"
    bed = own_bed(nodes=0)
    settings = VmSettings(usage_prefix="usage.example.com", free_prefix="free.example.com")
    prefixes = ("--label-prefix", settings.usage_prefix, "--free-label-prefix", settings.free_prefix)
    affinity = affinity_of(settings)
    async with Exporter() as exporter, bed.client() as client, usage_of(exporter) as expose:
        await install_policies(client)
        names = ["a", "b"]
        await nodes.create(client, [nodes.a_node(name, now=0.0, capacity=CAPACITY) for name in names])
        with (
            prometheus([exporter.address]) as url,
            running(bed.kubeconfig, "default", log, "--prometheus", url, *CPU_BY_GAUGE, *prefixes),
        ):
            await create_wukong(client)
            for turn, (quiet, busy) in enumerate((names, names[::-1])):
                expose(quiet, 12)
                expose(busy, 92)
                await scheduler_knows(client, quiet, {f"{settings.usage_prefix}/cpu": "10"})
                await scheduler_knows(client, busy, {f"{settings.usage_prefix}/cpu": "90"})
                await scheduler_knows(client, quiet, {f"{settings.free_prefix}/cpu": "8000"})
                for number in range(3):
                    name = f"vm-{turn}-{number}"
                    await make_pod(client, name, labels=LABELS, affinity=affinity)
                    assert await node_of(client, name) == quiet
            # The quiet one has too little free: the busy one it is, until there is room again.
            await make_pod(client, "filler", cpu="5", nodeName="b", terminationGracePeriodSeconds=0)
            await scheduler_knows(client, "b", {f"{settings.free_prefix}/cpu": "0"})
            await make_pod(client, "vm-pressed", labels=LABELS, affinity=affinity)
            assert await node_of(client, "vm-pressed") == "a"
            await client.delete(f"{PODS}/filler", grace_seconds=0)
            await scheduler_knows(client, "b", {f"{settings.free_prefix}/cpu": "8000"})
            await make_pod(client, "vm-calm", labels=LABELS, affinity=affinity)
            assert await node_of(client, "vm-calm") == "b"
            # Nobody asks any more: the label goes.
            await client.delete(WUKONGS.path("default", "db"))
            await client.wait_until(f"{NODES}/a", lambda node: f"{settings.free_prefix}/cpu" not in labels_of(node))


CAPACITY = {"cpu": str(CORES), "memory": "100Gi", "pods": "110"}
_probes = iter(range(1000))


def affinity_of(settings: VmSettings) -> Any:
    machine = build_virtual_machine(msgspec.convert(a_wukong(), Wukong), "db", settings)
    return machine["spec"]["template"]["spec"]["affinity"]


def labels_of(node: Json) -> dict[str, str]:
    labels: dict[str, str] = node["metadata"]["labels"]
    return labels


async def scheduler_knows(client: Client, node: str, labels: dict[str, str]) -> None:
    """Until the scheduler has seen these labels on the node: a pod that wants them was bound there."""
    name = f"probe-{next(_probes)}"
    selector = {**labels, "kubernetes.io/hostname": node}
    await make_pod(client, name, cpu="0", nodeSelector=selector, terminationGracePeriodSeconds=0)
    assert await node_of(client, name) == node
    await client.delete(f"{PODS}/{name}", grace_seconds=0)


# By the extender ---------------------------------------------------------------------------------------------------


async def test_by_the_extender_a_busy_node_is_avoided_and_chosen_again_when_it_is_calm(
    extended: Extended, testbed_programs: Programs, prometheus: RunPrometheus, tmp_path: Path
) -> None:
    """Pods carry nothing but the label of their Wukong, which the extender reads: an edit takes effect at once."""
    port = free_port()
    config = scheduler_config(tmp_path, port)
    async with Exporter() as exporter, usage_of(exporter) as expose:
        with prometheus([exporter.address]) as url:
            words = ["--prometheus", url, *CPU_BY_GAUGE, "--resource-affinity", "extender"]
            with extender_running(extended.bed.kubeconfig, port, tmp_path / "extender.log", *words):
                async with scene_beside(extended, testbed_programs, config, port) as here, deleted_wukong(here.client):
                    await here.nodes("spot", "a", "b", capacity=CAPACITY)
                    await create_wukong(here.client)
                    for turn, (quiet, busy) in enumerate((("a", "b"), ("b", "a"))):
                        expose(here.full(quiet), 10)
                        expose(here.full(busy), 90)
                        await until(lambda q=quiet, b=busy: has_scores(here, {q: 9, b: 1}))  # type: ignore[misc]
                        places = {await here.place(f"vm-{turn}-{number}", labels=LABELS) for number in range(3)}
                        assert places == {quiet}
                    await here.put("filler", "b", cpu="5")
                    await until(lambda: has_kept(here, ["a"]))
                    assert await here.place("vm-pressed", labels=LABELS) == "a"
                    edit: Json = {"scheduling": {"resourceAffinity": {"requiredResources": []}}}
                    await here.client.patch(WUKONGS.path("default", "db"), {"spec": edit})
                    await until(lambda: has_kept(here, ["a", "b"]))
                    assert await here.place("vm-calm", labels=LABELS) == "b"


@contextlib.asynccontextmanager
async def deleted_wukong(client: Client) -> AsyncIterator[None]:
    """The cluster is shared: afterwards there is no Wukong in it."""
    try:
        yield
    finally:
        await client.delete(WUKONGS.path("default"))


QUESTION = {"metadata": {"name": "question", "namespace": "default", "labels": LABELS}}


async def has_scores(here: ExtendedCluster, scores: dict[str, int]) -> bool:
    answer: list[Json] = await ask(here.port, "prioritize", QUESTION, [here.full(name) for name in scores])
    return {entry["Host"].removesuffix(here.ending): entry["Score"] for entry in answer} == scores


async def has_kept(here: ExtendedCluster, names: list[str]) -> bool:
    answer: Json = await ask(here.port, "filter", QUESTION, [here.full(name) for name in ("a", "b")])
    return [name.removesuffix(here.ending) for name in answer["NodeNames"]] == names


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not await is_so():
            await asyncio.sleep(0.05)
