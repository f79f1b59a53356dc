"""Labels and devices of nodes that carry virtual machines, and what becomes of them when virt-handler falls silent.

Plays the node labeller and the heartbeat of virt-handler, and virt-controller's node controller (pkg/virt-controller/
watch/node of KubeVirt 1.7): a node whose virt-handler has been silent for 5 minutes is marked unschedulable. That its
instances fail when their pods are gone, instances.py sees for itself. Nothing is done in a cluster without virtual
machines. The key without a name stands for all nodes, when a virtual machine comes.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.actions import DONE, Action, Outcome, Patch
from wukong.api.kinds import NODES, VIRTUAL_MACHINES
from wukong.api.resources import Key
from wukong.embedded.actors.kubelet.controller import is_silent
from wukong.embedded.actors.kubevirt import virt_nodes
from wukong.embedded.actors.kubevirt.patches import HANDLER
from wukong.embedded.store.documents import value_at
from wukong.embedded.store.kubevirt import names
from wukong.embedded.world.objects import Node, VirtualMachine
from wukong.ports import Document, PatchBody
from wukong.state import Change, State
from wukong.state.controller import Watch

ALL_NODES = Key("", "")
HEARTBEAT_SECONDS = 300.0


def _key_of_node(change: Change, state: State) -> Iterable[Key]:
    return (change.key,) if state.of(VirtualMachine) else ()


def _key_of_all_nodes(change: Change, state: State) -> Iterable[Key]:
    return (ALL_NODES,) if change.old is None else ()


class NodeLabels:
    name = "virt-node"
    watches = (
        Watch(NODES, _key_of_node),
        Watch(VIRTUAL_MACHINES, _key_of_all_nodes),
    )

    def __init__(self) -> None:
        self._silent_since: dict[str, float] = {}  # node → when its virt-handler was first missed

    def copy_memory(self, source: NodeLabels, _: State) -> None:
        self._silent_since = dict(source._silent_since)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        if key == ALL_NODES:
            if not state.of(VirtualMachine) or virt_nodes.has_own_handlers(state):
                return DONE
            actions = [action for node in state.all(Node) for action in self._label(node)]
            return Outcome(tuple(actions))
        node = state.get(Node, key)
        if node is None:
            self._silent_since.pop(key.name, None)
            return DONE
        if virt_nodes.is_unlabelled(node):
            return DONE if virt_nodes.has_own_handlers(state) else Outcome(tuple(self._label(node)))
        return self._follow_heartbeat(node, now)

    def _label(self, node: Node) -> list[Action]:
        """Give a node that nobody has labelled what virt-handler gives it."""
        if not virt_nodes.is_unlabelled(node) or is_silent(node):
            return []
        key = Key("", node.metadata.name)
        capacity: Document = value_at(node.document, "status.capacity") or {}
        allocatable: Document = value_at(node.document, "status.allocatable") or capacity
        build = virt_nodes.build_amounts
        status: Document = {"status": {"allocatable": build(allocatable), "capacity": build(capacity)}}
        labels: Document = {"metadata": {"uid": node.metadata.uid, "labels": virt_nodes.build_labels(node)}}
        return [
            Patch(NODES, key, PatchBody("merge", status, manager=HANDLER), "status"),
            Patch(NODES, key, PatchBody("merge", labels, manager=HANDLER)),
        ]

    def _follow_heartbeat(self, node: Node, now: float) -> Outcome:
        """Mark a node whose virt-handler is not heard of; take that back when it is. Only of nodes labelled here."""
        name, schedulable = node.metadata.name, node.metadata.labels.get(names.SCHEDULABLE_LABEL)
        if not is_silent(node):
            self._silent_since.pop(name, None)
            is_marked = schedulable == "false" and virt_nodes.is_labelled_here(node)
            return Outcome((_mark(node, "true"),)) if is_marked else DONE
        left = self._silent_since.setdefault(name, now) + HEARTBEAT_SECONDS - now
        if left > 0:
            return Outcome(requeue_after=left)
        return Outcome((_mark(node, "false"),)) if schedulable == "true" else DONE


def _mark(node: Node, schedulable: str) -> Patch:
    body = {"metadata": {"uid": node.metadata.uid, "labels": {names.SCHEDULABLE_LABEL: schedulable}}}
    return Patch(NODES, Key("", node.metadata.name), PatchBody("strategic", body, manager=HANDLER))
