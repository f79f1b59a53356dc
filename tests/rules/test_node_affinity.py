"""Node names, node selectors, required and preferred node affinity."""

import msgspec
import pytest

from rules.samples import Manifest, a_cluster, a_node, a_pod, expression, node_affinity
from wukong.api.core import NodeAffinity
from wukong.api.profile import default_profile
from wukong.rules import decide
from wukong.rules.node_affinity import NO_MATCH, allows_node, reject, reject_other_name, score

SSD = a_node("ssd", labels={"disk": "ssd", "gen": "7"})
HDD = a_node("hdd", labels={"disk": "hdd"})


def preferring(*weighted: tuple[int, Manifest]) -> Manifest:
    terms = [{"weight": weight, "preference": preference} for weight, preference in weighted]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}


def require_names(*names: str) -> Manifest:
    fields = [{"matchFields": [expression("metadata.name", "In", name)]} for name in names]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": fields}}}


def disk(kind: str) -> Manifest:
    return {"matchExpressions": [expression("disk", "In", kind)]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, True),
        ({"nodeSelector": {"disk": "ssd"}}, True),
        ({"nodeSelector": {"disk": "hdd"}}, False),
        ({"affinity": node_affinity([expression("disk", "In", "ssd")])}, True),
        ({"affinity": node_affinity([expression("gen", "Gt", "7")])}, False),
        ({"affinity": node_affinity([expression("gen", "Gt", "7")], [expression("disk", "Exists")])}, True),
        ({"nodeSelector": {"disk": "hdd"}, "affinity": node_affinity([expression("disk", "Exists")])}, False),
        ({"affinity": node_affinity()}, False),
        ({"affinity": node_affinity([])}, False),
    ],
)
def test_selector_and_required_terms_must_both_accept_the_node(spec: Manifest, expected: bool) -> None:
    assert allows_node(a_pod(**spec), SSD) is expected


def test_rejections_are_for_good() -> None:
    assert reject(a_pod(nodeSelector={"disk": "nvme"}), SSD, None) == ((NO_MATCH,), True)
    wanted = a_pod(nodeName="hdd")
    assert reject_other_name(wanted, SSD) == (("node(s) didn't match the requested node name",), True)
    assert reject_other_name(wanted, HDD) is None


def test_affinity_added_by_the_profile_has_its_own_reason_and_comes_first() -> None:
    added = msgspec.convert(node_affinity([expression("disk", "In", "hdd")])["nodeAffinity"], NodeAffinity)
    rejection = reject(a_pod(nodeSelector={"disk": "nvme"}), SSD, added)
    assert rejection == (("node(s) didn't match scheduler-enforced node affinity",), True)
    assert reject(a_pod(), HDD, added) is None


def test_preferred_weights_add_up_and_the_best_gets_100() -> None:
    pod = a_pod(affinity=preferring((30, disk("ssd")), (10, disk("hdd")), (10, {"matchExpressions": []})))
    assert score(pod, [SSD, HDD, a_node("none")], None) == {"ssd": 100, "hdd": 33, "none": 0}


def test_without_preferences_the_plugin_is_skipped() -> None:
    assert score(a_pod(affinity=node_affinity([expression("disk", "Exists")])), [SSD], None) is None
    assert score(a_pod(), [SSD], None) is None


def test_preferences_nobody_meets_score_zero_and_are_not_skipped() -> None:
    assert score(a_pod(affinity=preferring((5, disk("nvme")))), [SSD, HDD], None) == {"ssd": 0, "hdd": 0}


def test_preferences_added_by_the_profile_count_for_every_pod() -> None:
    added = msgspec.convert(preferring((30, disk("ssd")))["nodeAffinity"], NodeAffinity)
    assert score(a_pod(), [SSD, HDD], added) == {"ssd": 100, "hdd": 0}
    assert score(a_pod(affinity=preferring((60, disk("hdd")))), [SSD, HDD], added) == {"ssd": 50, "hdd": 100}


def test_an_unreadable_preference_fails_the_cycle_unless_only_one_node_is_feasible() -> None:
    pod = a_pod(affinity=preferring((5, {"matchExpressions": [expression("gen", "Gt", "-5")]})))
    decision = decide(a_cluster(SSD, HDD), pod, default_profile())
    assert decision.feasible == ["hdd", "ssd"]
    assert decision.best == []
    assert decision.message is not None
    assert decision.message.startswith('running PreScore plugin "NodeAffinity"')
    assert decide(a_cluster(SSD), pod, default_profile()).best == ["ssd"]


def test_an_unreadable_preference_of_no_weight_is_not_read() -> None:
    pod = a_pod(affinity=preferring((0, {"matchExpressions": [expression("gen", "Gt", "-5")]})))
    assert decide(a_cluster(SSD, HDD), pod, default_profile()).message is None


def test_nodes_that_no_term_names_are_only_counted() -> None:
    decision = decide(
        a_cluster(SSD, HDD, a_node("none")), a_pod(cpu="99", affinity=require_names("ssd")), default_profile()
    )
    assert decision.message is not None
    assert decision.message.startswith(
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )
    assert decision.verdicts["hdd"].unresolvable


def test_names_that_contradict_each_other_end_the_cycle_at_once() -> None:
    fields = [expression("metadata.name", "In", "ssd"), expression("metadata.name", "In", "hdd")]
    term = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": fields}]}}
    decision = decide(a_cluster(SSD, HDD), a_pod(affinity={"nodeAffinity": term}), default_profile())
    assert decision.message == "0/2 nodes are available: pod affinity terms conflict. not found"
    assert decision.feasible == []
