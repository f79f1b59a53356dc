"""New nodes of a group: the document of one, and what one is like for the engine, with the daemons that come with it.

Called by cloud_provider.py and scenario/play/steps.py, and by scale_up.py, which tries out how many are needed.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from wukong.api.core import Pod
from wukong.api.meta import ObjectMeta, OwnerReference
from wukong.api.node_groups import NodeGroup, NodeTemplate
from wukong.embedded.actors.daemon_set.eligibility import assess_node
from wukong.embedded.actors.daemon_set.pods import added_tolerations
from wukong.embedded.world import objects
from wukong.embedded.world.objects import DaemonSet
from wukong.engine import Snapshot
from wukong.engine.new_nodes import NewNode
from wukong.engine.nodes import HOSTNAME, NodeRow
from wukong.placement.prices import PRICE_LABEL
from wukong.ports import Document
from wukong.state import State

DEFAULT_CAPACITY = {"cpu": "4", "memory": "16Gi", "pods": "110"}
_AFTER_ALL_NAMES = "~"  # the rows of all other nodes stay where they are


def build_node(group: NodeGroup | None, name: str) -> Document:
    """The Node object of a new node of a group, or of none, ready from the beginning."""
    template = group.template if group is not None else NodeTemplate()
    labels = {HOSTNAME: name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    if group is not None and group.price_per_hour is not None:
        labels[PRICE_LABEL] = f"{group.price_per_hour:g}"  # where whoever adds up costs looks for it
    labels |= {**template.labels, **(group.own_labels if group is not None else {})}
    meta: Document = {"name": name, "labels": labels}
    if template.annotations:
        meta["annotations"] = dict(template.annotations)
    capacity = {**DEFAULT_CAPACITY, **{resource: str(amount) for resource, amount in template.capacity.items()}}
    allocatable = {**capacity, **{resource: str(amount) for resource, amount in template.allocatable.items()}}
    taints = [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in template.taints]
    return {
        "metadata": meta,
        "spec": {"taints": taints} if taints else {},
        "status": {
            "capacity": capacity,
            "allocatable": allocatable,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def make_new_node(group: NodeGroup, state: State, snapshot: Snapshot) -> NewNode:
    """A new node of the group as the engine counts it, with a pod of each DaemonSet that would run there."""
    node = objects.read("Node", build_node(group, _AFTER_ALL_NAMES + group.name))
    assert isinstance(node, objects.Node), f"whoever read the group {group.name} has checked it"
    return NewNode(NodeRow(node), tuple(snapshot.table.intern(pod) for pod in _list_daemons(node, state)))


def _list_daemons(node: objects.Node, state: State) -> list[Pod]:
    daemons = []
    for daemon_set in state.all(DaemonSet):
        template = daemon_set.spec.template
        if template is None or daemon_set.metadata.deletion_timestamp or not assess_node(node, daemon_set).should_run:
            continue
        owner = OwnerReference(kind="DaemonSet", name=daemon_set.metadata.name, uid=daemon_set.metadata.uid)
        meta = ObjectMeta(
            name=daemon_set.metadata.name,
            namespace=daemon_set.metadata.namespace,
            labels=template.metadata.labels,
            owner_references=[owner],
        )
        tolerations = [*template.spec.tolerations, *added_tolerations(template.spec)]
        spec = replace(template.spec, tolerations=tolerations)
        daemons.append(Pod(metadata=meta, spec=spec))
    return daemons


def add_new_nodes(snapshot: Snapshot, new_nodes: Sequence[NewNode], first: int = 0) -> list[str]:
    """Add nodes and their daemons to a snapshot that may be changed, after all others. Returns their names.

    `first` is how many have been added before.
    """
    names = [f"{_AFTER_ALL_NAMES}{first + number:06}" for number in range(len(new_nodes))]
    snapshot.put_row(*(new.example.copy(name=name) for new, name in zip(new_nodes, names, strict=True)))
    for new_node, name in zip(new_nodes, names, strict=True):
        for number, daemon in enumerate(new_node.daemons):
            snapshot.assume_template(f"{name}/{number}", daemon, snapshot.row_of[name])
    return names
