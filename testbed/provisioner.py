"""A hollow external provisioner: makes the volumes that claims ask an external driver for, and deletes those let go.

    async with provisioner(client): …

It does what csi-provisioner does with a driver that knows zones: it waits until the volume controller names it on a
claim (for classes that wait, that is once the scheduler has selected a node), makes a PersistentVolume for the claim,
tied to the zone of that node, or to the node where that has no zone, and removes volumes of class policy Delete that
were released. No storage is behind it. Any driver's claims are served, so one is enough for a cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from testbed.client import ApiError, Client, Event, Json, Listed, as_json

CLAIMS, VOLUMES = "/api/v1/persistentvolumeclaims", "/api/v1/persistentvolumes"
PROVISIONER = "volume.kubernetes.io/storage-provisioner"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
IN_TREE = "kubernetes.io/"  # such a provisioner is no external one


@asynccontextmanager
async def provisioner(client: Client) -> AsyncIterator[None]:
    """Runs while the body does."""
    tasks = [asyncio.create_task(follow_claims(client)), asyncio.create_task(follow_volumes(client))]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def follow_claims(client: Client) -> None:
    async for change in client.follow(CLAIMS):
        if isinstance(change, Event) and change.type == "DELETED":
            continue
        for raw in change.items if isinstance(change, Listed) else [change.object]:
            await provision(client, as_json(raw))


async def provision(client: Client, claim: Json) -> None:
    annotations = claim["metadata"].get("annotations") or {}
    driver = annotations.get(PROVISIONER, "")
    if not driver or driver.startswith(IN_TREE) or claim["spec"].get("volumeName"):
        return
    if claim["metadata"].get("deletionTimestamp"):
        return
    storage_class = await client.get(f"/apis/storage.k8s.io/v1/storageclasses/{claim['spec']['storageClassName']}")
    node = None
    if SELECTED_NODE in annotations:
        node = await client.get(f"/api/v1/nodes/{annotations[SELECTED_NODE]}")
    with suppress(ApiError):  # it is there already: the claim was seen twice
        await client.create(VOLUMES, a_volume(claim, storage_class, node, driver))


def a_volume(claim: Json, storage_class: Json, node: Json | None, driver: str) -> Json:
    meta, spec = claim["metadata"], claim["spec"]
    name = f"pvc-{meta['uid']}"
    volume: Json = {
        "capacity": {"storage": spec["resources"]["requests"]["storage"]},
        "accessModes": spec["accessModes"],
        "volumeMode": spec.get("volumeMode", "Filesystem"),
        "storageClassName": spec["storageClassName"],
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
        "csi": {"driver": driver, "volumeHandle": name},
        "claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "resourceVersion": meta["resourceVersion"],
            "namespace": meta["namespace"],
            "name": meta["name"],
            "uid": meta["uid"],
        },
    }
    if node is not None:
        labels = node["metadata"].get("labels") or {}
        key = ZONE if ZONE in labels else HOSTNAME
        term = {"matchExpressions": [{"key": key, "operator": "In", "values": [labels[key]]}]}
        volume["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    return {"metadata": {"name": name, "annotations": {PROVISIONED_BY: driver}}, "spec": volume}


async def follow_volumes(client: Client) -> None:
    async for change in client.follow(VOLUMES):
        for raw in change.items if isinstance(change, Listed) else [change.object]:
            volume = as_json(raw)
            is_ours = PROVISIONED_BY in (volume["metadata"].get("annotations") or {})
            is_released = volume.get("status", {}).get("phase") == "Released"
            if is_ours and is_released and volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete":
                with suppress(ApiError):  # gone already
                    await client.delete(f"{VOLUMES}/{volume['metadata']['name']}")
