"""What the nodes of a group are like: as those that are there, or by the name of their instance type. Pure."""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Sequence
from typing import NamedTuple

from wukong.api.core import Node, Taint
from wukong.api.node_groups import NodeTemplate

INSTANCE_TYPE, ZONE = "node.kubernetes.io/instance-type", "topology.kubernetes.io/zone"
_HOSTNAME = "kubernetes.io/hostname"
_PASSING_TAINTS = (  # how the keys of taints begin that come and go
    *("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"),
    *("ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler", "karpenter.sh/"),
)
_GIB_PER_CPU = {  # of families that are sold in one proportion
    "aws": {"c": 2.0, "m": 4.0, "r": 8.0},
    "gcp": {"standard": 4.0, "highmem": 8.0, "highcpu": 1.0},
    "azure": {"D": 4.0, "E": 8.0, "F": 2.0},
}
_AWS = re.compile(r"(?P<kind>[cmr])\d[a-z]*(?:-flex)?\.(?:(?P<times>\d{1,3})?xlarge|(?P<large>large))")
_GCP = re.compile(r"(?:e2|n2|n2d|t2d|c3|n4)-(?P<kind>standard|highmem|highcpu)-(?P<cpus>\d{1,4})")
_AZURE = re.compile(r"Standard_(?P<kind>[DEF])(?P<cpus>\d{1,4})[a-z]*_v[2-6]")


class Shape(NamedTuple):
    """Of a machine: what it has, in cores and GiB."""

    cpus: int
    memory_gib: float


def find_shape(instance_type: str) -> Shape | None:
    """By its name; None for a type whose name does not tell."""
    if match := _AWS.fullmatch(instance_type):
        cpus = 2 if match["large"] else 4 * int(match["times"] or 1)
        return Shape(cpus, cpus * _GIB_PER_CPU["aws"][match["kind"]])
    for cloud, pattern in (("gcp", _GCP), ("azure", _AZURE)):
        if match := pattern.fullmatch(instance_type):
            return Shape(int(match["cpus"]), int(match["cpus"]) * _GIB_PER_CPU[cloud][match["kind"]])
    return None


def template_of_shape(shape: Shape) -> NodeTemplate:
    """What pods can have of such a machine: some is kept for the system, as EKS and GKE do, and a tenth of memory."""
    cpu_milli = shape.cpus * 1000
    kept_milli = 60 + 10 * (shape.cpus > 1) + 5 * min(2, max(0, shape.cpus - 2)) + 2.5 * max(0, shape.cpus - 4)
    memory_mib = int(shape.memory_gib * 1024)
    return NodeTemplate(
        capacity={"cpu": f"{cpu_milli}m", "memory": f"{memory_mib}Mi", "pods": 110},
        allocatable={"cpu": f"{int(cpu_milli - kept_milli)}m", "memory": f"{memory_mib * 9 // 10}Mi", "pods": 110},
    )


def template_of(nodes: Sequence[Node]) -> NodeTemplate:
    """One like the commonest of these nodes, with the labels and taints that all such nodes have."""
    shapes = Tally(_shape_key(node) for node in nodes)
    commonest = min(shapes, key=lambda shape: (-shapes[shape], shape))
    alike = [node for node in nodes if _shape_key(node) == commonest]
    first = alike[0]
    labels = {
        key: value
        for key, value in sorted(first.metadata.labels.items())
        if key != _HOSTNAME and all(node.metadata.labels.get(key) == value for node in alike)
    }
    if len(alike) == 1:  # a label that has the node's name for its value is of this node alone
        labels = {key: value for key, value in labels.items() if first.metadata.name != value}
    taints = [taint for taint in first.spec.taints if not taint.key.startswith(_PASSING_TAINTS)]
    return NodeTemplate(
        labels=labels,
        taints=[Taint(key=taint.key, value=taint.value, effect=taint.effect) for taint in taints],
        capacity=dict(first.status.capacity),
        allocatable=dict(first.status.allocatable),
    )


def _shape_key(node: Node) -> tuple[str, ...]:
    labels, amounts = node.metadata.labels, node.status.allocatable
    return labels.get(INSTANCE_TYPE, ""), labels.get(ZONE, ""), str(amounts.get("cpu")), str(amounts.get("memory"))


def usable_name(name: str) -> str:
    """The name of a group as nodes can be called: clouds give some as addresses, or with capitals."""
    cleaned = re.sub(r"[^a-z0-9-]+", "-", name.rpartition("/")[2].lower()).strip("-")
    return cleaned[:50].strip("-") or "group"
