"""Deletion: preconditions, grace, finalizers, and what becomes of an owner's dependents."""

from __future__ import annotations

from contextlib import suppress

import pytest

from conformance_helpers import (
    HELD,
    a_map,
    a_node_name,
    a_pod,
    exists,
    is_ready,
    merging,
    owned_by,
    release,
    until,
    until_gone,
)
from wukong.api.kinds import CONFIG_MAPS, PODS
from wukong.api.resources import Key
from wukong.errors import Conflict, Invalid, NotFound
from wukong.ports import Cluster


async def test_what_was_deleted_is_not_there(cluster: Cluster, namespace: str) -> None:
    await cluster.create(CONFIG_MAPS, a_map("one"), namespace)
    key = Key(namespace, "one")
    await cluster.delete(CONFIG_MAPS, key)
    assert not await exists(cluster, CONFIG_MAPS, key)
    with pytest.raises(NotFound):
        await cluster.delete(CONFIG_MAPS, key)


async def test_only_the_object_meant_is_deleted(cluster: Cluster, namespace: str) -> None:
    made = await cluster.create(CONFIG_MAPS, a_map("one"), namespace)
    key, meta = Key(namespace, "one"), made["metadata"]
    await cluster.patch(CONFIG_MAPS, key, merging(data={"a": "2"}))
    with pytest.raises(Conflict):
        await cluster.delete(CONFIG_MAPS, key, uid="00000000-0000-0000-0000-000000000000")
    with pytest.raises(Conflict):
        await cluster.delete(CONFIG_MAPS, key, uid=meta["uid"], resource_version=meta["resourceVersion"])
    assert await exists(cluster, CONFIG_MAPS, key)
    await cluster.delete(CONFIG_MAPS, key, uid=meta["uid"])
    assert not await exists(cluster, CONFIG_MAPS, key)


async def test_a_finalizer_delays_the_end(cluster: Cluster, namespace: str) -> None:
    await cluster.create(CONFIG_MAPS, a_map("one", finalizers=[HELD]), namespace)
    key = Key(namespace, "one")
    await cluster.delete(CONFIG_MAPS, key)
    leaving = await cluster.get(CONFIG_MAPS, key, dict)
    assert leaving["metadata"]["deletionTimestamp"]
    with pytest.raises(Invalid):  # what is leaving takes no new finalizers
        await cluster.patch(CONFIG_MAPS, key, merging(metadata={"finalizers": [HELD, "wukong.test/more"]}))
    await release(cluster, key)
    assert not await exists(cluster, CONFIG_MAPS, key)


async def test_a_running_pod_leaves_gracefully_and_a_pending_one_at_once(cluster: Cluster, namespace: str) -> None:
    node = await a_node_name(cluster)
    await cluster.create(PODS, a_pod("running", nodeName=node), namespace)
    await cluster.create(PODS, a_pod("pending"), namespace)
    running, pending = Key(namespace, "running"), Key(namespace, "pending")
    await until(cluster, PODS, running, is_ready)
    await cluster.delete(PODS, pending)
    assert not await exists(cluster, PODS, pending)
    # Held, so that the kubelet's own last word does not race with our look.
    await cluster.patch(PODS, running, merging(metadata={"finalizers": [HELD]}))
    await cluster.delete(PODS, running, grace_seconds=7)
    leaving = await cluster.get(PODS, running, dict)
    assert leaving["metadata"]["deletionTimestamp"]
    assert leaving["metadata"]["deletionGracePeriodSeconds"] == 7
    await cluster.patch(PODS, running, merging(metadata={"finalizers": None}))
    with suppress(NotFound):  # its kubelet may have had the last word meanwhile
        await cluster.delete(PODS, running, grace_seconds=0)
    await until_gone(cluster, PODS, running)


async def test_dependents_follow_their_owner_in_the_background(cluster: Cluster, namespace: str) -> None:
    owner = await cluster.create(CONFIG_MAPS, a_map("owner"), namespace)
    await cluster.create(CONFIG_MAPS, a_map("child", ownerReferences=owned_by(owner)), namespace)
    await cluster.delete(CONFIG_MAPS, Key(namespace, "owner"), propagation="Background")
    assert not await exists(cluster, CONFIG_MAPS, Key(namespace, "owner"))
    await until_gone(cluster, CONFIG_MAPS, Key(namespace, "child"))


async def test_in_the_foreground_the_owner_waits_for_its_dependents(cluster: Cluster, namespace: str) -> None:
    owner = await cluster.create(CONFIG_MAPS, a_map("owner"), namespace)
    child = a_map("child", ownerReferences=owned_by(owner), finalizers=[HELD])
    await cluster.create(CONFIG_MAPS, child, namespace)
    await cluster.delete(CONFIG_MAPS, Key(namespace, "owner"), propagation="Foreground")
    await until(cluster, CONFIG_MAPS, Key(namespace, "child"), lambda found: "deletionTimestamp" in found["metadata"])
    waiting = await cluster.get(CONFIG_MAPS, Key(namespace, "owner"), dict)
    assert waiting["metadata"]["finalizers"] == ["foregroundDeletion"]
    await release(cluster, Key(namespace, "child"))
    await until_gone(cluster, CONFIG_MAPS, Key(namespace, "owner"))
    assert not await exists(cluster, CONFIG_MAPS, Key(namespace, "child"))


async def test_orphans_stay_and_forget_their_owner(cluster: Cluster, namespace: str) -> None:
    owner = await cluster.create(CONFIG_MAPS, a_map("owner"), namespace)
    await cluster.create(CONFIG_MAPS, a_map("child", ownerReferences=owned_by(owner)), namespace)
    await cluster.delete(CONFIG_MAPS, Key(namespace, "owner"), propagation="Orphan")
    await until_gone(cluster, CONFIG_MAPS, Key(namespace, "owner"))
    child = await cluster.get(CONFIG_MAPS, Key(namespace, "child"), dict)
    assert "ownerReferences" not in child["metadata"]
