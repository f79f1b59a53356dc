"""Pods as placement.pods builds them, on a real API server: accepted whenever the author's pod is, field by field."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec
import pytest

from random_pods import CLASSES, random_pod, random_pod_policy
from testbed.client import ApiError, Client, as_json
from testbed.pytest_plugin import Bed
from wukong.api.core import PriorityClass
from wukong.api.meta import ObjectMeta
from wukong.api.placement import PlacementPolicy
from wukong.placement.compile import compile_policy
from wukong.placement.pods import ON_DEMAND, SPOT, PodChange, build_pod
from wukong.placement.rules import BUILT_IN
from wukong.ports import Document

SEEDS = range(250)
AT_ONCE = 10
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
KNOWN = {
    name: PriorityClass(metadata=ObjectMeta(name=name), value=value, global_default=name == "usual")
    for name, value in CLASSES.items()
}


def change_of(seed: int) -> PodChange:
    plan = compile_policy(msgspec.convert(random_pod_policy(seed), PlacementPolicy), BUILT_IN)
    capacity = (SPOT, ON_DEMAND)[seed % 2] if plan.split is not None else ""
    return build_pod(random_pod(seed), plan, capacity, KNOWN)


async def try_to_create(client: Client, namespace: str, pod: Document) -> str:
    """Why the API server refuses it; "" if it takes it, with every field that was sent."""
    body = {**pod, "metadata": {**pod["metadata"], "namespace": namespace}}
    try:
        path = f"/api/v1/namespaces/{namespace}/pods"
        params = {"dryRun": "All", "fieldValidation": "Strict"}
        made = as_json(await client.send("POST", path, body, params=params))
    except ApiError as error:
        return str(error)
    kept = made["spec"].get("tolerations", [])[: len(pod["spec"].get("tolerations", []))]
    return "" if kept == pod["spec"].get("tolerations", []) else f"tolerations became {kept}"


@pytest.mark.slow
async def test_a_built_pod_is_accepted_whenever_the_authors_is(bed: Bed, namespace: str) -> None:
    """The classes are no global default here: other tests' pods would get it."""
    async with bed.client() as client:
        for name, value in CLASSES.items():
            policy = "Never" if name.endswith("-never") else "PreemptLowerPriority"
            body = {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy}
            with contextlib.suppress(ApiError):  # left by a run that was ended
                await client.create(PRIORITY_CLASSES, body)
        try:
            wrong = []
            for start in range(0, len(SEEDS), AT_ONCE):
                seeds = SEEDS[start : start + AT_ONCE]
                before = await asyncio.gather(*(try_to_create(client, namespace, random_pod(seed)) for seed in seeds))
                after = await asyncio.gather(
                    *(try_to_create(client, namespace, change_of(seed).document) for seed in seeds)
                )
                wrong += [(seed, reasons) for seed, *reasons in zip(seeds, before, after, strict=True) if any(reasons)]
        finally:
            for name in CLASSES:
                await client.delete(f"{PRIORITY_CLASSES}/{name}")
    assert wrong == []
    assert sum(change_of(seed).document != random_pod(seed) for seed in SEEDS) > len(SEEDS) / 2
