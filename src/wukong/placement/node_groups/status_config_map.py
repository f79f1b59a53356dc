"""The groups that the ConfigMap cluster-autoscaler-status tells of: names, minima and maxima. Pure, called by file.py.

Until 1.29 it was a text for people, since 1.30 it is YAML; both are read. What the nodes of a group are like it does
not say: that is taken from nodes that are there, which clouds label with the name of their group, or with a part of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from wukong.api.core import Node
from wukong.api.node_groups import NodeGroup
from wukong.api.yaml_values import load_documents
from wukong.errors import InputError
from wukong.placement.node_groups.shapes import template_of, usable_name

_GROUP_LABELS = (
    "eks.amazonaws.com/nodegroup",
    "alpha.eksctl.io/nodegroup-name",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "node.kubernetes.io/instancegroup",
    "kops.k8s.io/instancegroup",
)
_NAME = re.compile(r"^\s+Name:\s+(\S+)\s*$")
_LIMITS = re.compile(r"\(minSize=(\d{1,9}), maxSize=(\d{1,9})\)")


class Limits(NamedTuple):
    name: str
    min: int
    max: int


def read_status(status: str, nodes: Sequence[Node], notes: list[str]) -> list[NodeGroup]:
    """The groups whose nodes can be told; `notes` gets a line for each other one."""
    groups = []
    for limits in list_limits(status):
        label = _find_label(limits.name, nodes)
        if label is None:
            notes.append(
                f"node group {limits.name:.200} is left out: no node is labelled as one of it, so nobody knows what "
                "its nodes are like. Describe it under nodeGroups."
            )
            continue
        members = [node for node in nodes if node.metadata.labels.get(label[0]) == label[1]]
        template = template_of(members)
        groups.append(
            NodeGroup(
                name=usable_name(limits.name),
                template=template,
                min=limits.min,
                max=limits.max,
                match_labels={label[0]: label[1]},
            )
        )
    return groups


def list_limits(status: str) -> list[Limits]:
    """Every group with its limits, of either format. Raises InputError where it is neither."""
    limits = list(_list_limits_of_text(status)) if "NodeGroups:" in status else list(_list_limits_of_yaml(status))
    if not limits:
        raise InputError("$.data.status: expected nodeGroups with minSize and maxSize, found none.")
    return limits


def _list_limits_of_text(status: str) -> Iterator[Limits]:
    name = ""
    for line in status.partition("NodeGroups:")[2].splitlines():
        if match := _NAME.match(line):
            name = match[1]
        elif name and (match := _LIMITS.search(line)):
            yield Limits(name, int(match[1]), int(match[2]))
            name = ""


def _list_limits_of_yaml(status: str) -> Iterator[Limits]:
    documents = load_documents(status)
    content: Any = documents[0] if documents else None
    for group in _items(content.get("nodeGroups") if isinstance(content, dict) else None):
        name, health = group.get("name"), group.get("health")
        least, most = (health.get(field) if isinstance(health, dict) else None for field in ("minSize", "maxSize"))
        # A minimum or maximum of 0 is left out by whoever writes it.
        least, most = (0 if value is None else value for value in (least, most))
        if isinstance(name, str) and name and type(least) is int and type(most) is int:
            yield Limits(name, least, most)


def _items(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _find_label(group: str, nodes: Sequence[Node]) -> tuple[str, str] | None:
    """The label and value that the nodes of a group have: the longest value that is the group's name, or a part of it.

    An EKS group `blue` is the autoscaling group eks-blue-2ac…, a GKE pool `blue` the instance group gke-…-blue-…-grp.
    """
    name = f"-{group.rpartition('/')[2]}-"
    found = {
        (key, value)
        for node in nodes
        for key in _GROUP_LABELS
        if (value := node.metadata.labels.get(key)) and f"-{value}-" in name
    }
    return min(found, key=lambda label: (-len(label[1]), _GROUP_LABELS.index(label[0])), default=None)
