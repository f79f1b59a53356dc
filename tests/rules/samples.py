"""Builders of pods, nodes and clusters that show only what matters. Fields of a spec are given as in a manifest."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from wukong.api.core import Node, Pod
from wukong.api.decode import decode_objects
from wukong.api.meta import Object
from wukong.api.objects import Objects
from wukong.rules import Cluster

Manifest = dict[str, Any]
T = TypeVar("T", bound=Object)


def a_pod(
    name: str = "new",
    *,
    namespace: str = "default",
    labels: dict[str, str] | None = None,
    cpu: str | None = None,
    memory: str | None = None,
    priority: int | None = None,
    owner: Manifest | None = None,
    deleted: bool = False,
    status: Manifest | None = None,
    **spec: Any,
) -> Pod:
    """One container with these requests, unless the spec has its own containers."""
    requests = {"cpu": cpu, "memory": memory}
    container = {"name": "main", "image": "app", "resources": {"requests": requests}}
    metadata = {
        "name": name,
        "namespace": namespace,
        "labels": labels or {},
        "ownerReferences": [owner] if owner else [],
        "deletionTimestamp": "2026-01-01T00:00:00Z" if deleted else None,
    }
    spec = {"containers": [container], "priority": priority, **spec}
    return build(Pod, {"kind": "Pod", "metadata": metadata, "spec": spec, "status": status or {}})


def a_container(name: str = "main", *, limits: Manifest | None = None, **fields: Any) -> Manifest:
    """`a_container(requests={"cpu": "1"})`; other fields as in a manifest."""
    requests = fields.pop("requests", {})
    return {"name": name, "image": "app", "resources": {"requests": requests, "limits": limits or {}}, **fields}


def a_sidecar(name: str = "proxy", **fields: Any) -> Manifest:
    return a_container(name, restartPolicy="Always", **fields)


def a_node(
    name: str = "n1",
    *,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: str = "10",
    labels: dict[str, str] | None = None,
    images: dict[str, int] | None = None,
    more: Manifest | None = None,
    **spec: Any,
) -> Node:
    """A node with its hostname label; `more` adds allocatable resources, `images` maps names to sizes."""
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}
    stored = [{"names": [image], "sizeBytes": size} for image, size in (images or {}).items()]
    allocatable = {"cpu": cpu, "memory": memory, "pods": pods, **(more or {})}
    status = {"allocatable": allocatable, "images": stored}
    return build(Node, {"kind": "Node", "metadata": metadata, "spec": spec, "status": status})


def a_cluster(*nodes: Node, pods: dict[str, list[Pod]] | None = None, others: list[Manifest] | None = None) -> Cluster:
    """`pods` maps nodes to the pods on them; `others` are manifests of any other kind."""
    objects = Objects(nodes=list(nodes))
    for manifest in others or []:
        objects.add(decode(manifest))
    cluster = Cluster(objects)
    for node_name, placed in (pods or {}).items():
        for pod in placed:
            cluster.add(pod, node_name)
    return cluster


def build(kind: type[T], manifest: Manifest) -> T:
    obj = decode(manifest)
    assert isinstance(obj, kind)
    return obj


def decode(manifest: Manifest) -> Object:
    (obj,) = decode_objects(json.dumps(manifest).encode())
    return obj


def zone(name: str) -> dict[str, str]:
    return {"topology.kubernetes.io/zone": name}


def node_affinity(*terms: list[Manifest]) -> Manifest:
    """An affinity with these required terms, each a list of match expressions."""
    written = [{"matchExpressions": expressions} for expressions in terms]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": written}}}


def expression(key: str, operator: str, *values: str) -> Manifest:
    return {"key": key, "operator": operator, "values": list(values)}
