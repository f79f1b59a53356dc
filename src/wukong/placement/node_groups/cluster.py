"""The node groups that a cluster tells of by itself: Karpenter's NodePools, and what cluster-autoscaler writes. Pure.

Called by `wukong plan` where no file of groups is given. What cannot be read is left out, and a note says so: nobody
who asks for a plan has written it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from wukong.api.core import Node
from wukong.api.kinds import CONFIG_MAPS, KINDS, NODE_CLAIMS, NODE_POOLS
from wukong.api.node_groups import NodeGroup
from wukong.api.resources import Key
from wukong.errors import InputError
from wukong.placement.node_groups.file import (
    STATUS_NAME,
    NodeGroupsFile,
    leave_out_wrong,
    rename_doubles,
    status_of,
)
from wukong.placement.node_groups.karpenter import NodeClaim, read_node_pools
from wukong.placement.node_groups.status_config_map import read_status

STATUS_KEY = Key("kube-system", STATUS_NAME)


def tells_node_groups(document: dict[str, Any]) -> bool:
    """Whether an object of a cluster is one of those that `read_cluster_groups` reads."""
    kind = _kind_of(document)
    if kind == CONFIG_MAPS.group_kind:
        meta = document.get("metadata")
        return isinstance(meta, dict) and meta.get("name") == STATUS_NAME
    return kind in (NODE_POOLS.group_kind, NODE_CLAIMS.group_kind)


def read_cluster_groups(documents: Sequence[dict[str, Any]], nodes: Sequence[Node]) -> NodeGroupsFile:
    """The groups of such objects, as far as they can be read; `nodes` are those of the cluster."""
    notes: list[str] = []
    claims = [
        document for document in documents if _kind_of(document) == NODE_CLAIMS.group_kind and _is_readable(document)
    ]
    groups = [group for document in documents for group in _read(document, claims, nodes, notes)]
    return NodeGroupsFile(leave_out_wrong(rename_doubles(groups), notes), list(dict.fromkeys(notes)))


def _read(
    document: dict[str, Any], claims: Sequence[dict[str, Any]], nodes: Sequence[Node], notes: list[str]
) -> Iterator[NodeGroup]:
    try:
        if _kind_of(document) == NODE_POOLS.group_kind:
            yield from read_node_pools([document, *claims], nodes, notes)
        elif _kind_of(document) == CONFIG_MAPS.group_kind:
            yield from read_status(status_of(document), nodes, notes)
    except InputError as error:
        notes.append(f"node groups are left out: {error}")


def _kind_of(document: dict[str, Any]) -> str:
    kind, version = document.get("kind"), document.get("apiVersion")
    return KINDS.group_kind_named(kind, version if isinstance(version, str) else "") if isinstance(kind, str) else ""


def _is_readable(document: dict[str, Any]) -> bool:
    try:
        msgspec.convert(document, NodeClaim)
    except msgspec.ValidationError:
        return False
    return True
