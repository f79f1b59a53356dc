"""Claims and volumes in use stay until nobody uses them: step by step the same on a real control plane and embedded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from embedded.actors.actor_world import NAMESPACE
from embedded.actors.test_volumes import a_world
from testbed.pytest_plugin import Bed
from wukong.api.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from wukong.api.resources import Key, Resource
from wukong.cluster.credentials import load
from wukong.cluster.kube import Kube
from wukong.ports import Document, Selection

SECONDS = 120.0
CLAIMS, VOLUMES = PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES


class Step(NamedTuple):
    """Create this object, or delete one of its name."""

    resource: Resource
    name: str
    body: Document | None = None


def a_claim(volume: str) -> Document:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}
    return {**spec, "volumeName": volume}


A_VOLUME = {
    "accessModes": ["ReadWriteOnce"],
    "capacity": {"storage": "1Gi"},
    "hostPath": {"path": "/x"},
    "storageClassName": "",
}
A_POD = {
    "containers": [{"name": "main", "image": "web"}],
    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
}


def list_steps(prefix: str) -> list[Step]:
    """`prefix` keeps names of volumes apart from those of others on a shared cluster."""
    used, spare = f"{prefix}-used", f"{prefix}-spare"
    return [
        Step(VOLUMES, used, A_VOLUME),
        Step(VOLUMES, spare, A_VOLUME),
        Step(CLAIMS, "data", a_claim(used)),
        Step(CLAIMS, "unbound", a_claim("nowhere")),
        Step(PODS, "web", A_POD),
        Step(VOLUMES, spare),
        Step(CLAIMS, "unbound"),
        Step(CLAIMS, "data"),  # in use
        Step(VOLUMES, used),  # bound
        Step(PODS, "web"),
    ]


def view(claims: list[Document], volumes: list[Document], pods: list[Document], prefix: str) -> list[Any]:
    """Of claims and volumes their phase, whether they are being deleted, and who keeps them; which pods have a node."""
    rows: list[Any] = []
    for document in (*claims, *volumes):
        meta = document["metadata"]
        if document in claims or meta["name"].startswith(prefix):
            name = meta["name"].removeprefix(prefix)
            rows.append((name, document["status"]["phase"], "deletionTimestamp" in meta, meta.get("finalizers")))
    return [*sorted(rows, key=str), sorted(bool(pod["spec"].get("nodeName")) for pod in pods)]


def embedded(prefix: str) -> list[list[Any]]:
    world, views = a_world(), []
    for resource, name, body in list_steps(prefix):
        namespace = NAMESPACE if resource.namespaced else ""
        if body is None:
            world.server.delete(resource, Key(namespace, name))
        else:
            world.server.create(resource, {"metadata": {"name": name}, "spec": body}, namespace)
        world.run(seconds=60)
        claims, volumes, pods = (world.server.list(resource).items for resource in (CLAIMS, VOLUMES, PODS))
        views.append(view(claims, volumes, pods, prefix))
    return views


async def until_equal(look: Callable[[], Awaitable[list[Any]]], wanted: list[Any], step: Step) -> None:
    """What a real control plane comes to, within a while."""
    seen: list[Any] = []
    try:
        async with asyncio.timeout(SECONDS):
            while seen != wanted:
                seen = await look()
                await asyncio.sleep(0.05)
    except TimeoutError:
        assert seen == wanted, f"after {step.resource.kind} {step.name}"


async def test_what_is_in_use_stays_on_both_until_nobody_uses_it(bed: Bed, namespace: str) -> None:
    views = embedded(namespace)
    assert [len(rows) for rows in views] == [2, 3, 4, 5, 5, 4, 3, 3, 3, 1], "used ones stay until the pod is gone"
    async with Kube(load(str(bed.kubeconfig))) as cluster:

        async def look() -> list[Any]:
            own = Selection(namespace)
            claims, pods = [(await cluster.list(resource, dict, own)).items for resource in (CLAIMS, PODS)]
            return view(claims, (await cluster.list(VOLUMES, dict)).items, pods, namespace)

        for step, wanted in zip(list_steps(namespace), views, strict=True):
            key = Key(namespace if step.resource.namespaced else "", step.name)
            if step.body is None:
                await cluster.delete(step.resource, key)
            else:
                await cluster.create(step.resource, {"metadata": {"name": step.name}, "spec": step.body}, key.namespace)
            await until_equal(look, wanted, step)
