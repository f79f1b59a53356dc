"""Node groups in detail: the bounds of what somebody writes, machines by their names, and what is left of a pool."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wukong.api.core import Node, NodeSpec, NodeStatus, Quantities, Taint
from wukong.api.meta import ObjectMeta
from wukong.api.node_groups import NodeGroup, NodeTemplate
from wukong.errors import InputError
from wukong.placement.node_groups.checks import check_group
from wukong.placement.node_groups.file import read_node_groups
from wukong.placement.node_groups.shapes import Shape, find_shape, template_of, template_of_shape, usable_name
from wukong.placement.node_groups.status_config_map import Limits, list_limits, read_status

TYPE, ZONE, POOL = "node.kubernetes.io/instance-type", "topology.kubernetes.io/zone", "karpenter.sh/nodepool"
CAPACITY = "karpenter.sh/capacity-type"


def places(**fields: Any) -> list[str]:
    """Where a group is wrong."""
    group = NodeGroup(**{"name": "a", "max": 3, **fields})
    return [problem.partition(": ")[0] for problem in check_group(group)]


def a_node(name: str, labels: dict[str, str] | None = None, /, *taints: str, **amounts: str) -> Node:
    quantities: Quantities = {"cpu": "4", "memory": "16Gi", **amounts}
    return Node(
        metadata=ObjectMeta(name=name, labels=labels or {}),
        spec=NodeSpec(taints=[Taint(key=key, effect="NoSchedule") for key in taints]),
        status=NodeStatus(capacity=quantities, allocatable=quantities),
    )


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"name": "a" * 50}, ""),
        ({"name": "a" * 51}, ".name"),
        ({"name": "a.b-1"}, ""),
        ({"name": "-a"}, ".name"),
        ({"min": 0, "max": 0}, ""),
        ({"min": 3, "max": 3}, ""),
        ({"min": 4, "max": 3}, ".min"),
        ({"min": -1}, ".min"),
        ({"max": 100_000}, ""),
        ({"max": 100_001}, ".max"),
        ({"boot_seconds": 0}, ""),
        ({"boot_seconds": 86_400}, ""),
        ({"boot_seconds": 86_401}, ".bootSeconds"),
        ({"boot_seconds": -1}, ".bootSeconds"),
        ({"price_per_hour": 0}, ""),
        ({"price_per_hour": -0.1}, ".pricePerHour"),
        ({"price_per_hour": float("inf")}, ".pricePerHour"),
        ({"match_labels": {"a/b": "c"}}, ""),
        ({"match_labels": {"a b": "c"}}, ".matchLabels"),
        ({"match_labels": {"a": "b c"}}, ".matchLabels"),
        ({"template": NodeTemplate(labels={"a": "b c"})}, ".template.labels"),
        ({"template": NodeTemplate(taints=[Taint(key="k", value="v w", effect="NoSchedule")])}, ".template.taints[0]"),
        ({"template": NodeTemplate(taints=[Taint(key="k l", effect="NoSchedule")])}, ".template.taints[0]"),
        ({"template": NodeTemplate(capacity={"cpu": 0})}, ""),
        ({"template": NodeTemplate(capacity={"cpu": -1})}, ".template.capacity.cpu"),
        ({"template": NodeTemplate(allocatable={"cpu": "-1"})}, ".template.allocatable.cpu"),
        ({"template": NodeTemplate(allocatable={"cpu": "x"})}, ".template.allocatable.cpu"),
    ],
    ids=str,
)
def test_a_group_is_right_up_to_its_bounds(fields: dict[str, Any], place: str) -> None:
    assert places(**fields) == ([place] if place else [])


@pytest.mark.parametrize("effect", ["NoSchedule", "PreferNoSchedule", "NoExecute"])
def test_a_taint_has_one_of_three_effects(effect: str) -> None:
    assert places(template=NodeTemplate(taints=[Taint(key="k", effect=effect)])) == []


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("c5.large", Shape(2, 4)), ("m5.xlarge", Shape(4, 16)), ("r6gd.16xlarge", Shape(64, 512)),
        ("m7i-flex.large", Shape(2, 8)), ("t3.large", None), ("m5.metal", None),
        ("e2-standard-4", Shape(4, 16)), ("n2d-highcpu-8", Shape(8, 8)), ("c3-highmem-4", Shape(4, 32)),
        ("Standard_E8ds_v4", Shape(8, 64)), ("Standard_F2s_v2", Shape(2, 4)), ("Standard_D4s_v7", None),
    ],
)  # fmt: skip
def test_families_are_sold_in_one_proportion(name: str, shape: Shape | None) -> None:
    assert find_shape(name) == shape


@pytest.mark.parametrize(
    ("cpus", "milli"), [(1, 940), (2, 1930), (3, 2925), (4, 3920), (5, 4917), (8, 7910), (64, 63770)]
)
def test_the_system_keeps_6_percent_of_the_first_core_and_less_of_each_later_one(cpus: int, milli: int) -> None:
    template = template_of_shape(Shape(cpus, 10))
    assert template.capacity == {"cpu": f"{cpus}000m", "memory": "10240Mi", "pods": 110}
    assert template.allocatable == {"cpu": f"{milli}m", "memory": "9216Mi", "pods": 110}


def test_a_template_is_like_the_commonest_of_the_nodes() -> None:
    labels = {"team": "a"}
    nodes = [a_node("x", labels, cpu="8"), a_node("y", labels), a_node("z", {**labels, "disk": "ssd"})]
    assert template_of(nodes).capacity["cpu"] == "4"
    assert template_of(nodes).labels == {"team": "a"}
    for change in ({"memory": "1Gi"}, {"cpu": "1"}):
        others = [a_node("a", **change), a_node("b"), a_node("c")]
        assert template_of(others).capacity == {"cpu": "4", "memory": "16Gi"}
    for key in (TYPE, ZONE):
        others = [a_node("a", {key: "odd"}, cpu="4"), a_node("b", {key: "usual"}), a_node("c", {key: "usual"})]
        assert template_of(others).labels == {key: "usual"}


def test_what_is_of_one_node_alone_is_left_out() -> None:
    labels = {"kubernetes.io/hostname": "host", "own": "x", "team": "a"}
    assert template_of([a_node("x", labels)]).labels == {"team": "a"}
    assert template_of([a_node("x", labels), a_node("y", labels)]).labels == {"own": "x", "team": "a"}


@pytest.mark.parametrize(
    "key",
    [
        *("node.kubernetes.io/not-ready", "node.cloudprovider.kubernetes.io/uninitialized", "karpenter.sh/disrupted"),
        *("ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler"),
    ],
)
def test_taints_that_come_and_go_are_not_those_of_a_group(key: str) -> None:
    assert [taint.key for taint in template_of([a_node("x", None, key, "dedicated")]).taints] == ["dedicated"]


@pytest.mark.parametrize(
    ("name", "usable"),
    [
        ("https://cloud/zones/a/instanceGroups/Pool_1", "pool-1"),
        ("-a-", "a"),
        ("a.b_c", "a-b-c"),
        ("_", "group"),
        ("a" * 60, "a" * 50),
        ("a" * 49 + "-b", "a" * 49),
    ],
)
def test_names_of_groups_become_names_of_nodes(name: str, usable: str) -> None:
    assert usable_name(name) == usable


def test_limits_of_a_status_are_read_where_they_are_whole() -> None:
    status = "nodeGroups: [{name: a, health: {minSize: 1, maxSize: 2}}, {name: b}, {health: {maxSize: 1}}, 5, "
    status += "{name: c, health: {minSize: x, maxSize: 2}}, {name: d, health: {maxSize: true}}, {name: '', health: {}}]"
    assert list_limits(status) == [Limits("a", 1, 2), Limits("b", 0, 0)]
    text = "NodeGroups:\n  Health: (minSize=9, maxSize=9)\n  Name:  a\n  Health: (minSize=1, maxSize=2)\n"
    assert list_limits(text + "  ScaleUp: (minSize=3, maxSize=4)\n") == [Limits("a", 1, 2)]
    for empty in ("", "nodeGroups: []", "nodeGroups: 3", "NodeGroups:\n"):
        with pytest.raises(InputError, match="expected nodeGroups with minSize and maxSize"):
            list_limits(empty)


@pytest.mark.parametrize(
    "label",
    [
        *("eks.amazonaws.com/nodegroup", "alpha.eksctl.io/nodegroup-name", "cloud.google.com/gke-nodepool"),
        *("kubernetes.azure.com/agentpool", "agentpool", "node.kubernetes.io/instancegroup"),
        "kops.k8s.io/instancegroup",
    ],
)
def test_every_cloud_labels_the_nodes_of_a_group(label: str) -> None:
    status = "nodeGroups: [{name: https://cloud/grp-blue-1, health: {minSize: 1, maxSize: 2}}]"
    notes: list[str] = []
    (group,) = read_status(status, [a_node("x", {label: "blue"}), a_node("y", {label: "blu"}, cpu="9")], notes)
    assert (group.name, group.min, group.max, notes) == ("grp-blue-1", 1, 2, [])
    assert group.match_labels == {label: "blue"}
    assert group.template.capacity["cpu"] == "4"


# Karpenter ---------------------------------------------------------------------------------------------------------


def a_pool(*requirements: tuple[str, str, list[str]], **spec: Any) -> dict[str, Any]:
    entries = [{"key": key, "operator": operator, "values": values} for key, operator, values in requirements]
    template = {"spec": {"requirements": entries, "taints": [{"key": "t", "effect": "NoSchedule"}]}}
    return {"kind": "NodePool", "metadata": {"name": "p"}, "spec": {"template": template, **spec}}


def read(pool: dict[str, Any], *nodes: Node) -> list[NodeGroup]:
    return read_node_groups(json.dumps(pool), nodes).groups


LARGE = (TYPE, "In", ["m5.large"])


@pytest.mark.parametrize(
    ("capacities", "capacity", "share"),
    [
        ([], "on-demand", 1.0),
        ([(CAPACITY, "In", ["on-demand"])], "on-demand", 1.0),
        ([(CAPACITY, "In", ["reserved"])], "reserved", 1.0),
        ([(CAPACITY, "In", ["on-demand", "spot"])], "spot", 0.35),
        ([(CAPACITY, "NotIn", ["spot"])], "on-demand", 1.0),
        ([(CAPACITY, "In", ["on-demand", "spot"]), (CAPACITY, "In", ["on-demand"])], "on-demand", 1.0),
    ],
)
def test_of_capacities_that_a_pool_allows_the_cheapest_is_taken(
    capacities: list[tuple[str, str, list[str]]], capacity: str, share: float
) -> None:
    (group,) = read(a_pool(LARGE, *capacities))
    assert group.template.labels[CAPACITY] == capacity
    assert group.price_per_hour == pytest.approx(0.096 * share)
    assert [taint.key for taint in group.template.taints] == ["t"]


def test_a_label_that_can_have_one_value_is_on_every_node() -> None:
    (group,) = read(a_pool(LARGE, ("arch", "In", ["arm64"]), ("os", "In", ["a", "b"]), ("gpu", "Exists", [])))
    labels = group.template.labels
    assert (labels["arch"], "os" in labels, "gpu" in labels, ZONE in labels) == ("arm64", False, False, False)
    assert group.match_labels == {POOL: "p", TYPE: "m5.large"}


@pytest.mark.parametrize(
    ("limits", "nodes", "most"),
    [
        ({}, 0, 1000),
        ({}, 2, 1002),
        ({"cpu": "5"}, 0, 2),
        ({"cpu": "4"}, 0, 2),
        ({"cpu": "1"}, 0, 0),
        ({"cpu": "5"}, 1, 2),
        ({"cpu": "4", "memory": "8Gi"}, 0, 1),
        ({"cpu": "1"}, 2, 2),
        ({"example.com/gpu": "0"}, 0, 1000),
    ],
)
def test_limits_of_a_pool_leave_room_for_so_many_nodes(limits: dict[str, str], nodes: int, most: int) -> None:
    labels = {POOL: "p", TYPE: "m5.large"}
    members = [a_node(f"n{number}", labels, cpu="2", memory="8Gi") for number in range(nodes)]
    (group,) = read(a_pool(LARGE, limits=limits), *members, a_node("other", {TYPE: "m5.large"}, cpu="2", memory="8Gi"))
    assert group.max == most


def test_zones_are_those_that_are_named_or_else_those_of_the_nodes() -> None:
    nodes = [a_node(zone, {POOL: "p", TYPE: "m5.large", ZONE: zone}) for zone in "ba"]
    assert [group.name for group in read(a_pool(LARGE), *nodes)] == ["p-m5-large-a", "p-m5-large-b"]
    named = read(a_pool(LARGE, (ZONE, "In", ["c"])), *nodes)
    assert [group.match_labels[ZONE] for group in named] == ["c"]


def test_a_machine_of_another_pool_tells_what_a_type_is_like() -> None:
    (group,) = read(a_pool((TYPE, "In", ["odd.one"])), a_node("n", {POOL: "q", TYPE: "odd.one"}, cpu="7"))
    assert (group.template.capacity["cpu"], group.max) == ("7", 1000)


def test_groups_whose_names_were_cut_alike_are_numbered() -> None:
    long = "z" * 60
    types = (TYPE, "In", [f"{long}1", f"{long}2"])
    nodes = [a_node(name, {TYPE: name}) for name in (f"{long}1", f"{long}2")]
    names = [group.name for group in read(a_pool(types), *nodes)]
    assert names == ["p-" + "z" * 48, "p-" + "z" * 42 + "-2"]


def test_a_pool_that_cannot_be_read_is_named() -> None:
    with pytest.raises(InputError, match="NodePool bad: "):
        read({"kind": "NodePool", "metadata": {"name": "bad"}, "spec": 1})
    with pytest.raises(InputError, match="found nothing"):
        read_node_groups("")
    with pytest.raises(InputError, match=r"ConfigMap x: \$\.data\.status"):
        read_node_groups("{kind: ConfigMap, metadata: {name: x}, data: {}}")
