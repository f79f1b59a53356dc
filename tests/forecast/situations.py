"""Builders for situations and workloads: documents as people write them, in the fewest words."""

from __future__ import annotations

from typing import Any

from wukong.api.kinds import KINDS
from wukong.api.resources import Key
from wukong.embedded.world.objects import read
from wukong.forecast.warnings import Situation, WrittenObject
from wukong.ports import Document, PatchBody
from wukong.state import State

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
CPU_METRIC = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def a_node(name: str, *, cpu: str = "4", taints: list[Document] | None = None, **labels: str) -> Document:
    capacity = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    own = {key.replace("__", "/"): value for key, value in labels.items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, **own}},
        "spec": {"taints": taints} if taints else {},
        "status": {"capacity": capacity, "allocatable": capacity},
    }


def some_nodes(count: int) -> list[Document]:
    return [a_node(f"n{number}") for number in range(1, count + 1)]


def a_term(key: str = HOSTNAME, app: str = "web", **more: Any) -> Document:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def apart(*required: Document, preferred: list[Document] | None = None) -> Document:
    """An affinity with these anti-affinity terms."""
    rules: Document = {REQUIRED: list(required)} if required else {}
    if preferred:
        rules[PREFERRED] = [{"weight": 100, "podAffinityTerm": term} for term in preferred]
    return {"podAntiAffinity": rules}


def node_affinity(
    required: list[tuple[str, str, list[str]]], preferred: list[tuple[str, str, list[str]]] | None = None
) -> Document:
    def expressions(entries: list[tuple[str, str, list[str]]]) -> Document:
        return {"matchExpressions": [{"key": key, "operator": op, "values": values} for key, op, values in entries]}

    rules: Document = {REQUIRED: {"nodeSelectorTerms": [expressions(required)]}} if required else {}
    if preferred:
        rules[PREFERRED] = [{"weight": 1, "preference": expressions(preferred)}]
    return {"nodeAffinity": rules}


def a_deployment(
    replicas: int | None = 3, affinity: Document | None = None, *, app: str = "web", cpu: str = "100m", **more: Any
) -> Document:
    """`more`: of the pod's spec, but for strategy, labels and annotations."""
    spec: Document = {"selector": {"matchLabels": {"app": app}}}
    if replicas is not None:
        spec["replicas"] = replicas
    if (strategy := more.pop("strategy", None)) is not None:
        spec["strategy"] = strategy
    marks: Document = {key: more.pop(key) for key in ("labels", "annotations") if key in more}
    meta: Document = {"name": app, "namespace": "default", **marks}
    container = {"name": "main", "image": f"{app}:1", "resources": {"requests": {"cpu": cpu}}}
    pod = {"containers": [container], **({"affinity": affinity} if affinity else {}), **more}
    spec["template"] = {"metadata": {"labels": {"app": app}}, "spec": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def a_budget(name: str = "web", app: str = "web", **spec: Any) -> Document:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }


def a_service(**selector: str) -> Document:
    meta = {"name": "web", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"selector": selector}}


def an_autoscaler(name: str = "web", least: int = 1, most: int = 10, kind: str = "Deployment") -> Document:
    target = {"apiVersion": "apps/v1", "kind": kind, "name": name}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"scaleTargetRef": target, "minReplicas": least, "maxReplicas": most, "metrics": [CPU_METRIC]},
    }


def a_pod(name: str, node: str, *, app: str = "web", cpu: str = "100m") -> Document:
    container = {"name": "main", "image": f"{app}:1", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": app}},
        "spec": {"nodeName": node, "containers": [container]},
        "status": {"phase": "Running"},
    }


def situate(
    *cluster: Document,
    applied: list[Document] | None = None,
    patched: tuple[Document, PatchBody] | None = None,
    drained: tuple[str, ...] = (),
) -> Situation:
    """The cluster's documents, with those that are applied in their place or beside them.

    `patched` is a document as a patch leaves it, and the patch.
    """
    before = {identity_of(document): document for document in cluster}
    written = [
        WrittenObject(
            group_kind=identity[0],
            key=identity[1],
            applied=document if patch is None else None,
            patch=patch,
            before=before.get(identity),
            after=document,
        )
        for document, patch in [*((document, None) for document in applied or ()), *([patched] if patched else [])]
        for identity in [identity_of(document)]
    ]
    after = {**before, **{(entry.group_kind, entry.key): entry.after for entry in written if entry.after is not None}}
    state = State()
    for (group_kind, _), document in after.items():
        state.apply("ADDED", read(group_kind, document), group_kind)
    return Situation(state, tuple(written), drained)


def identity_of(document: Document) -> tuple[str, Key]:
    kind = KINDS.of_document(document["kind"], document["apiVersion"])
    assert kind is not None
    meta = document["metadata"]
    return kind.group_kind, Key(meta.get("namespace", "default") if kind.resource.namespaced else "", meta["name"])
