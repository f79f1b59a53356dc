"""How objects change and go, told by the watch of a real API server and of the embedded store: the same events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, NamedTuple

import pytest

from conformance_helpers import SECONDS, a_deployment, a_map, a_pod, document_of, merging
from small_cluster import a_small_cluster
from testbed.pytest_plugin import Bed
from wukong.api.kinds import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, PODS
from wukong.api.resources import Key, Resource
from wukong.cluster.credentials import load
from wukong.cluster.kube import Kube
from wukong.errors import ClusterError
from wukong.ports import Cluster, Document, PatchBody, Selection

Step = Callable[[Cluster, str], Awaitable[object]]
HELD = ["wukong.test/held"]
NOWHERE = "no-such-node"  # no kubelet and no garbage collection of pods interferes within the time of a test


def create(resource: Resource, body: Document) -> Step:
    return lambda cluster, namespace: cluster.create(resource, body, namespace)


def patch(resource: Resource, name: str, sent: PatchBody, subresource: str = "") -> Step:
    return lambda cluster, namespace: cluster.patch(resource, Key(namespace, name), sent, subresource)


def delete(resource: Resource, name: str, **options: Any) -> Step:
    return lambda cluster, namespace: cluster.delete(resource, Key(namespace, name), **options)


def evict(name: str) -> Step:
    return lambda cluster, namespace: cluster.evict(Key(namespace, name))


def bind(name: str) -> Step:
    return lambda cluster, namespace: cluster.bind(Key(namespace, name), NOWHERE)


def select(**how: str) -> Step:
    return lambda cluster, namespace: cluster.list(PODS, dict, Selection(namespace, **how))


def ask(**how: Any) -> Step:
    return lambda cluster, namespace: cluster.list(PODS, dict, Selection(namespace), **how)


class Story(NamedTuple):
    resource: Resource
    steps: list[Step]
    is_watched: bool = True


FREE, BARE = merging(metadata={"finalizers": None}), {**a_deployment("web"), "metadata": {"name": "web"}}
STORIES = {
    "a pending pod": Story(PODS, [create(PODS, a_pod("web")), delete(PODS, "web")]),
    "a pod with a finalizer": Story(
        PODS,
        [
            create(PODS, a_pod("web")),
            patch(PODS, "web", merging(metadata={"finalizers": HELD})),
            delete(PODS, "web"),
            delete(PODS, "web"),
            patch(PODS, "web", FREE),
        ],
    ),
    "a pod whose grace is shortened": Story(
        PODS,
        [
            create(PODS, a_pod("web", nodeName=NOWHERE)),
            *(delete(PODS, "web", grace_seconds=grace) for grace in (20, 30, 5, -3, 0)),
        ],
    ),
    "a pod that is bound and evicted twice": Story(
        PODS,
        [
            create(PODS, a_pod("web")),
            bind("web"),
            bind("web"),
            evict("web"),
            evict("web"),
            bind("web"),
            delete(PODS, "web", grace_seconds=0),
        ],
    ),
    "a map that waits for its finalizer": Story(
        CONFIG_MAPS,
        [
            create(CONFIG_MAPS, a_map("one", finalizers=HELD)),
            delete(CONFIG_MAPS, "one"),
            delete(CONFIG_MAPS, "one", grace_seconds=0),
            patch(CONFIG_MAPS, "one", merging(data={"a": "5"})),
            patch(CONFIG_MAPS, "one", merging(metadata={"finalizers": []})),
        ],
    ),
    "refusals": Story(
        DEPLOYMENTS,
        [
            create(DEPLOYMENTS, BARE),
            patch(DEPLOYMENTS, "web", merging(spec={"replicas": -1}), "scale"),
            patch(DEPLOYMENTS, "web", merging(spec={"selector": {"matchLabels": {"x": "y"}}})),
            patch(DEPLOYMENTS, "web", merging(metadata={"name": "other"})),
            patch(DEPLOYMENTS, "web", merging(metadata={"uid": "other"})),
            patch(DEPLOYMENTS, "web", merging(metadata={"namespace": "other"})),
            patch(DEPLOYMENTS, "web", merging(), "nonsense"),
            patch(CONFIG_MAPS, "web", merging(), "status"),
            delete(DEPLOYMENTS, "other"),
            delete(DEPLOYMENTS, "web", uid="other"),
            delete(DEPLOYMENTS, "web", resource_version="1"),
            delete(NAMESPACES, "default"),
            evict("other"),
            select(labels="a b"),
            select(labels="a in (b"),
            select(labels="a,"),
            select(fields="x"),
            ask(resource_version="abc"),
            ask(limit=1, token="made-up"),
            *(patch(DEPLOYMENTS, "web", PatchBody(kind, sent)) for kind, sent in (  # type: ignore[arg-type]
                ("json", {}), ("merge", []), ("strategic", []), ("json", [{"op": "jump", "path": "/spec"}]),
                ("apply", {"metadata": {"name": "other"}}), ("apply", {"metadata": {"managedFields": [{}]}}),
                ("strategic", {"metadata": {"ownerReferences": [{"name": "x"}]}}),
            )),
            lambda cluster, namespace: cluster.create(CONFIG_MAPS, a_map("one")),
            lambda cluster, namespace: cluster.create(CONFIG_MAPS, a_map("one"), "no-such-namespace"),
            lambda cluster, namespace: cluster.scale(PODS, Key(namespace, "web"), 1),
        ],
        is_watched=False,  # its controller would have its say
    ),
}  # fmt: skip


async def told(cluster: Cluster, namespace: str, story: Story) -> tuple[list[str], list[Any]]:
    """What each step was answered, and what a watch saw of it all."""
    selection = Selection(namespace, fields="metadata.name!=kube-root-ca.crt")
    version = (await cluster.list(story.resource, dict, selection)).resource_version
    answers = [await answered(step(cluster, namespace)) for step in story.steps]
    seen: list[Any] = []
    if story.is_watched:
        stream = cluster.watch(story.resource, dict, selection, resource_version=version)
        async with asyncio.timeout(SECONDS), aclosing(stream):
            async for event in stream:
                if event.type != "BOOKMARK":
                    seen.append((event.type, *looks(document_of(event))))
                if event.type == "DELETED":
                    break
    return answers, seen


async def answered(request: Awaitable[object]) -> str:
    try:
        await request
    except ClusterError as error:
        return f"{type(error).__name__} {error.code} {error.reason}"
    return "done"


def looks(document: Document) -> tuple[Any, ...]:
    meta, status = document["metadata"], document.get("status") or {}
    conditions = [(each["type"], each["status"], each.get("reason")) for each in status.get("conditions") or []]
    fields = ("name", "generation", "deletionGracePeriodSeconds", "finalizers")
    return *(meta.get(field) for field in fields), "deletionTimestamp" in meta, status.get("phase"), conditions


@pytest.mark.parametrize("title", STORIES)
async def test_the_same_story_is_told_by_both(bed: Bed, namespace: str, title: str) -> None:
    async with Kube(load(str(bed.kubeconfig))) as real:
        by_kube = await told(real, namespace, STORIES[title])
    async with a_small_cluster("twin") as embedded:
        assert await told(embedded, "twin", STORIES[title]) == by_kube
