"""Snapshots of made-up clusters of any size, at rest, as `wukong snapshot` writes them. Same arguments, same file.

python -m bench.forecast.snapshots NODES PODS FILE

Nodes in three zones, a third of them spot. Of the pods two per node are of DaemonSets, a tenth of StatefulSets, the
others of Deployments of 1 to 100 replicas, one of them `shop-0/web` with 100; half of the Deployments have a budget.
The pods lie on the nodes in turn. One change to roll out is `shop-0/web` with another image: see `image_change`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

Document = dict[str, Any]
CREATED, STARTED = "2026-05-01T08:00:00Z", "2026-05-01T08:00:05Z"
SIZES = (3, 10, 2, 40, 5, 1, 20, 3, 100, 8)  # replicas of Deployments, in turn
PER_NAMESPACE = 25  # Deployments
DAEMON_SETS = 2
ROLLED = ("shop-0", "web", 100)


def main() -> None:
    nodes, pods, path = sys.argv[1:]
    write(int(nodes), int(pods), Path(path))


def write(nodes: int, pods: int, path: Path) -> None:
    with path.open("wb") as file:
        file.write(b'{"apiVersion":"v1","kind":"List","items":[')
        for number, document in enumerate(build(nodes, pods)):
            file.write((b",\n" if number else b"\n") + msgspec.json.encode(document))
        file.write(b"\n]}\n")


def image_change(image: str = "registry.example.com/web:2") -> Document:
    """The Deployment `shop-0/web` as it is in every such snapshot, but for its image."""
    namespace, name, replicas = ROLLED
    return _deployment(namespace, name, replicas, image)


def build(nodes: int, pods: int) -> Iterator[Document]:
    """The documents of a cluster of so many nodes and pods, owners before what they own."""
    uids, turn = count(1), count()
    for number in range(nodes):
        yield _finish(_node(number), uids)
    left = pods - nodes * DAEMON_SETS
    assert left >= ROLLED[2], "too few pods for so many nodes"
    for number in range(DAEMON_SETS):
        yield from _daemon_set(f"agent-{number}", nodes, uids)
    stateful = pods // 10
    for number in range(stateful // 10):
        yield from _stateful_set(f"data-{number // PER_NAMESPACE}", f"db-{number}", 10, nodes, uids, turn)
        left -= 10
    yield from _rolled_out(*ROLLED, nodes, uids, turn)
    left -= ROLLED[2]
    for number in count():
        replicas = min(SIZES[number % len(SIZES)], left)
        if replicas <= 0:
            return
        namespace = f"shop-{number // PER_NAMESPACE}"
        yield from _rolled_out(namespace, f"app-{number}", replicas, nodes, uids, turn)
        if number % 2:
            yield _finish(_budget(namespace, f"app-{number}", replicas), uids)
        left -= replicas


def _rolled_out(
    namespace: str, name: str, replicas: int, nodes: int, uids: Iterator[int], turn: Iterator[int]
) -> Iterator[Document]:
    """A Deployment with its ReplicaSet and its pods, complete."""
    image, revision = f"registry.example.com/{name}:1", "6b7f9c5d4"
    labels = {"app": name, "pod-template-hash": revision}
    deployment = _finish(_deployment(namespace, name, replicas, image), uids)
    counts = {"replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas, "observedGeneration": 1}
    counts["terminatingReplicas"] = 0
    deployment["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": "1"}
    deployment["status"] = {**counts, "updatedReplicas": replicas, "conditions": _DEPLOYMENT_CONDITIONS}
    yield deployment
    replica_set = _finish(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": f"{name}-{revision}",
                "namespace": namespace,
                "labels": labels,
                "annotations": {
                    "deployment.kubernetes.io/revision": "1",
                    "deployment.kubernetes.io/desired-replicas": str(replicas),
                    "deployment.kubernetes.io/max-replicas": str(replicas + -(-replicas // 4)),
                },
                "ownerReferences": [_owner(deployment)],
            },
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": _template(labels, image)},
            "status": {**counts, "fullyLabeledReplicas": replicas},
        },
        uids,
    )
    yield replica_set
    for number in range(replicas):
        suffix = f"{number:05d}".translate(_NAME_LETTERS)
        pod = _pod(replica_set, f"{name}-{revision}-{suffix}", labels, image, f"node-{next(turn) % nodes:05d}")
        yield _finish(pod, uids)


def _stateful_set(
    namespace: str, name: str, replicas: int, nodes: int, uids: Iterator[int], turn: Iterator[int]
) -> Iterator[Document]:
    image, revision = f"registry.example.com/{name}:1", f"{name}-7d8c9b6f5"
    labels = {"app": name}
    owner = _finish(
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": {
                "replicas": replicas,
                "serviceName": name,
                "selector": {"matchLabels": labels},
                "template": _template(labels, image),
            },
            "status": {
                **dict.fromkeys(("replicas", "readyReplicas", "availableReplicas", "currentReplicas"), replicas),
                "updatedReplicas": replicas,
                "observedGeneration": 1,
                "collisionCount": 0,
                "currentRevision": revision,
                "updateRevision": revision,
            },
        },
        uids,
    )
    yield owner
    for number in range(replicas):
        own = {
            **labels,
            "controller-revision-hash": revision,
            "statefulset.kubernetes.io/pod-name": f"{name}-{number}",
            "apps.kubernetes.io/pod-index": str(number),
        }
        pod = _pod(owner, f"{name}-{number}", own, image, f"node-{next(turn) % nodes:05d}")
        pod["spec"] |= {"hostname": f"{name}-{number}", "subdomain": name}
        yield _finish(pod, uids)


def _daemon_set(name: str, nodes: int, uids: Iterator[int]) -> Iterator[Document]:
    image, labels = f"registry.example.com/{name}:1", {"app": name}
    status = {f"{name}NumberScheduled": nodes for name in ("current", "desired", "updated")}
    owner = _finish(
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": name, "namespace": "kube-system", "labels": labels},
            "spec": {"selector": {"matchLabels": labels}, "template": _template(labels, image)},
            "status": {
                **status,
                "numberMisscheduled": 0,
                "numberReady": nodes,
                "numberAvailable": nodes,
                "observedGeneration": 1,
            },
        },
        uids,
    )
    yield owner
    for number in range(nodes):
        node = f"node-{number:05d}"
        suffix = f"{number:05d}".translate(_NAME_LETTERS)
        pod = _pod(owner, f"{name}-{suffix}", {**labels, "controller-revision-hash": "5f6d7c8b9"}, image, node)
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        pod["spec"] |= {"affinity": {"nodeAffinity": required}, "tolerations": [*_DAEMON_TOLERATIONS]}
        yield _finish(pod, uids)


def _node(number: int) -> Document:
    name = f"node-{number:05d}"
    capacity = {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "200Gi"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": CREATED}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/region": "eu-1",
                "topology.kubernetes.io/zone": f"eu-1{'abc'[number % 3]}",
                "node.kubernetes.io/instance-type": "m6.4xlarge",
                "karpenter.sh/capacity-type": "on-demand" if number % 3 else "spot",
            },
        },
        "spec": {},
        "status": {"capacity": capacity, "allocatable": capacity, "conditions": [ready]},
    }


def _deployment(namespace: str, name: str, replicas: int, image: str) -> Document:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": _template({"app": name}, image),
        },
    }


def _budget(namespace: str, name: str, replicas: int) -> Document:
    allowed = -(-replicas // 10)
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"maxUnavailable": "10%", "selector": {"matchLabels": {"app": name}}},
        "status": {
            "currentHealthy": replicas,
            "desiredHealthy": replicas - allowed,
            "disruptionsAllowed": allowed,
            "expectedPods": replicas,
            "observedGeneration": 1,
            "conditions": [
                {
                    "type": "DisruptionAllowed",
                    "status": "True",
                    "reason": "SufficientPods",
                    "message": "",
                    "observedGeneration": 1,
                    "lastTransitionTime": STARTED,
                }
            ],
        },
    }


def _template(labels: Document, image: str) -> Document:
    return {"metadata": {"labels": labels}, "spec": _pod_spec(image)}


def _pod_spec(image: str) -> Document:
    requests = {"cpu": "250m", "memory": "512Mi"}
    return {"containers": [{"name": "main", "image": image, "resources": {"requests": requests}}]}


def _pod(owner: Document, name: str, labels: Document, image: str, node: str) -> Document:
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": STARTED}
        for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    running = {"name": "main", "ready": True, "restartCount": 0, "state": {"running": {"startedAt": STARTED}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": owner["metadata"]["namespace"],
            "labels": labels,
            "ownerReferences": [_owner(owner)],
        },
        "spec": {**_pod_spec(image), "nodeName": node, "schedulerName": "default-scheduler"},
        "status": {
            "phase": "Running",
            "startTime": CREATED,
            "conditions": conditions,
            "containerStatuses": [running],
        },
    }


def _owner(owner: Document) -> Document:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _finish(document: Document, uids: Iterator[int]) -> Document:
    """Give it what a server gives every object that it stores."""
    uid = f"7f000000-0000-4000-9000-{next(uids):012x}"
    document["metadata"] |= {"uid": uid, "creationTimestamp": CREATED, "generation": 1}
    return document


_NAME_LETTERS = str.maketrans("0123456789", "bcdfghjklm")
_DAEMON_TOLERATIONS = [
    {"key": key, "operator": "Exists", "effect": effect}
    for key, effect in (
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
        ("node.kubernetes.io/memory-pressure", "NoSchedule"),
        ("node.kubernetes.io/pid-pressure", "NoSchedule"),
        ("node.kubernetes.io/unschedulable", "NoSchedule"),
    )
]
_DEPLOYMENT_CONDITIONS = [
    {
        "type": kind,
        "status": "True",
        "reason": reason,
        "lastTransitionTime": STARTED,
        "lastUpdateTime": STARTED,
    }
    for kind, reason in (("Available", "MinimumReplicasAvailable"), ("Progressing", "NewReplicaSetAvailable"))
]


if __name__ == "__main__":
    main()
