"""EndpointSlices through a rollout and a scaling, by seed: those of kube-controller-manager beside ours.

Conditions, ports, zones, labels and the number of slices are equal after every step; the fewest endpoints that are
ready during the rollout are what one of several seeds brings in the embedded cluster.
"""

from __future__ import annotations

import asyncio
import secrets

import pytest

from endpoint_comparison.case import Case, draw_case
from endpoint_comparison.sides import ZONE, Course, play_embedded, play_real
from testbed.client import Client
from testbed.pytest_plugin import Bed, HollowNodes

SEEDS = range(1, 7)
EMBEDDED_SEEDS = range(3)


async def compare(client: Client, namespace: str, case: Case, courses: list[Course]) -> list[str]:
    real = await play_real(client, namespace, case, courses[0])
    differences = []
    for name in ("endpoints", "slices"):
        for step, (ours, theirs) in enumerate(zip(getattr(courses[0], name), getattr(real, name), strict=True)):
            if ours != theirs:
                differences.append(f"seed {case.seed}, step {step}: {name}: embedded {ours}, real {theirs}")
    drawn = {course.fewest_ready for course in courses}
    if not min(drawn) <= real.fewest_ready <= max(drawn):
        differences.append(f"seed {case.seed}: fewest ready: embedded {sorted(drawn)}, real {real.fewest_ready}")
    return differences


@pytest.mark.slow(waits=20)
async def test_slices_follow_pods_as_on_a_real_cluster(bed: Bed, namespace: str, hollow_nodes: HollowNodes) -> None:
    zone = f"zone-{secrets.token_hex(2)}"
    cases = [draw_case(seed) for seed in SEEDS]
    courses = [[play_embedded(case, number, zone) for number in EMBEDDED_SEEDS] for case in cases]
    await hollow_nodes(2, capacity={"cpu": "8"}, labels={ZONE: zone})
    async with bed.client() as client:
        differences = []
        for case, expected in zip(cases, courses, strict=True):  # one after the other: they share the nodes
            differences += await compare(client, namespace, case, expected)
            await client.delete(f"/api/v1/namespaces/{namespace}/services/web")
            await client.delete(f"/apis/apps/v1/namespaces/{namespace}/deployments/web")
            await _await_no_pods(client, namespace)
    assert differences == []


async def _await_no_pods(client: Client, namespace: str) -> None:
    async with asyncio.timeout(60):
        for path in ("api/v1/namespaces/{}/pods", "apis/discovery.k8s.io/v1/namespaces/{}/endpointslices"):
            while (await client.get("/" + path.format(namespace)))["items"]:
                await asyncio.sleep(0.1)
