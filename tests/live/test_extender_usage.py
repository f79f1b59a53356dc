"""A real kube-scheduler with our extender beside it: busy nodes are avoided, as metrics.k8s.io or Prometheus know them.

Seed 001's thresholds: nodes below 70 % of their cpu and 80 % of their memory are preferred, with weights 80 and 60.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from live.extending import (
    DEADLINE_SECONDS,
    Extended,
    ExtendedCluster,
    Json,
    ask,
    counted,
    extender_running,
    free_port,
    scene,
    scene_beside,
    scheduler_config,
)
from live.test_policies import KNOWN_SCHEDULING
from testbed.client import ApiError
from testbed.exporter import Exporter
from testbed.programs import Programs
from testbed.pytest_plugin import RunPrometheus
from wukong.cluster.usage_queries import Queries

pytestmark = pytest.mark.slow

METRICS = "/apis/metrics.k8s.io/v1beta1/nodes"
WEB = {"app": "web"}
CORES = 10
Measure = Callable[[str, float, float], Awaitable[None]]  # node, percent of cpu, percent of memory


async def avoids_the_busy_node(here: ExtendedCluster, measure: Measure) -> None:
    """One node is busy, then the other: pods go where it is quiet, though the scheduler alone would spread them."""
    affinity = {**KNOWN_SCHEDULING["resource-aware"]["resourceAffinity"], "requiredResources": []}
    await here.policy("web", {"selector": {"matchLabels": WEB}, "scheduling": {"resourceAffinity": affinity}})
    await here.nodes("spot", "a", "b", capacity={"cpu": str(CORES), "memory": "100Gi"})
    for turn, (quiet, busy) in enumerate((("a", "b"), ("b", "a"))):
        await measure(here.full(quiet), 10, 10)
        await measure(here.full(busy), 90, 90)
        await scores(here, {quiet: 9, busy: 1})
        assert {await here.place(f"web-{turn}-{number}", labels=WEB) for number in range(3)} == {quiet}


async def scores(here: ExtendedCluster, wanted: dict[str, int]) -> None:
    """Until the extender would give these nodes these scores: it has seen what was measured."""
    pod = {"metadata": {"name": "question", "namespace": "default", "labels": WEB}}
    found: dict[str, int] = {}
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while found != wanted:
                await asyncio.sleep(0.05)
                answer: list[Json] = await ask(here.port, "prioritize", pod, [here.full(name) for name in wanted])
                found = {entry["Host"].removesuffix(here.ending): entry["Score"] for entry in answer}
    except TimeoutError:
        pytest.fail(f"scores stayed {found}, expected {wanted}")


async def test_busy_nodes_are_avoided_as_metrics_k8s_io_knows_them(extended: Extended) -> None:
    async with scene(extended.bed, extended.port) as here:
        await avoids_the_busy_node(here, lambda *measured: publish(here, *measured))
        await forget(here, "a", "b")


async def test_stale_usage_counts_as_unknown_and_is_reported(extended: Extended) -> None:
    async with scene(extended.bed, extended.port) as here:
        affinity = {"preferredCPU": {"weight": 80, "threshold": "70%"}}
        await here.policy("web", {"selector": {"matchLabels": WEB}, "scheduling": {"resourceAffinity": affinity}})
        await here.nodes("spot", "a", "b", capacity={"cpu": str(CORES), "memory": "100Gi"})
        await publish(here, here.full("a"), 90, 90)
        await publish(here, here.full("b"), 10, 10)
        await scores(here, {"a": 1, "b": 9})
        assert await counted(extended.probes, "wukong_usage_stale_nodes") == 0
        await publish(here, here.full("b"), 10, 10, age_seconds=600)
        await scores(here, {"a": 1, "b": 5})
        assert await counted(extended.probes, "wukong_usage_stale_nodes") == 1
        await forget(here, "a", "b")


async def publish(here: ExtendedCluster, node: str, cpu: float, memory: float, age_seconds: float = 0) -> None:
    """As metrics-server would."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - age_seconds))
    usage = {"cpu": f"{round(cpu * CORES * 10)}m", "memory": f"{round(memory * 1024)}Mi"}
    document = {"metadata": {"name": node}, "timestamp": stamp, "window": "10s", "usage": usage}
    head = {"apiVersion": "metrics.k8s.io/v1beta1", "kind": "NodeMetrics"}
    try:
        await here.client.create(METRICS, {**head, **document})
    except ApiError as error:
        if error.status != 409:
            raise
        await here.client.patch(f"{METRICS}/{node}", document)


async def forget(here: ExtendedCluster, *names: str) -> None:
    for name in names:
        await here.client.delete(f"{METRICS}/{here.full(name)}")


async def test_busy_nodes_are_avoided_as_prometheus_knows_them(
    extended: Extended, testbed_programs: Programs, prometheus: RunPrometheus, tmp_path: Path
) -> None:
    """Cpu by a gauge: node_exporter's counter would need minutes of history."""
    port, probes = free_port(), free_port()
    config = scheduler_config(tmp_path, port)
    async with Exporter() as exporter:

        async def expose(node: str, cpu: float, memory: float) -> None:
            exporter.usage[node] = {"storage": cpu, "memory": memory}

        with prometheus([exporter.address]) as url:
            words = ["--prometheus", url, "--prometheus-cpu", Queries().storage, "--probes", f"127.0.0.1:{probes}"]
            with extender_running(extended.bed.kubeconfig, port, tmp_path / "extender.log", *words):
                async with scene_beside(extended, testbed_programs, config, port) as here:
                    await avoids_the_busy_node(here, expose)
