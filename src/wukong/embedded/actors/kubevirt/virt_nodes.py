"""Which nodes carry virtual machines: what virt-handler and its node labeller put on them. Pure look-ups and documents.

A cluster that has virtual machines has virt-handlers. Where nodes already say so (a snapshot of a cluster that has
KubeVirt) they are left as they are, and so are those that lack the labels. Else every node is given them, unless it
says itself `kubevirt.io/schedulable: "false"`. Nodes labelled here are known by their cpu model.
"""

from __future__ import annotations

from wukong.embedded.actors.kubevirt.launcher_resources import KVM, TUN, VHOST_NET
from wukong.embedded.store.documents import value_at
from wukong.embedded.store.kubevirt import names
from wukong.embedded.world.objects import Node
from wukong.ports import Document
from wukong.state import State

MODEL = "hollow"  # the cpu model of all nodes labelled here: guests migrate between any two
LABELS = {
    names.SCHEDULABLE_LABEL: "true",
    f"{names.MACHINE_TYPE_PREFIX}{names.MACHINE_TYPE}": "true",
    f"{names.HOST_MODEL_PREFIX}{MODEL}": "true",
    f"{names.MIGRATION_MODEL_PREFIX}{MODEL}": "true",
}
DEVICES = dict.fromkeys((KVM, TUN, VHOST_NET), "1k")
STORAGE = {"ephemeral-storage": "100Gi"}  # of a node that says nothing of it: no virt-launcher pod goes without
_ARCHITECTURE_LABEL = "kubernetes.io/arch"


def is_labelled_here(node: Node) -> bool:
    return f"{names.HOST_MODEL_PREFIX}{MODEL}" in node.metadata.labels


def is_unlabelled(node: Node) -> bool:
    """Whether nobody has said of this node whether it carries virtual machines."""
    return names.SCHEDULABLE_LABEL not in node.metadata.labels


def has_own_handlers(state: State) -> bool:
    """Whether the nodes of this cluster had virt-handlers before anything was labelled here."""
    for node in state.of(Node).values():
        if isinstance(node, Node) and node.metadata.labels.get(names.SCHEDULABLE_LABEL) == "true":
            return not is_labelled_here(node)
    return False


def emulates(state: State) -> bool:
    """Whether guests run without kvm: nodes have virt-handlers of their own, and none offers it."""
    handled = False
    for node in state.of(Node).values():
        if not isinstance(node, Node) or node.metadata.labels.get(names.SCHEDULABLE_LABEL) != "true":
            continue
        if is_labelled_here(node) or KVM in (value_at(node.document, "status.allocatable") or {}):
            return False
        handled = True
    return handled


def build_amounts(amounts: Document) -> Document:
    """What a node offers, or holds, with what the device plugins of virt-handler add."""
    return {**STORAGE, **amounts, **DEVICES}


def build_labels(node: Node) -> Document:
    """The labels that virt-handler and the node labeller add."""
    arch = {} if _ARCHITECTURE_LABEL in node.metadata.labels else {_ARCHITECTURE_LABEL: names.ARCHITECTURE}
    return {**LABELS, **arch}
