"""Taints, tolerations, cordons."""

from typing import Any

import msgspec
import pytest

from rules.samples import Manifest, a_cluster, a_node, a_pod
from wukong.api.core import Taint, Toleration
from wukong.api.profile import default_profile
from wukong.api.versions import VERSIONS
from wukong.rules import decide
from wukong.rules.taints import UNTOLERATED, reject_tainted, reject_unschedulable, score, tolerates

SPOT = {"key": "spot", "value": "true", "effect": "NoSchedule"}
SOFT = {"key": "flaky", "effect": "PreferNoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"key": "spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"}, True),
        ({"key": "spot", "value": "true"}, True),
        ({"key": "spot", "value": "false"}, False),
        ({"key": "spot"}, False),
        ({"key": "spot", "operator": "Exists"}, True),
        ({"key": "spot", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"operator": "Exists"}, True),
        ({"value": "true"}, True),  # the API server refuses it, the scheduler would accept it
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "spot", "operator": "Gt", "value": "1"}, False),  # behind a feature gate that is off
    ],
)
def test_tolerations(toleration: Manifest, expected: bool) -> None:
    assert tolerates(msgspec.convert(toleration, Toleration), msgspec.convert(SPOT, Taint)) is expected


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_hard_taints_keep_pods_out_for_good(effect: str) -> None:
    node = a_node(taints=[{"key": "spot", "effect": effect}])
    rejection = reject_tainted(a_pod(), node)
    assert rejection == (("node(s) had untolerated taint(s)",), True)
    assert reject_tainted(a_pod(tolerations=[{"key": "spot", "operator": "Exists"}]), node) is None


def test_soft_taints_keep_nobody_out() -> None:
    assert reject_tainted(a_pod(), a_node(taints=[SOFT])) is None


def test_every_hard_taint_must_be_tolerated() -> None:
    node = a_node(taints=[SPOT, {"key": "gpu", "effect": "NoSchedule"}])
    assert reject_tainted(a_pod(tolerations=[{"key": "spot", "operator": "Exists"}]), node) is not None


@pytest.mark.parametrize(
    ("tolerations", "is_rejected"),
    [
        ([], True),
        ([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}], False),
        ([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoExecute"}], True),
        ([{"operator": "Exists"}], False),
    ],
)
def test_a_cordoned_node_takes_only_who_tolerates_the_cordon(tolerations: list[Any], is_rejected: bool) -> None:
    rejection = reject_unschedulable(a_pod(tolerations=tolerations), a_node(unschedulable=True))
    assert rejection == ((("node(s) were unschedulable",), True) if is_rejected else None)


def test_fewer_untolerated_soft_taints_score_higher() -> None:
    more = [SOFT, {"key": "old", "effect": "PreferNoSchedule"}, {"key": "far", "effect": "PreferNoSchedule"}]
    nodes = [a_node("none"), a_node("one", taints=[SOFT]), a_node("three", taints=more)]
    assert score(a_pod(), nodes) == {"none": 100, "one": 67, "three": 0}


def test_without_soft_taints_to_count_every_node_has_the_full_score() -> None:
    tolerant = a_pod(tolerations=[{"key": "flaky", "operator": "Exists"}])
    assert score(tolerant, [a_node("one", taints=[SOFT]), a_node("two", taints=[SPOT])]) == {"one": 100, "two": 100}


def test_a_toleration_for_hard_taints_does_not_cover_soft_ones() -> None:
    pod = a_pod(tolerations=[{"key": "flaky", "operator": "Exists", "effect": "NoSchedule"}])
    assert score(pod, [a_node("one", taints=[SOFT]), a_node("two")]) == {"one": 0, "two": 100}


def test_up_to_1_33_the_reason_names_the_first_taint_that_is_not_tolerated() -> None:
    taints = [
        {"key": "soft", "effect": "PreferNoSchedule"},
        {"key": "spot", "value": "yes", "effect": "NoSchedule"},
        {"key": "gpu", "effect": "NoExecute"},
    ]
    node = a_node("n1", taints=taints)
    for minor, reason in (("1.33", "node(s) had untolerated taint {spot: yes}"), ("1.34", UNTOLERATED)):
        verdict = decide(a_cluster(node), a_pod(), default_profile(VERSIONS[minor])).verdicts["n1"]
        assert (verdict.reasons, verdict.unresolvable) == ((reason,), True)
    tolerant = a_pod(tolerations=[{"key": "spot", "operator": "Exists"}])
    verdict = decide(a_cluster(node), tolerant, default_profile(VERSIONS["1.33"])).verdicts["n1"]
    assert verdict.reasons == ("node(s) had untolerated taint {gpu: }",)
