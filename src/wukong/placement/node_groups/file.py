"""Reads a file of node groups: our own format, cluster-autoscaler's status, or Karpenter's NodePools. Pure.

    nodeGroups: [{name, min, max, bootSeconds, pricePerHour, matchLabels, template: {labels, taints, capacity, …}}]
    ConfigMap cluster-autoscaler-status       kubectl get configmap cluster-autoscaler-status -n kube-system -o yaml
    NodePools, with NodeClaims or without     kubectl get nodepools,nodeclaims -o yaml

What a file does not say of a group is taken from the nodes that are there. A group of which nothing tells what its
nodes are like is left out, and a note says so. Called with the text of a file; who reads files is above.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from wukong.api.core import Node
from wukong.api.decode import readable
from wukong.api.documents import unfold_list
from wukong.api.node_groups import NodeGroup
from wukong.api.strict import unknown_fields
from wukong.api.yaml_values import load_documents
from wukong.errors import InputError
from wukong.placement.node_groups.checks import check_group, check_groups
from wukong.placement.node_groups.karpenter import read_node_pools
from wukong.placement.node_groups.status_config_map import read_status

STATUS_NAME = "cluster-autoscaler-status"
_KINDS = ("ConfigMap", "NodePool", "NodeClaim")
_EXPECTED = (
    "expected nodeGroups: [{name, max, template: {capacity: …}}], the ConfigMap cluster-autoscaler-status, or "
    "Karpenter's NodePools"
)


class NodeGroupsFile(NamedTuple):
    """The groups of a file, and what had to be left out or taken for granted."""

    groups: list[NodeGroup]
    notes: list[str]


class _File(msgspec.Struct, rename="camel"):
    node_groups: list[NodeGroup]


def read_node_groups(text: str | bytes, nodes: Sequence[Node] = ()) -> NodeGroupsFile:
    """`nodes` are those of the cluster. Raises InputError with every problem."""
    documents = [
        item
        for document in load_documents(text)
        if document is not None
        for item in (unfold_list(document) if isinstance(document, dict) and "items" in document else [document])
    ]
    if not documents:
        raise InputError(f"{_EXPECTED}; found nothing.")
    kinds = {str(document.get("kind") or "") if isinstance(document, dict) else "" for document in documents}
    if kinds == {""}:
        return NodeGroupsFile(_read_own(documents), [])
    pools = [document for document in documents if isinstance(document, dict) and document.get("kind") in _KINDS[1:]]
    notes: list[str] = []
    groups = read_node_pools(pools, nodes, notes) if pools else []
    for document in documents:
        if isinstance(document, dict) and document.get("kind") == "ConfigMap":
            groups += read_status(status_of(document), nodes, notes)
    if not kinds & set(_KINDS):
        raise InputError(f"{_EXPECTED}; got {', '.join(sorted(kinds))}.")
    return NodeGroupsFile(leave_out_wrong(rename_doubles(groups), notes), notes)


def rename_doubles(groups: list[NodeGroup]) -> list[NodeGroup]:
    """Names that were cut may be the same: the second one gets a number."""
    seen: Tally[str] = Tally()
    renamed = []
    for group in groups:
        seen[group.name] += 1
        number = seen[group.name]
        renamed.append(group if number == 1 else msgspec.structs.replace(group, name=f"{group.name[:44]}-{number}"))
    return renamed


def leave_out_wrong(groups: list[NodeGroup], notes: list[str]) -> list[NodeGroup]:
    """What a cluster says may be absurd: such a group is left out, and the others count."""
    right = []
    for group in groups:
        if problem := next(check_group(group), None):
            notes.append(f"node group {group.name:.100} is left out: {problem}")
        else:
            right.append(group)
    return right


def _read_own(documents: list[Any]) -> list[NodeGroup]:
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise InputError(f"{_EXPECTED}; got {documents[0]!r:.100}.")
    problems = unknown_fields(documents[0], _File)
    try:
        groups = msgspec.convert(documents[0], _File).node_groups
        problems += check_groups(groups, "$.nodeGroups")
    except msgspec.ValidationError as error:
        raise InputError(*problems, readable(error)) from None
    if problems:
        raise InputError(*problems)
    return groups


def status_of(document: dict[str, Any]) -> str:
    data = document.get("data")
    status = data.get("status") if isinstance(data, dict) else None
    if not isinstance(status, str):
        name = str((document.get("metadata") or {}).get("name")) if isinstance(document.get("metadata"), dict) else ""
        raise InputError(f"ConfigMap {name}: $.data.status: expected what cluster-autoscaler writes there, found none.")
    return status
