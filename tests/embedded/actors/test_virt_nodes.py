"""Which nodes carry virtual machines, whether they had virt-handlers before, and whether guests are emulated."""

from __future__ import annotations

import pytest

from wukong.embedded.actors.kubevirt import virt_nodes
from wukong.embedded.world.objects import Node, read
from wukong.ports import Document
from wukong.state import State

SCHEDULABLE = "kubevirt.io/schedulable"
HERE = {SCHEDULABLE: "true", "host-model-cpu.node.kubevirt.io/hollow": "true"}
THEIRS = {SCHEDULABLE: "true", "host-model-cpu.node.kubevirt.io/Skylake": "true"}
KVM = {"devices.kubevirt.io/kvm": "1k"}


def a_state(*nodes: tuple[dict[str, str], Document]) -> State:
    state = State()
    for number, (labels, allocatable) in enumerate(nodes):
        meta = {"name": f"n{number}", "uid": f"n{number}", "labels": labels}
        node = read("Node", {"metadata": meta, "spec": {}, "status": {"allocatable": allocatable}})
        assert isinstance(node, Node)
        state.apply("ADDED", node, "Node")
    return state


@pytest.mark.parametrize(
    ("nodes", "has_own", "emulates"),
    [
        ((), False, False),
        ((({}, {}),), False, False),
        ((({SCHEDULABLE: "false"}, {}),), False, False),
        (((HERE, KVM),), False, False),
        (((HERE, {}),), False, False),  # labelled here: they get kvm in a moment
        (((THEIRS, KVM),), True, False),
        (((THEIRS, {}),), True, True),
        (((THEIRS, {}), (THEIRS, KVM)), True, False),
        ((({}, {}), (THEIRS, {})), True, True),
        ((({SCHEDULABLE: "false"}, KVM), (THEIRS, {})), True, True),
    ],
)
def test_guests_are_emulated_where_nodes_had_handlers_and_none_offers_kvm(
    nodes: tuple[tuple[dict[str, str], Document], ...], has_own: bool, emulates: bool
) -> None:
    state = a_state(*nodes)
    assert (virt_nodes.has_own_handlers(state), virt_nodes.emulates(state)) == (has_own, emulates)


def test_what_a_node_offers_is_kept_and_the_devices_are_added() -> None:
    devices = {"devices.kubevirt.io/kvm": "1k", "devices.kubevirt.io/tun": "1k", "devices.kubevirt.io/vhost-net": "1k"}
    assert virt_nodes.build_amounts({"cpu": "8"}) == {"ephemeral-storage": "100Gi", "cpu": "8", **devices}
    said = {"ephemeral-storage": "5Gi", "devices.kubevirt.io/kvm": "3"}
    assert virt_nodes.build_amounts(said) == {"ephemeral-storage": "5Gi", **devices}


@pytest.mark.parametrize(("labels", "expected"), [({}, "amd64"), ({"kubernetes.io/arch": "arm64"}, None)])
def test_labels_are_those_of_the_node_labeller_and_an_architecture_where_there_is_none(
    labels: dict[str, str], expected: str | None
) -> None:
    node = a_state((labels, {})).all(Node)[0]
    built = virt_nodes.build_labels(node)
    assert built.pop("kubernetes.io/arch", None) == expected
    assert built == {
        "kubevirt.io/schedulable": "true",
        "machine-type.node.kubevirt.io/q35": "true",
        "host-model-cpu.node.kubevirt.io/hollow": "true",
        "cpu-model-migration.node.kubevirt.io/hollow": "true",
    }
