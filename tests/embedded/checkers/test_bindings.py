"""Bindings against required rules are found, whoever makes them; those that keep the rules are not."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.checkers.judging import HOST, Actor, Court
from wukong.actions import DONE, Bind, Outcome
from wukong.api.core import Pod
from wukong.api.resources import Key

KEEPS_OFF = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    }
}
SPREAD = [
    {
        "maxSkew": 1,
        "topologyKey": HOST,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
]


def to_the_first(key: Key, pod: Pod, now: float) -> Outcome:
    return DONE if pod.spec.node_name else Outcome((Bind(key, "n0", pod.metadata.uid),))


def a_court(**node: Any) -> Court:
    court = Court(Actor("scheduler", to_the_first))
    court.node("n0", **node)
    return court


def test_bindings_that_keep_the_rules_are_nobody_s_business() -> None:
    court = a_court()
    court.pod("one", affinity=KEEPS_OFF)
    court.pod("two", app="other", topologySpreadConstraints=SPREAD)
    assert court.verdict() == []


@pytest.mark.parametrize(
    ("node", "pod", "told"),
    [
        ({"taints": [{"key": "a", "effect": "NoSchedule"}]}, {}, "TaintToleration says: node(s) had untolerated"),
        ({"unschedulable": True}, {}, "NodeUnschedulable says"),
        ({}, {"nodeSelector": {"disk": "fast"}}, "NodeAffinity says"),
        ({"cpu": "2"}, {"cpu": "3"}, "NodeResourcesFit says: Insufficient cpu"),
    ],
    ids=["taint", "cordon", "selector", "capacity"],
)
def test_a_node_that_does_not_take_the_pod(node: dict[str, Any], pod: dict[str, Any], told: str) -> None:
    court = a_court(**node)
    court.pod("one", **pod)
    (found,) = court.verdict()
    assert found.startswith("pod default/one: bound to n0 although")
    assert told in found


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ({}, {"affinity": KEEPS_OFF}, "didn't match pod anti-affinity rules"),
        ({"affinity": KEEPS_OFF}, {}, "didn't satisfy existing pods anti-affinity rules"),
        ({}, {"topologySpreadConstraints": SPREAD}, "PodTopologySpread says"),
        ({"cpu": "3"}, {"cpu": "2"}, "Insufficient cpu"),
    ],
    ids=["anti-affinity", "theirs", "spread", "capacity"],
)
def test_a_node_whose_pods_leave_no_place(first: dict[str, Any], second: dict[str, Any], told: str) -> None:
    court = a_court()
    court.node("n1")
    court.pod("one", **first)
    court.pod("two", **second)
    (found,) = court.verdict()
    assert found.startswith("pod default/two: bound to n0 although")
    assert told in found


def test_a_node_that_is_not_there() -> None:
    court = Court(Actor("scheduler", to_the_first))
    court.pod("one")
    assert court.verdict()[0].startswith("pod default/one: bound to n0 although there is no such node")
