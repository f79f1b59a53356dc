"""Hollow Nodes: object, status and lease. supervisor.py and tests create them, kubelet.py keeps them alive.

Any Node with the label `sim.novasphere.dev/hollow: "true"`, or by its former name `testbed.wukong/hollow`, is run by
the hollow kubelets, whoever created it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import zlib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from testbed.behaviour import HOLLOW, PREFIX, is_set
from testbed.build import kubernetes_version
from testbed.client import Client, Json, Listed, as_json
from testbed.errors import TestbedError
from testbed.objects import Node
from testbed.pod_status import stamp

CAPACITY = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
ZONES = ("zone-a", "zone-b", "zone-c")
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
LEASE_DURATION_SECONDS = 40  # as kubelets say; the node controller goes by when it last saw a renewal
PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")
FOR = f"{PREFIX}for"
NOT_READY = "node.kubernetes.io/not-ready"
CREATE_AT_ONCE = 32
NETWORK = int(ipaddress.ip_address("172.16.0.0"))


def a_node(
    name: str,
    *,
    now: float,
    capacity: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    taints: list[Json] | None = None,
) -> Json:
    """A Node as its kubelet would register it, ready at once. `capacity` is laid over the default one."""
    known = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", HOLLOW: "true"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**known, **(labels or {})}, "annotations": annotations or {}},
        "spec": {"taints": taints or []},
        "status": status(name, now, CAPACITY | (capacity or {})),
    }


def reserved(whom: str) -> Json:
    """What makes a Node refuse all pods but those of `whom`; goes to `a_node`."""
    return {"labels": {FOR: whom}, "taints": [{"key": FOR, "value": whom, "effect": "NoSchedule"}]}


def on_reserved(whom: str) -> Json:
    """The part of a pod's spec that brings it to those Nodes and to no others."""
    return {"nodeSelector": {FOR: whom}, "tolerations": [{"key": FOR, "value": whom, "effect": "NoSchedule"}]}


def spread_nodes(count: int, now: float, a_node: Callable[..., Json] = a_node) -> list[Json]:
    """`node-0`, `node-1`, … over three zones."""
    zone = "topology.kubernetes.io/zone"
    return [a_node(f"node-{i}", now=now, labels={zone: ZONES[i % len(ZONES)]}) for i in range(count)]


async def create(client: Client, nodes: Iterable[Json]) -> None:
    slots = asyncio.Semaphore(CREATE_AT_ONCE)

    async def create_one(node: Json) -> None:
        async with slots:
            await client.create("/api/v1/nodes", node)

    async with asyncio.TaskGroup() as group:
        for node in nodes:
            group.create_task(create_one(node))


def is_usable(node: Json) -> bool:
    """Admission taints every new Node; the node controller takes that away when it saw it ready."""
    return not any(taint["key"] == NOT_READY for taint in node["spec"].get("taints", ()))


async def all_usable(client: Client, count: int, seconds: float) -> None:
    """Until this many hollow Nodes are."""
    usable: set[str] = set()
    try:
        async with asyncio.timeout(seconds):
            async for change in client.follow("/api/v1/nodes"):
                for raw in change.items if isinstance(change, Listed) else [change.object]:
                    node = as_json(raw)
                    if is_set("hollow", node["metadata"].get("labels")) and is_usable(node):
                        usable.add(node["metadata"]["name"])
                if len(usable) >= count:
                    return
    except TimeoutError:
        raise TestbedError(f"only {len(usable)} of {count} Nodes could be used after {seconds:.0f} s") from None


def status(name: str, now: float, capacity: dict[str, str]) -> Json:
    version = kubernetes_version()
    # Every field is required by the API.
    info = dict.fromkeys(("machineID", "systemUUID", "bootID", "kernelVersion", "osImage"), "hollow")
    info |= {"containerRuntimeVersion": "hollow://1", "kubeletVersion": version, "kubeProxyVersion": ""}
    info |= {"operatingSystem": "linux", "architecture": "amd64"}
    return {
        "capacity": capacity,
        "allocatable": capacity,
        "addresses": [{"type": "InternalIP", "address": address(name)}, {"type": "Hostname", "address": name}],
        "conditions": conditions(now),
        "nodeInfo": info,
    }


def address(name: str) -> str:
    """One of the million in 172.16.0.0/12, always the same for a name."""
    return str(ipaddress.ip_address(NETWORK + zlib.crc32(name.encode()) % 2**20))


def conditions(now: float) -> list[Json]:
    times = {"lastHeartbeatTime": stamp(now), "lastTransitionTime": stamp(now)}
    healthy = [
        {"type": kind, "status": "False", "reason": f"KubeletHasNo{kind}", "message": "", **times} for kind in PRESSURES
    ]
    return [*healthy, {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "", **times}]


def recovery(node: Node, now: float) -> Json:
    """The status patch of a kubelet that starts or comes back: ready; what nobody else set is filled in."""
    full = status(node.metadata.name, now, CAPACITY)
    wanted = {key: full[key] for key in ("conditions", "nodeInfo", "addresses")}
    if not node.status.allocatable:
        wanted |= {"capacity": full["capacity"], "allocatable": full["allocatable"]}
    return {"status": wanted}


def lease(node: Node, now: float) -> Json:
    owner = {"apiVersion": "v1", "kind": "Node", "name": node.metadata.name, "uid": node.metadata.uid}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": node.metadata.name, "namespace": "kube-node-lease", "ownerReferences": [owner]},
        "spec": {"holderIdentity": node.metadata.name, "leaseDurationSeconds": LEASE_DURATION_SECONDS, **renewal(now)},
    }


def renewal(now: float) -> Json:
    return {"renewTime": datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
