"""A live cluster with storage: furnished at random, kept current by watches on pods, claims and volumes.

Used by test_volumes_against_kube_scheduler.py. The volume controller and the ephemeral volume controller are the real
ones; volumes of external drivers are made by the hollow provisioner.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import msgspec

from live.cluster import await_sentinel, create_nodes
from live.random_cluster import AT_ONCE
from random_volumes import BETA_ZONE, BOUND, REGION, ZONE, list_storage, list_volumes
from testbed import nodes
from testbed.client import Client, Listed, as_json
from testbed.provisioner import provisioner
from wukong.api.core import PersistentVolume, PersistentVolumeClaim, Pod
from wukong.api.decode import decode_objects
from wukong.api.kinds import KINDS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from wukong.api.meta import Object
from wukong.api.objects import Objects
from wukong.api.resources import Resource
from wukong.semantics.volume_claims import is_bound, is_reference_to

Manifest = dict[str, Any]
NAMESPACES = ["team-a", "team-b"]
FOLLOWED = (PODS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES)
REST_SECONDS = 120.0


class VolumeCluster:
    """All objects, typed. Those of FOLLOWED are current; nobody changes the others."""

    def __init__(self, client: Client, others: Objects) -> None:
        self.client, self.others = client, others
        self.objects: dict[str, dict[str, Any]] = {resource.group_kind: {} for resource in FOLLOWED}
        self._changed = asyncio.Condition()

    @property
    def pods(self) -> dict[str, Pod]:
        return self.objects[PODS.group_kind]

    @property
    def claims(self) -> dict[str, PersistentVolumeClaim]:
        return self.objects[PERSISTENT_VOLUME_CLAIMS.group_kind]

    @property
    def volumes(self) -> dict[str, PersistentVolume]:
        return self.objects[PERSISTENT_VOLUMES.group_kind]

    def list_objects(self, but: str) -> Objects:
        """Everything as it is, without one pod."""
        objects = Objects()
        for subject in self.others.everything():
            objects.add(subject)
        for subjects in self.objects.values():
            for key, subject in sorted(subjects.items()):
                if not (isinstance(subject, Pod) and key == but):
                    objects.add(subject)
        return objects

    async def create(self, manifest: Manifest) -> None:
        await self.client.create(path_of(manifest), manifest)

    async def delete(self, resource: Resource, subject: Object) -> None:
        """Delete it and wait until it is gone."""
        path = f"{resource.path(subject.metadata.namespace)}/{subject.metadata.name}"
        grace = 0 if resource == PODS else None
        await self.client.delete(path, grace_seconds=grace)
        await self.until(lambda: subject.key not in self.objects[resource.group_kind])

    async def until(self, is_so: Callable[[], bool], seconds: float = REST_SECONDS) -> None:
        async with asyncio.timeout(seconds), self._changed:
            await self._changed.wait_for(is_so)

    async def come_to_rest(self) -> None:
        await self.until(lambda: not self.list_unrest())

    def list_unrest(self) -> list[str]:
        """Claims and volumes about which the volume controller still has something to do."""
        return [
            *(volume.key for volume in self.volumes.values() if volume.status.phase != self._expect_phase(volume)),
            *(claim.key for claim in self.claims.values() if claim.metadata.deletion_timestamp is not None),
        ]

    def _expect_phase(self, volume: PersistentVolume) -> str:
        reference = volume.spec.claim_ref
        if reference is None or not reference.uid:
            is_awaited = reference is not None and f"{reference.namespace}/{reference.name}" in self.claims
            return "Bound" if is_awaited else "Available"
        claim = self.claims.get(f"{reference.namespace}/{reference.name}")
        has_claim = claim is not None and is_reference_to(reference, claim)
        if not has_claim:
            return "gone" if volume.spec.persistent_volume_reclaim_policy == "Delete" else "Released"
        assert claim is not None
        return "Bound" if is_bound(claim) else "to be bound"

    async def follow(self, resource: Resource) -> None:
        objects = self.objects[resource.group_kind]
        async for change in self.client.follow(resource.path()):
            if isinstance(change, Listed):
                objects.clear()
            for raw in change.items if isinstance(change, Listed) else [change.object]:
                subject = read(resource, as_json(raw))
                objects[subject.key] = subject
                if not isinstance(change, Listed) and change.type == "DELETED":
                    del objects[subject.key]
            async with self._changed:
                self._changed.notify_all()


@asynccontextmanager
async def volume_cluster(client: Client, rng: Random, count: int) -> AsyncIterator[VolumeCluster]:
    """A cluster with storage and without pods, at rest, of which kube-scheduler has seen everything."""
    async with provisioner(client):
        others = await furnish(client, rng, count)
        cluster = VolumeCluster(client, others)
        tasks = [asyncio.create_task(cluster.follow(resource)) for resource in FOLLOWED]
        try:
            bound = len(NAMESPACES) * len(BOUND)
            await cluster.until(lambda: sum(map(is_bound, cluster.claims.values())) >= bound)
            await cluster.come_to_rest()
            yield cluster
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def furnish(client: Client, rng: Random, count: int) -> Objects:
    for namespace in NAMESPACES:
        await client.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        await client.wait_until(f"/api/v1/namespaces/{namespace}/serviceaccounts/default", lambda account: True)
    fleet = [a_node(rng, f"n{number:02d}") for number in range(count)]
    names = [node["metadata"]["name"] for node in fleet]
    for manifest in (*list_storage(rng, names), *list_volumes(rng, names, NAMESPACES)):
        await client.create(path_of(manifest), manifest)
    await create_nodes(client, fleet)
    await await_sentinel(client)
    others = Objects()
    for kind in KINDS.list_deciding():
        if kind.resource not in FOLLOWED and kind.is_built_in:
            for subject in decode_objects(await client.send("GET", kind.resource.path())):
                others.add(subject)
    return others


def a_node(rng: Random, name: str) -> Manifest:
    labels: dict[str, str] = {}
    if (zone := rng.choice(["a", "a", "b", "c", None])) is not None:
        labels[ZONE] = zone
    if rng.random() < 0.3:
        labels[REGION] = rng.choice(["north", "south"])
    if rng.random() < 0.15:
        labels[BETA_ZONE] = rng.choice("ab")
    capacity = {"cpu": rng.choice(["4", "8"]), "memory": rng.choice(["8Gi", "16Gi"]), "pods": "110"}
    return nodes.a_node(name, now=time.time(), capacity=capacity, labels=labels, annotations=AT_ONCE)


def path_of(manifest: Manifest) -> str:
    resource = KINDS.resource_named(manifest["kind"])
    return resource.path(manifest["metadata"].get("namespace", ""))


def read(resource: Resource, document: Manifest) -> Any:
    head = {"kind": resource.kind, "apiVersion": resource.api_version}
    (subject,) = decode_objects(msgspec.json.encode({**document, **head}))
    return subject
