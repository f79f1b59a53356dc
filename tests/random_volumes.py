"""Storage and pods with volumes, at random, as manifests a real API server accepts; the same seed makes the same ones.

Property tests decode them into typed objects (`settle` writes what controllers would have); the live comparison creates
them. Claims are named after what is the matter with them, so that a failure can be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

Manifest = dict[str, Any]

ZONE, BETA_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
REGION, HOSTNAME = "topology.kubernetes.io/region", "kubernetes.io/hostname"
PLAIN, CAPPED = "plain.csi.example.com", "capped.csi.example.com"  # drivers; the second says how much storage it has
STORAGE = "storage.k8s.io/v1"
SIZES = ("1Gi", "2Gi", "5Gi", "10Gi", "1500Mi")


# Classes, drivers, capacities ----------------------------------------------------------------------------------------


def a_class(name: str, provisioner: str, mode: str, topologies: list[Manifest] | None = None) -> Manifest:
    return {
        "apiVersion": STORAGE,
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
        "reclaimPolicy": "Delete",
        **({"allowedTopologies": topologies} if topologies else {}),
    }


def zones_of(*zones: str) -> list[Manifest]:
    return [{"matchLabelExpressions": [{"key": ZONE, "values": [*zones]}]}]


CLASSES = (
    a_class("wait", PLAIN, "WaitForFirstConsumer"),
    a_class("wait-a", PLAIN, "WaitForFirstConsumer", zones_of("a")),
    a_class("wait-ab", PLAIN, "WaitForFirstConsumer", [*zones_of("a"), *zones_of("b")]),
    a_class("capped", CAPPED, "WaitForFirstConsumer"),
    a_class("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
    a_class("manual", "kubernetes.io/no-provisioner", "Immediate"),
    a_class("ebs", "kubernetes.io/aws-ebs", "WaitForFirstConsumer"),
)


def list_storage(rng: Random, nodes: list[str]) -> Iterator[Manifest]:
    """Classes, drivers, what they have left, and how many volumes nodes can attach."""
    yield from CLASSES
    for driver in (PLAIN, CAPPED):
        spec = {"attachRequired": False, "storageCapacity": driver == CAPPED}
        yield {"apiVersion": STORAGE, "kind": "CSIDriver", "metadata": {"name": driver}, "spec": spec}
    for zone in "abc":
        if rng.random() < 0.8:
            yield a_capacity(rng, zone)
    for node in nodes:
        if rng.random() < 0.8:
            yield a_csi_node(rng, node)


def a_capacity(rng: Random, zone: str) -> Manifest:
    capacity: Manifest = {"capacity": rng.choice(SIZES)}
    if rng.random() < 0.3:
        capacity["maximumVolumeSize"] = rng.choice(SIZES)
    topology = rng.choice([{"matchLabels": {ZONE: zone}}] * 4 + [{}])
    return {
        "apiVersion": STORAGE,
        "kind": "CSIStorageCapacity",
        "metadata": {"name": f"left-{zone}", "namespace": "default"},
        "storageClassName": "capped",
        "nodeTopology": topology,
        **capacity,
    }


def a_csi_node(rng: Random, node: str) -> Manifest:
    drivers = [
        {
            "name": driver,
            "nodeID": node,
            "topologyKeys": [],
            **({"allocatable": {"count": rng.choice([1, 2, 2, 3])}} if rng.random() < 0.7 else {}),
        }
        for driver in (PLAIN, CAPPED, "ebs.csi.aws.com")
    ]
    return {"apiVersion": STORAGE, "kind": "CSINode", "metadata": {"name": node}, "spec": {"drivers": drivers}}


# Volumes and claims --------------------------------------------------------------------------------------------------


def list_volumes(rng: Random, nodes: list[str], namespaces: list[str]) -> Iterator[Manifest]:
    """Local volumes for whoever comes, and claims of every kind in each namespace, with the volumes of those bound."""
    for number in range(rng.randint(2, 8)):
        yield a_local_volume(rng, f"local-{number}", rng.choice(nodes))
    for namespace in namespaces:
        for name, labels in BOUND.items():
            yield from a_bound_pair(rng, namespace, name, labels, nodes)
        for name, spec in UNBOUND.items():
            yield a_claim(namespace, name, {**spec, "resources": a_request(rng.choice(SIZES))})


def a_request(size: str) -> Manifest:
    return {"requests": {"storage": size}}


def a_claim(namespace: str, name: str, spec: Manifest) -> Manifest:
    head = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": namespace}}
    return {**head, "spec": {"accessModes": ["ReadWriteOnce"], **spec}}


def a_volume(name: str, size: str, spec: Manifest, labels: dict[str, str] | None = None) -> Manifest:
    head = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name, "labels": labels or {}}}
    usual = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain"}
    return {**head, "spec": {**usual, **spec}}


def on(key: str, *values: str) -> Manifest:
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [*values]}]}
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}


def a_local_volume(rng: Random, name: str, node: str) -> Manifest:
    where = rng.choice([on(HOSTNAME, node), on(HOSTNAME, node), on(ZONE, "a", "b"), on(ZONE, "c")])
    modes = rng.choice([["ReadWriteOnce"], ["ReadWriteOnce", "ReadOnlyMany"], ["ReadOnlyMany"]])
    spec = {"storageClassName": "local", "local": {"path": "/mnt"}, "accessModes": modes, **where}
    if rng.random() < 0.15:
        spec["volumeMode"] = "Block"
    return a_volume(name, rng.choice(SIZES), spec, {"tier": rng.choice(["gold", "tin"])})


# Claims that are bound, by the labels of their volumes; a name with "one" is for one pod at a time.
BOUND: dict[str, dict[str, str]] = {
    "free": {},
    "one": {},
    "near": {},
    "zone-a": {ZONE: "a"},
    "zone-beta": {BETA_ZONE: "b"},
    "zone-two": {ZONE: "a__b"},
    "zone-wrong": {ZONE: "a____b"},
    "region": {REGION: "north"},
    "disk": {},
}
UNBOUND: dict[str, Manifest] = {
    "wait": {"storageClassName": "wait"},
    "wait-2": {"storageClassName": "wait"},
    "wait-a": {"storageClassName": "wait-a"},
    "wait-ab": {"storageClassName": "wait-ab"},
    "wait-one": {"storageClassName": "wait", "accessModes": ["ReadWriteOncePod"]},
    "capped": {"storageClassName": "capped"},
    "capped-2": {"storageClassName": "capped"},
    "local": {"storageClassName": "local"},
    "local-2": {"storageClassName": "local"},
    "local-gold": {"storageClassName": "local", "selector": {"matchLabels": {"tier": "gold"}}},
    "local-block": {"storageClassName": "local", "volumeMode": "Block"},
    "local-many": {"storageClassName": "local", "accessModes": ["ReadOnlyMany"]},
    "ebs": {"storageClassName": "ebs"},
    "now": {"storageClassName": "manual"},
    "no-class": {"storageClassName": ""},
    "class-gone": {"storageClassName": "nobody"},
    "volume-gone": {"storageClassName": "wait", "volumeName": "nobody"},
}


def a_bound_pair(
    rng: Random, namespace: str, name: str, labels: dict[str, str], nodes: list[str]
) -> Iterator[Manifest]:
    volume, size = f"pv-{namespace}-{name}", rng.choice(SIZES)
    modes = ["ReadWriteOncePod"] if name == "one" else ["ReadWriteOnce"]
    source: Manifest = {"csi": {"driver": PLAIN, "volumeHandle": volume}}
    if name == "disk":
        source = {"awsElasticBlockStore": {"volumeID": f"aws://eu-1a/vol-{namespace}"}}
    spec: Manifest = {"accessModes": modes, **source, "claimRef": {"namespace": namespace, "name": name}}
    if name == "near":
        spec |= rng.choice([on(ZONE, "a"), on(ZONE, "b", "c"), on(HOSTNAME, rng.choice(nodes))])
    yield a_volume(volume, size, spec, labels)
    wanted = {"accessModes": modes, "storageClassName": "", "volumeName": volume, "resources": a_request(size)}
    yield a_claim(namespace, name, wanted)


def settle(manifest: Manifest) -> Manifest:
    """What the controllers would have written by now: phases, and marks of claims that are bound."""
    if manifest["kind"] == "PersistentVolume":
        is_taken = "claimRef" in manifest["spec"]
        return {**manifest, "status": {"phase": "Bound" if is_taken else "Available"}}
    if manifest["kind"] != "PersistentVolumeClaim":
        return manifest
    is_bound = manifest["metadata"]["name"] in BOUND
    meta = {**manifest["metadata"], "uid": f"uid-{manifest['metadata']['namespace']}-{manifest['metadata']['name']}"}
    if is_bound:
        meta["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    return {**manifest, "metadata": meta, "status": {"phase": "Bound" if is_bound else "Pending"}}


# Pods ----------------------------------------------------------------------------------------------------------------

DISKS: tuple[Manifest, ...] = (
    {"gcePersistentDisk": {"pdName": "disk-1"}},
    {"gcePersistentDisk": {"pdName": "disk-1", "readOnly": True}},
    {"awsElasticBlockStore": {"volumeID": "vol-1"}},
    {"awsElasticBlockStore": {"volumeID": "vol-2"}},
    {"iscsi": {"targetPortal": "10.0.0.1", "iqn": "iqn.2026-01.com.example:a", "lun": 0}},
    {"iscsi": {"targetPortal": "10.0.0.1", "iqn": "iqn.2026-01.com.example:a", "lun": 0, "readOnly": True}},
    {"rbd": {"monitors": ["10.0.0.1", "10.0.0.2"], "pool": "rbd", "image": "one"}},
    {"rbd": {"monitors": ["10.0.0.2"], "pool": "rbd", "image": "one", "readOnly": True}},
    {"rbd": {"monitors": ["10.0.0.3"], "pool": "rbd", "image": "one"}},
)
USUAL = ("free", "near", "zone-a", "zone-beta", "zone-two", "wait", "wait-a", "capped", "local", "ebs", "disk", "one")


def random_pod_volumes(rng: Random) -> list[Manifest]:
    """The volumes of one pod: claims, most of them good, disks, and ephemeral volumes."""
    names = rng.sample(USUAL, rng.choice([0, 1, 1, 2, 3]))
    if rng.random() < 0.5:
        names.append(rng.choice([*UNBOUND, *BOUND, "missing"]))
    volumes: list[Manifest] = [
        {"name": f"v{number}", "persistentVolumeClaim": {"claimName": name}} for number, name in enumerate(names)
    ]
    if rng.random() < 0.25 or not volumes:
        volumes.append({"name": "disk", **rng.choice(DISKS)})
    if rng.random() < 0.15:
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": rng.choice(["wait", "wait-ab", "capped", "local"]),
        }
        template = {"spec": {**spec, "resources": a_request(rng.choice(SIZES))}}
        volumes.append({"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}})
    return volumes
