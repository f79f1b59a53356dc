"""Files of node groups: our own format, cluster-autoscaler's status in both of its formats, Karpenter's NodePools."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wukong.api.core import Node, NodeSpec, NodeStatus, Quantities, Taint
from wukong.api.meta import ObjectMeta
from wukong.api.node_groups import NodeGroup
from wukong.errors import InputError
from wukong.placement.node_groups.file import read_node_groups
from wukong.placement.node_groups.shapes import Shape, find_shape

TEXT_STATUS = """Cluster-autoscaler status at 2023-05-01 10:00:00 +0000 UTC:
Cluster-wide:
  Health:      Healthy (ready=3 unready=0 notStarted=0 registered=3 longUnregistered=0)
NodeGroups:
  Name:        eks-blue-2ac1d9
  Health:      Healthy (ready=2 unready=0 registered=2 cloudProviderTarget=2 (minSize=1, maxSize=7))
               LastProbeTime: 2023-05-01 10:00:00 +0000 UTC
  ScaleUp:     NoActivity (ready=2 cloudProviderTarget=2)

  Name:        eks-nobody-77
  Health:      Healthy (ready=0 unready=0 registered=0 cloudProviderTarget=0 (minSize=0, maxSize=3))
"""
YAML_STATUS = """
time: 2026-11-01 10:00:00.1 +0000 UTC
autoscalerStatus: Running
nodeGroups:
- name: eks-blue-2ac1d9
  health:
    status: Healthy
    nodeCounts: {registered: {total: 2, ready: 2}}
    cloudProviderTarget: 2
    minSize: 1
    maxSize: 7
- name: eks-nobody-77
  health: {status: Healthy, maxSize: 3}
"""


def a_node(name: str, cpu: str = "4", **labels: str) -> Node:
    keys = {"nodegroup": "eks.amazonaws.com/nodegroup", "type": "node.kubernetes.io/instance-type"}
    keys |= {"pool": "karpenter.sh/nodepool", "zone": "topology.kubernetes.io/zone"}
    named = {keys.get(key, key): value for key, value in labels.items()}
    amounts: Quantities = {"cpu": cpu, "memory": "16Gi", "pods": "58"}
    return Node(
        metadata=ObjectMeta(name=name, labels={"kubernetes.io/hostname": name, **named}),
        spec=NodeSpec(
            taints=[
                Taint(key="node.kubernetes.io/unreachable", effect="NoExecute"),
                Taint(key="dedicated", effect="NoSchedule"),
            ]
        ),
        status=NodeStatus(capacity=amounts, allocatable={**amounts, "cpu": "3900m"}),
    )


def config_map(status: str) -> str:
    return json.dumps({"kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"status": status}})


def problems_of(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_node_groups(text)
    return list(caught.value.problems)


def test_both_formats_of_the_status_tell_the_same() -> None:
    nodes = [a_node("a", nodegroup="blue", zone="x"), a_node("b", nodegroup="blue", zone="x"), a_node("c", "8")]
    groups, notes = read_node_groups(config_map(TEXT_STATUS), nodes)
    assert (groups, notes) == read_node_groups(config_map(YAML_STATUS), nodes)
    (blue,) = groups
    assert (blue.name, blue.min, blue.max) == ("eks-blue-2ac1d9", 1, 7)
    assert blue.match_labels == {"eks.amazonaws.com/nodegroup": "blue"}
    assert blue.template.allocatable["cpu"] == "3900m"
    assert "kubernetes.io/hostname" not in blue.template.labels
    assert blue.template.labels["topology.kubernetes.io/zone"] == "x"
    assert [taint.key for taint in blue.template.taints] == ["dedicated"]
    assert len(notes) == 1
    assert "eks-nobody-77 is left out" in notes[0]


def test_the_longest_name_of_a_pool_tells_its_group() -> None:
    nodes = [a_node("a", "2", nodegroup="web"), a_node("b", "8", nodegroup="web-large")]
    status = "nodeGroups: [{name: eks-web-large-1, health: {maxSize: 2}}, {name: eks-web-2, health: {maxSize: 2}}]"
    groups, _ = read_node_groups(config_map(status), nodes)
    assert [group.template.capacity["cpu"] for group in groups] == ["8", "2"]


def a_pool(name: str = "default", *requirements: dict[str, Any], **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"team": "a"}}, "spec": {"requirements": list(requirements)}}
    return {"kind": "NodePool", "metadata": {"name": name}, "spec": {"template": template, **spec}}


def require(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


def read_pools(*documents: dict[str, Any], nodes: list[Node] | None = None) -> tuple[dict[str, NodeGroup], list[str]]:
    groups, notes = read_node_groups(json.dumps({"kind": "List", "items": list(documents)}), nodes or [])
    return {group.name: group for group in groups}, notes


def test_a_node_pool_is_a_group_for_each_instance_type_and_zone() -> None:
    types = require("node.kubernetes.io/instance-type", "m6i.large", "m6i.2xlarge", "odd.one")
    zones = require("topology.kubernetes.io/zone", "a", "b")
    spot = require("karpenter.sh/capacity-type", "spot", "on-demand")
    nodes = [a_node("n", "8", pool="default", type="m6i.2xlarge", zone="a")]
    pool = a_pool("default", types, zones, spot, limits={"cpu": "20"}, weight=5)
    groups, notes = read_pools(pool, nodes=nodes)
    assert list(groups) == [f"default-m6i-{size}-{zone}" for size in ("large", "2xlarge") for zone in ("a", "b")]
    large, huge = groups["default-m6i-large-a"], groups["default-m6i-2xlarge-a"]
    assert (large.max, huge.max, groups["default-m6i-2xlarge-b"].max) == (6, 2, 1)  # 12 of 20 cpu are left
    assert large.weight == 5
    assert large.template.capacity["cpu"] == "2000m"
    assert huge.template.allocatable["cpu"] == "3900m"  # as the node that is there says
    assert large.template.labels["team"] == "a"
    assert large.template.labels["karpenter.sh/capacity-type"] == "spot"
    assert large.price_per_hour == pytest.approx(0.096 * 0.35)
    assert large.has_node({**large.template.labels})
    assert {group.node_pool for group in groups.values()} == {"default"}
    assert huge.pool_limits == {"cpu": "20"}  # of all of them together
    assert any("odd.one is left out" in note for note in notes)


def test_a_pool_that_names_no_types_has_those_that_are_there() -> None:
    claim = {
        "kind": "NodeClaim",
        "metadata": {"name": "c", "labels": {"node.kubernetes.io/instance-type": "odd.one"}},
        "status": {"capacity": {"cpu": "3"}, "allocatable": {"cpu": "2"}},
    }
    groups, notes = read_pools(a_pool(), a_pool("empty"), claim, nodes=[a_node("n", pool="default", type="odd.one")])
    assert list(groups) == ["default-odd-one"]
    assert any("NodePool empty is left out" in note for note in notes)
    named, _ = read_pools(a_pool("p", require("node.kubernetes.io/instance-type", "odd.one")), claim)
    assert named["p-odd-one"].template.allocatable == {"cpu": "2"}


def test_one_absurd_pool_does_not_hurt_another() -> None:
    types = require("node.kubernetes.io/instance-type", "c5.large")
    groups, notes = read_pools(a_pool("bad", types, limits={"cpu": "many"}), a_pool("good", types))
    assert list(groups) == ["good-c5-large"]
    assert any("NodePool bad is left out" in note for note in notes)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("m6i.2xlarge", Shape(8, 32)),
        ("c7g.large", Shape(2, 4)),
        ("r5.xlarge", Shape(4, 32)),
        ("n2-highmem-8", Shape(8, 64)),
        ("Standard_D4s_v5", Shape(4, 16)),
        ("p3.2xlarge", None),
        ("", None),
    ],
)
def test_the_name_of_an_instance_type_tells_what_it_is_like(name: str, shape: Shape | None) -> None:
    assert find_shape(name) == shape


def test_our_own_format_is_read_and_every_problem_of_it_told_at_once() -> None:
    text = "nodeGroups: [{name: a, min: 1, max: 3, pricePerHour: 0.2, template: {capacity: {cpu: 4}}}]"
    (group,) = read_node_groups(text).groups
    assert (group.name, group.min, group.max, group.price_per_hour, group.boot_seconds) == ("a", 1, 3, 0.2, 60)
    wrong = (
        "nodeGroups: [{name: A_b, min: 4, max: 3, bootSeconds: -1, pricePerHour: .nan, colour: red, "
        "poolLimits: {cpu: some}, "
        "template: {capacity: {cpu: much}, taints: [{key: k, effect: Nope}], labels: {'a b': c}}}, "
        "{name: x, max: 1}, {name: x, max: 1}]"
    )
    problems = "\n".join(problems_of(wrong))
    for place in (
        ".name",
        ".min",
        ".bootSeconds",
        ".pricePerHour",
        ".colour",
        ".poolLimits: expected only together with nodePool",
        ".poolLimits.cpu",
        ".capacity.cpu",
        ".taints[0].effect",
        ".labels",
    ):
        assert f"$.nodeGroups[0]{place}" in problems or f"$.nodeGroups[0].template{place}" in problems, place
    assert 'the name "x" is there twice' in problems


@pytest.mark.parametrize(
    "text", ["", "[1]", "a: 1", "kind: Pod", "nodeGroups: 3", "kind: ConfigMap", "{kind: NodePool, spec: 1}"]
)
def test_other_files_are_refused_with_what_is_expected(text: str) -> None:
    assert any("xpected" in problem or "missing" in problem for problem in problems_of(text))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["kind", "items", "metadata", "name", "spec", "template", "requirements", "data", "status"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    ),
    st.sampled_from(["NodePool", "NodeClaim", "ConfigMap", ""]),
)
def test_whatever_a_file_says_is_read_or_refused(document: Any, kind: str) -> None:
    if isinstance(document, dict) and kind:
        document["kind"] = kind
    with contextlib.suppress(InputError):  # anything else is a mistake of ours
        read_node_groups(json.dumps(document), [a_node("a", nodegroup="blue")])
