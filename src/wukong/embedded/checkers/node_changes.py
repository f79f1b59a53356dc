"""No controller asks for, creates or deletes a node without the right to, or where its right does not hold.

A group is asked for no more nodes than it may have; nodes come only if they were asked for; and a node goes only when
all pods have left it but daemons, and its group keeps its minimum. As of pods, a right holds if it holds now or by the
mirror of the process that acted. What people do to nodes (the scenario, disturbances) needs no right.
"""

from __future__ import annotations

from typing import ClassVar

from wukong.api.core import Node
from wukong.api.kinds import NODE_REQUESTS, NODES
from wukong.api.meta import controller_of
from wukong.api.node_groups import NodeGroup, NodeRequest, find_group
from wukong.embedded.checkers.acting_controller import acting_controller
from wukong.embedded.checkers.findings import Findings
from wukong.state import Change, State
from wukong.state.controller import NodeRight, node_rights_of


class NodeChanges:
    kinds: ClassVar[frozenset[str]] = frozenset({NODES.group_kind, NODE_REQUESTS.group_kind})

    def __init__(self, findings: Findings) -> None:
        self.findings, self.world = findings, findings.world

    def fork(self, findings: Findings) -> NodeChanges:
        return NodeChanges(findings)

    def observe(self, change: Change) -> None:
        if change.group_kind == NODE_REQUESTS.group_kind and change.old is None:
            self._judge(change, NodeRight.REQUEST_OF_GROUP, "asked for")
        elif change.group_kind == NODES.group_kind and change.old is None:
            self._judge(change, NodeRight.CREATE_REQUESTED, "created")
        elif change.group_kind == NODES.group_kind and change.new is None:
            self._judge(change, NodeRight.DELETE_EMPTY, "deleted")

    def _judge(self, change: Change, right: NodeRight, deed: str) -> None:
        actor = acting_controller(self.world)
        if actor is None:
            return
        if right not in node_rights_of(actor.process.dispatch.controllers[actor.name]):
            self.findings.report(f"node {change.key.name}", f"{deed} by {actor.name}, whose business it is not")
            return
        problem = self._find_problem(change, right, self.world.state)
        if problem and self._find_problem(change, right, actor.mirror()):
            self.findings.report(f"node {change.key.name}", f"{deed} by {actor.name}, although {problem}")

    def _find_problem(self, change: Change, right: NodeRight, state: State) -> str:
        if right is NodeRight.CREATE_REQUESTED:
            return "" if state.get(NodeRequest, change.key) is not None else "nobody asked for it"
        if right is NodeRight.REQUEST_OF_GROUP:
            assert isinstance(change.new, NodeRequest)
            group = self._groups().get(change.new.group)
            names = self._list_names(group, state) | {change.key.name} if group is not None else set()
            return f"its group may have {group.max} nodes" if group is not None and len(names) > group.max else ""
        return self._find_reason_to_stay(change, state)

    def _find_reason_to_stay(self, change: Change, state: State) -> str:
        assert isinstance(change.old, Node)
        left = [pod for pod in state.pods_on(change.key.name) if not pod.is_finished]
        for pod in left:
            owner = controller_of(pod.metadata)
            if owner is None or owner.kind != "DaemonSet":
                return f"pod {pod.key} is there"
        group = find_group(self._groups().values(), change.old.metadata.labels)
        if group is None:
            return "it is of no group"
        staying = self._list_nodes(group, state) - {change.key.name}
        return f"its group must have {group.min} nodes" if len(staying) < group.min else ""

    def _list_nodes(self, group: NodeGroup, state: State) -> set[str]:
        groups = self._groups().values()
        nodes = (node.metadata for node in state.all(Node))
        return {meta.name for meta in nodes if find_group(groups, meta.labels) == group}

    def _list_names(self, group: NodeGroup, state: State) -> set[str]:
        """The nodes that a group has and those it was asked for."""
        requests = (request for request in state.all(NodeRequest) if request.group == group.name)
        return self._list_nodes(group, state) | {request.metadata.name for request in requests}

    def _groups(self) -> dict[str, NodeGroup]:
        """Those that somebody declares to scale."""
        return {
            name: group
            for process in self.world.processes
            for controller in process.dispatch.controllers.values()
            if node_rights_of(controller)
            for name, group in getattr(controller, "node_groups", {}).items()
        }
