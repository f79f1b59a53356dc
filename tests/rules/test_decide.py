"""The decision as a whole, the message and the cluster it is made on."""

import pytest
from msgspec.structs import replace

from rules.samples import a_cluster, a_node, a_pod
from wukong.api.core import Pod
from wukong.api.objects import Objects
from wukong.api.profile import default_profile
from wukong.api.versions import VERSIONS
from wukong.rules import Cluster, decide
from wukong.rules.message import format_fit_error

PROFILE = default_profile()


def test_scores_are_weighted_and_add_up() -> None:
    decision = decide(a_cluster(a_node("n2"), a_node("n1")), a_pod(cpu="1", memory="2Gi"), PROFILE)
    assert decision.feasible == ["n1", "n2"]
    assert {plugin: points["n1"] for plugin, points in decision.scores.items()} == {
        "DynamicResources": 0,
        "TaintToleration": 300,
        "NodeResourcesFit": 75,
        "NodeResourcesBalancedAllocation": 100,
        "ImageLocality": 0,
    }
    assert decision.final == {"n1": 475, "n2": 475}
    assert decision.best == ["n1", "n2"]


def test_newer_versions_show_their_own_zero_scores() -> None:
    decision = decide(a_cluster(a_node("n1"), a_node("n2")), a_pod(), default_profile(VERSIONS["1.37"]))
    assert decision.scores["VolumeBinding"] == {"n1": 0, "n2": 0}


def test_a_single_feasible_node_is_not_scored() -> None:
    decision = decide(a_cluster(a_node("n1"), a_node("n2", unschedulable=True)), a_pod(), PROFILE)
    assert decision.feasible == decision.best == ["n1"]
    assert (decision.scores, decision.final, decision.message) == ({}, {}, None)


def test_only_the_first_plugin_that_rejects_a_node_counts() -> None:
    node = a_node("n1", unschedulable=True, taints=[{"key": "x", "effect": "NoSchedule"}], cpu="0")
    decision = decide(a_cluster(node), a_pod(cpu="1"), PROFILE)
    assert decision.verdicts["n1"] == ("NodeUnschedulable", ("node(s) were unschedulable",), True)


@pytest.mark.parametrize(("minor", "plugin"), [("1.35", "NodeUnschedulable"), ("1.37", "NodeName")])
def test_since_1_37_the_node_name_is_asked_first(minor: str, plugin: str) -> None:
    cluster = a_cluster(a_node("n1", unschedulable=True))
    decision = decide(cluster, a_pod(nodeName="n2"), default_profile(VERSIONS[minor]))
    assert decision.verdicts["n1"].plugin == plugin


def test_filters_that_are_switched_off_are_not_asked() -> None:
    profile = replace(PROFILE, filters=("NodeResourcesFit",))
    assert decide(a_cluster(a_node(unschedulable=True)), a_pod(), profile).best == ["n1"]


def test_without_nodes_the_message_is_another() -> None:
    assert decide(a_cluster(), a_pod(), PROFILE).message == "no nodes available to schedule pods"


def test_the_message_counts_nodes_per_reason_and_sorts_them_as_text() -> None:
    small = [a_node(f"s{index}", cpu="1", memory="1Gi") for index in range(10)]
    tainted = [a_node(f"t{index}", taints=[{"key": "x", "effect": "NoSchedule"}]) for index in range(2)]
    decision = decide(a_cluster(*small, *tainted), a_pod(cpu="2", memory="2Gi"), PROFILE)
    assert decision.message == (
        "0/12 nodes are available: 10 Insufficient cpu, 10 Insufficient memory, 2 node(s) had untolerated taint(s). "
        "no new claims to deallocate, preemption: 0/12 nodes are available: "
        "12 Preemption is not helpful for scheduling."
    )


def test_the_newest_version_says_nothing_about_claims() -> None:
    decision = decide(a_cluster(a_node(cpu="1")), a_pod(cpu="2"), default_profile(VERSIONS["1.37"]))
    assert decision.message == (
        "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: "
        "1 Preemption is not helpful for scheduling."
    )


def test_ten_comes_before_two_in_a_message() -> None:
    assert format_fit_error(12, [("b",)] * 10 + [("a",)] * 2) == "0/12 nodes are available: 10 b, 2 a."


# The cluster ------------------------------------------------------------------------------------------------------


def on(node: str, name: str, phase: str = "Running") -> Pod:
    return a_pod(name, nodeName=node, status={"phase": phase})


def test_finished_unplaced_and_lost_pods_are_left_out() -> None:
    pods = [
        on("n1", "runs"),
        on("n1", "done", "Succeeded"),
        on("n1", "broken", "Failed"),
        on("", "waits"),
        on("n9", "lost"),
    ]
    cluster = Cluster(Objects(nodes=[a_node("n1")], pods=pods))
    assert [pod.metadata.name for pod in cluster.nodes["n1"].pods] == ["runs"]


def test_pods_come_and_go_in_order() -> None:
    cluster = a_cluster(a_node("n1"), pods={"n1": [a_pod("a"), a_pod("b"), a_pod("c")]})
    cluster.remove("default/b")
    cluster.add(a_pod("b"), "n1")
    assert [pod.key for pod in cluster.nodes["n1"].pods] == ["default/a", "default/c", "default/b"]
    assert cluster.find("default/c")[0].name == "n1"


def test_removing_a_pod_that_is_not_there_is_a_mistake() -> None:
    with pytest.raises(KeyError, match="default/nobody"):
        a_cluster(a_node()).remove("default/nobody")
