"""The embedded store beside a real API server: the same manifests and the same random patches, the same answers.

A failure names its seed: SEED=… of the object, and the number of the patch.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from conftest import FIGURE
from embedded.manifests import MANIFESTS
from embedded.random_patches import a_map, a_patch, a_pod, a_workload, an_apply
from embedded.server_comparison import KINDS, Answer, TwinClusters
from small_cluster import a_small_cluster
from testbed.pytest_plugin import Bed
from wukong.cluster.credentials import load
from wukong.cluster.kube import Kube
from wukong.ports import Document, PatchBody

OBJECTS, PATCHES = 16, 5


@asynccontextmanager
async def twin_clusters(bed: Bed, namespace: str) -> AsyncIterator[TwinClusters]:
    async with Kube(load(str(bed.kubeconfig))) as real, a_small_cluster("twin") as embedded:
        clusters = TwinClusters(real, embedded, (namespace, "twin"))
        try:
            yield clusters
        finally:
            await clusters.release()


def an_object(random: Random, kind: str, name: str) -> Document:
    if kind == "ConfigMap":
        return a_map(name)
    if kind == "Pod":
        return a_pod(name)
    return a_workload(random, name, **({"paused": True} if kind == "Deployment" else {}))


async def test_manifests_are_filled_in_or_refused_alike(bed: Bed, namespace: str) -> None:
    async with twin_clusters(bed, namespace) as clusters:
        for kind, name, rest in MANIFESTS:
            body = {**rest, "metadata": {"name": name, **rest.get("metadata", {})}}
            real, embedded = await clusters.create(KINDS[kind], body)
            assert_same(real, embedded, f"{kind} {name}")


@pytest.mark.parametrize("kind", ["ConfigMap", "Pod", "ReplicaSet", "Deployment"])
async def test_random_patches_have_the_same_outcome(
    bed: Bed, namespace: str, kind: str, record_property: Callable[[str, object], None]
) -> None:
    accepted = 0
    async with twin_clusters(bed, namespace) as clusters:
        for seed in range(OBJECTS):
            random = Random(f"{kind} {seed}")
            name = f"object-{seed}"
            real, embedded = await clusters.create(KINDS[kind], an_object(random, kind, name))
            assert_same(real, embedded, f"SEED={seed} created")
            assert embedded.object is not None
            last = embedded.object
            for number in range(PATCHES):
                patch = a_patch(random, kind, last)
                real, embedded = await clusters.patch(KINDS[kind], name, patch)
                assert_same(real, embedded, f"SEED={seed} patch {number}", patch)
                last = embedded.object or last
                accepted += embedded.object is not None
    record_property(FIGURE, f"{kind}: {OBJECTS * PATCHES} random patches alike on both servers, {accepted} accepted")


@pytest.mark.parametrize("kind", ["ConfigMap", "ReplicaSet"])
async def test_random_applies_merge_prune_and_conflict_alike(bed: Bed, namespace: str, kind: str) -> None:
    async with twin_clusters(bed, namespace) as clusters:
        for seed in range(OBJECTS):
            random = Random(f"apply {kind} {seed}")
            name = f"object-{seed}"
            _, embedded = await clusters.create(KINDS[kind], an_object(random, kind, name))
            assert embedded.object is not None
            last = embedded.object
            for number in range(PATCHES):
                is_apply = random.random() < 0.7  # other patches take fields from those who apply
                patch = an_apply(random, kind, name) if is_apply else a_patch(random, kind, last)
                real, embedded = await clusters.patch(KINDS[kind], name, patch)
                assert_same(real, embedded, f"SEED={seed} apply {number}", patch)
                last = embedded.object or last


def assert_same(real: Answer, embedded: Answer, subject: str, sent: PatchBody | None = None) -> None:
    message = f"{subject}: {sent}\n real     {real.message}\n embedded {embedded.message}"
    assert embedded.compared == real.compared, message


def test_the_comparison_sees_a_difference() -> None:
    document: dict[str, Any] = {"data": {"a": "1"}}
    with pytest.raises(AssertionError, match="SEED=7"):
        assert_same(Answer(document), Answer({"data": {"a": "2"}}), "SEED=7")
