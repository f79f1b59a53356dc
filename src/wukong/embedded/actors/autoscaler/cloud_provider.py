"""The cloud: a node that was asked for boots for a while, and then is there. The other half of the autoscaler.

In a real cluster this is a provider of machines and the kubelet on each of them. It never fails to deliver.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from wukong.actions import DONE, Create, Delete, Outcome
from wukong.api.kinds import NODE_REQUESTS, NODES
from wukong.api.node_groups import NodeGroup, NodeRequest
from wukong.api.resources import Key
from wukong.embedded.actors.autoscaler.new_node import build_node
from wukong.embedded.world.objects import Node
from wukong.state import State
from wukong.state.controller import NodeRight, Watch, no_keys


class CloudProvider:
    name = "cloud-provider"
    node_rights: ClassVar[frozenset[NodeRight]] = frozenset({NodeRight.CREATE_REQUESTED})
    watches = (Watch(NODE_REQUESTS), Watch(NODES, no_keys))

    def __init__(self, groups: Sequence[NodeGroup]) -> None:
        self.node_groups = {group.name: group for group in groups}

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        request = state.get(NodeRequest, key)
        group = self.node_groups.get(request.group) if request is not None else None
        if request is None or group is None:
            return DONE
        left = request.requested_at + group.boot_seconds - now
        if left > 0:
            return Outcome(requeue_after=left)
        is_delivered = Delete(NODE_REQUESTS, key, uid=request.metadata.uid)
        if state.get(Node, key) is not None:
            return Outcome((is_delivered,))
        return Outcome((Create(NODES, build_node(group, key.name)), is_delivered))
