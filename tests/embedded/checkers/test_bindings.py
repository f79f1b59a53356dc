"""Bindings against required rules are found, whoever makes them; those that keep the rules are not."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.checkers.checked_cluster import HOST, CheckedCluster, PodController
from wukong.actions import DONE, Bind, Outcome
from wukong.api.core import Pod
from wukong.api.resources import Key
from wukong.embedded.world.latencies import Latency, Spread
from wukong.embedded.world.timing import Timing
from wukong.runtime.dispatch import Dispatch

KEEPS_OFF = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    }
}
BESIDE_WEB = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    }
}
WITH_PORT = [{"name": "main", "image": "a", "ports": [{"containerPort": 80, "hostPort": 80}]}]
# Decides every millisecond, and is answered after five.
SCHEDULER_LATENCY = {
    "scheduler": Latency(Spread(1, 1, 1, 1, 1), Spread(5, 5, 5, 5, 5), deciding=1, workers=1, writes_aside=True)
}
SPREAD = [
    {
        "maxSkew": 1,
        "topologyKey": HOST,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
]


def bind_to_first(key: Key, pod: Pod, now: float) -> Outcome:
    return DONE if pod.spec.node_name else Outcome((Bind(key, "n0", pod.metadata.uid),))


def a_cluster(**node: Any) -> CheckedCluster:
    cluster = CheckedCluster(PodController("scheduler", bind_to_first))
    cluster.node("n0", **node)
    return cluster


def test_bindings_that_keep_the_rules_are_no_findings() -> None:
    cluster = a_cluster()
    cluster.pod("one", affinity=KEEPS_OFF)
    cluster.pod("two", app="other", topologySpreadConstraints=SPREAD)
    assert cluster.findings() == []


@pytest.mark.parametrize(
    ("node", "pod", "text"),
    [
        ({"taints": [{"key": "a", "effect": "NoSchedule"}]}, {}, "TaintToleration says: node(s) had untolerated"),
        ({"unschedulable": True}, {}, "NodeUnschedulable says"),
        ({}, {"nodeSelector": {"disk": "fast"}}, "NodeAffinity says"),
        ({"cpu": "2"}, {"cpu": "3"}, "NodeResourcesFit says: Insufficient cpu"),
    ],
    ids=["taint", "cordon", "selector", "capacity"],
)
def test_a_node_that_does_not_take_the_pod(node: dict[str, Any], pod: dict[str, Any], text: str) -> None:
    cluster = a_cluster(**node)
    cluster.pod("one", **pod)
    (finding,) = cluster.findings()
    assert finding.startswith("pod default/one: bound to n0 although")
    assert text in finding


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        ({}, {"affinity": KEEPS_OFF}, "didn't match pod anti-affinity rules"),
        ({"affinity": KEEPS_OFF}, {}, "didn't satisfy existing pods anti-affinity rules"),
        ({}, {"topologySpreadConstraints": SPREAD}, "PodTopologySpread says"),
        ({"cpu": "3"}, {"cpu": "2"}, "Insufficient cpu"),
        ({"containers": WITH_PORT}, {"containers": WITH_PORT}, "NodePorts says"),
    ],
    ids=["anti-affinity", "theirs", "spread", "capacity", "port"],
)
def test_a_node_whose_pods_leave_no_place(first: dict[str, Any], second: dict[str, Any], text: str) -> None:
    cluster = a_cluster()
    cluster.node("n1")
    cluster.pod("one", **first)
    cluster.pod("two", **second)
    (finding,) = cluster.findings()
    assert finding.startswith("pod default/two: bound to n0 although")
    assert text in finding


def test_a_binding_is_judged_whatever_its_controller_is_called() -> None:
    cluster = CheckedCluster(PodController("second-scheduler", bind_to_first))
    cluster.node("n0", cpu="2")
    cluster.pod("one", cpu="3")
    (finding,) = cluster.findings()
    assert finding.startswith("pod default/one: bound to n0 although NodeResourcesFit says: Insufficient cpu")


def test_a_node_that_is_not_there() -> None:
    cluster = CheckedCluster(PodController("scheduler", bind_to_first))
    cluster.pod("one")
    assert cluster.findings()[0].startswith("pod default/one: bound to n0 although there is no such node")


def a_cluster_whose_first_binding_fails() -> CheckedCluster:
    def bind(key: Key, pod: Pod, now: float) -> Outcome:
        uid = "another" if key.name == "one" else pod.metadata.uid
        return DONE if pod.spec.node_name else Outcome((Bind(key, "n0", uid),))

    cluster = CheckedCluster(PodController("scheduler", bind), timing=Timing(0, SCHEDULER_LATENCY))
    cluster.node("n0")
    cluster.pod("one")
    return cluster


def test_a_binding_beside_a_pod_whose_own_binding_fails_meanwhile_is_no_finding() -> None:
    """tests/live/test_bindings_in_flight.py shows that kube-scheduler binds so, too."""
    cluster = a_cluster_whose_first_binding_fails()
    cluster.pod("two", app="other", affinity=BESIDE_WEB)
    cluster.world.run(seconds=0.02)
    assert [pod.metadata.name for pod in cluster.world.state.pods_on("n0")] == ["two"]
    assert cluster.checkers.finish(is_at_rest=False) == []


def test_a_binding_beside_a_pod_whose_own_binding_has_failed_is_found() -> None:
    cluster = a_cluster_whose_first_binding_fails()
    cluster.world.run(seconds=0.1)
    cluster.pod("two", app="other", affinity=BESIDE_WEB)
    cluster.world.run(seconds=0.02)
    (finding,) = cluster.checkers.finish(is_at_rest=False)
    assert "bound to n0 although InterPodAffinity says" in str(finding)


@pytest.mark.parametrize("assumes", [True, False], ids=["that is assumed", "that is not"])
def test_a_binding_against_one_that_is_still_under_way_is_found(assumes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process must know what it is about to bind, whether it keeps that in mind or not."""
    if not assumes:
        monkeypatch.setattr(Dispatch, "_assume", lambda *_: None)
    cluster = CheckedCluster(PodController("scheduler", bind_to_first), timing=Timing(0, SCHEDULER_LATENCY))
    cluster.node("n0")
    cluster.pod("one", affinity=KEEPS_OFF)
    cluster.pod("two", affinity=KEEPS_OFF)
    cluster.world.run(seconds=0.02)
    (finding,) = cluster.checkers.finish(is_at_rest=False)
    assert finding.subject == "pod default/two"
