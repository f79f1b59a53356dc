"""Which changes of nodes and pods give a refused pod another turn, plugin by plugin, as in kube-scheduler."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from builders import ZONE, a_node, a_pod, apart_from, selecting, spread_over, together_with
from wukong.api.core import Affinity, Namespace, Node, Pod, PodAffinity, PodAffinityTerm
from wukong.api.meta import ObjectMeta
from wukong.api.versions import VERSIONS
from wukong.controllers.scheduler.stock_hints import node_may_help, pod_may_help
from wukong.state import State

PLAIN = a_pod("waiting")
PICKY = a_pod("waiting", node_selector={"disk": "ssd"})
NEAR, APART = a_pod("waiting", affinity=together_with("db")), a_pod("waiting", affinity=apart_from("web", ZONE))
SPREAD, SOFT = a_pod("waiting", spread=[spread_over()]), a_pod("waiting", spread=[spread_over(soft=True)])
BIG = a_pod("waiting", cpu="4", memory="1Gi")
CORDONED, TAINTED, SSD = (
    a_node(unschedulable=True),
    a_node(taints=["spot=true:NoSchedule"]),
    a_node(labels={"disk": "ssd"}),
)
EAST, WEST, NOWHERE = a_node(zone="east"), a_node(zone="west"), a_node()


@pytest.mark.parametrize(
    ("plugin", "pod", "old", "new", "helps"),
    [
        ("NodeUnschedulable", PLAIN, None, a_node(), True),
        ("NodeUnschedulable", PLAIN, None, CORDONED, False),
        ("NodeUnschedulable", PLAIN, CORDONED, a_node(), True),
        ("NodeUnschedulable", PLAIN, a_node(), CORDONED, False),
        ("NodeUnschedulable", PLAIN, a_node(), a_node(taints=["a=b:NoSchedule"]), False),
        ("NodeUnschedulable", PLAIN, CORDONED, None, False),
        ("TaintToleration", PLAIN, None, a_node(), True),
        ("TaintToleration", PLAIN, None, TAINTED, False),
        ("TaintToleration", PLAIN, TAINTED, a_node(), True),
        ("TaintToleration", PLAIN, TAINTED, a_node(taints=["other=x:NoSchedule"]), False),
        ("TaintToleration", PLAIN, a_node(taints=["a=b:PreferNoSchedule"]), a_node(), False),
        ("TaintToleration", a_pod("waiting", tolerates="spot"), None, TAINTED, True),
        ("TaintToleration", PLAIN, TAINTED, None, False),
        ("NodeAffinity", PICKY, None, SSD, True),
        ("NodeAffinity", PICKY, None, a_node(), False),
        ("NodeAffinity", PICKY, a_node(), SSD, True),
        ("NodeAffinity", PICKY, SSD, a_node(labels={"disk": "ssd", "more": "x"}), False),
        ("NodeAffinity", PICKY, a_node(), a_node(labels={"disk": "hdd"}), False),
        ("NodeAffinity", PICKY, SSD, None, False),
        ("NodeAffinity", PICKY, a_node(), a_node(taints=["a=b:NoSchedule"]), True),  # nobody asks about taints
        ("NodeName", PLAIN, None, a_node(), True),
        ("NodeName", PLAIN, a_node(), a_node(labels={"a": "b"}), False),
        ("NodeName", PLAIN, a_node(), None, False),
        ("NodePorts", PLAIN, None, a_node(), True),
        ("NodePorts", PLAIN, a_node(), a_node(cpu="9"), False),
        ("NodePorts", PLAIN, CORDONED, a_node(), True),
        ("NodePorts", PLAIN, a_node(), CORDONED, False),
        ("NodeResourcesFit", BIG, None, a_node(cpu="4"), True),
        ("NodeResourcesFit", BIG, None, a_node(cpu="3"), False),
        ("NodeResourcesFit", BIG, None, a_node(cpu="4", pods="0"), False),
        ("NodeResourcesFit", BIG, None, a_node(cpu="4", pods="1"), True),
        ("NodeResourcesFit", BIG, a_node(cpu="3"), a_node(cpu="4"), True),
        ("NodeResourcesFit", BIG, a_node(cpu="2"), a_node(cpu="3"), False),
        ("NodeResourcesFit", BIG, a_node(cpu="5"), a_node(cpu="4"), False),
        ("NodeResourcesFit", BIG, a_node(cpu="4", pods="3"), a_node(cpu="4", pods="4"), True),
        ("NodeResourcesFit", BIG, a_node(cpu="4", pods="4"), a_node(cpu="4", pods="3"), False),
        ("NodeResourcesFit", BIG, a_node(cpu="4"), a_node(cpu="4", extra={"example.com/gpu": "1"}), False),
        ("NodeResourcesFit", BIG, a_node(cpu="4"), a_node(cpu="4", labels={"a": "b"}), False),
        ("NodeResourcesFit", BIG, a_node(cpu="4"), None, False),
        ("VolumeBinding", PLAIN, a_node(), a_node(labels={"a": "b"}), True),
        ("VolumeBinding", PLAIN, a_node(), a_node(cpu="9"), False),
        ("PodTopologySpread", SPREAD, None, EAST, True),
        ("PodTopologySpread", SPREAD, None, NOWHERE, False),
        ("PodTopologySpread", SPREAD, EAST, None, True),
        ("PodTopologySpread", SPREAD, NOWHERE, None, False),
        ("PodTopologySpread", SPREAD, EAST, WEST, True),
        ("PodTopologySpread", SPREAD, EAST, a_node(zone="east", labels={"a": "b"}), False),
        ("PodTopologySpread", SPREAD, EAST, a_node(zone="east", taints=["a=b:NoSchedule"]), True),
        ("PodTopologySpread", SPREAD, NOWHERE, a_node(taints=["a=b:NoSchedule"]), False),
        ("PodTopologySpread", SPREAD, EAST, a_node(zone="east", cpu="9"), False),
        ("PodTopologySpread", SOFT, None, NOWHERE, True),  # the profile's own constraints refused it
        ("InterPodAffinity", NEAR, None, EAST, True),
        ("InterPodAffinity", NEAR, None, NOWHERE, False),
        ("InterPodAffinity", NEAR, EAST, WEST, True),
        ("InterPodAffinity", NEAR, EAST, a_node(zone="east", labels={"a": "b"}), False),
        ("InterPodAffinity", NEAR, EAST, a_node(labels={"a": "b"}), False),
        ("InterPodAffinity", APART, None, NOWHERE, True),
        ("InterPodAffinity", APART, EAST, a_node(labels={"a": "b"}), True),
        ("InterPodAffinity", APART, EAST, WEST, True),
        ("InterPodAffinity", APART, NOWHERE, EAST, False),
        ("InterPodAffinity", APART, EAST, None, False),
        ("InterPodAffinity", PLAIN, None, EAST, False),
        ("NoSuchPlugin", PLAIN, None, a_node(), False),
    ],
)  # fmt: skip
def test_a_node_that_came_went_or_changed(
    plugin: str, pod: Pod, old: Node | None, new: Node | None, helps: bool
) -> None:
    assert node_may_help(pod, {plugin}, old, new) == helps
    assert node_may_help(pod, set(), old, new) is False


def bound(name: str = "other", **fields: Any) -> Pod:
    return a_pod(name, node="node-a", **fields)


def finished(pod: Pod) -> Pod:
    return replace(pod, status=replace(pod.status, phase="Succeeded"))


def nominated(pod: Pod, node: str = "node-a") -> Pod:
    return replace(pod, status=replace(pod.status, nominated_node_name=node))


PORT = a_pod("waiting", host_port=80)
TWO_TERMS = a_pod(
    "waiting",
    affinity=Affinity(
        pod_anti_affinity=PodAffinity(
            required=[PodAffinityTerm(topology_key=ZONE, label_selector=selecting(**{key: "x"})) for key in ("a", "b")]
        )
    ),
)


@pytest.mark.parametrize(
    ("plugin", "pod", "old", "new", "helps"),
    [
        ("NodeResourcesFit", PLAIN, bound(), None, True),
        ("NodeResourcesFit", PLAIN, bound(), finished(bound()), True),
        ("NodeResourcesFit", PLAIN, None, bound(), False),
        ("NodeResourcesFit", PLAIN, bound(), bound(labels={"a": "b"}), False),
        ("NodeResourcesFit", PLAIN, a_pod("other"), None, False),
        ("NodeResourcesFit", PLAIN, finished(bound()), None, False),
        ("NodePorts", PORT, bound(host_port=80), None, True),
        ("NodePorts", PORT, bound(host_port=81), None, False),
        ("NodePorts", PORT, None, bound(host_port=80), False),
        ("PodTopologySpread", SPREAD, None, bound(), True),
        ("PodTopologySpread", SPREAD, bound(), None, True),
        ("PodTopologySpread", SPREAD, None, bound(app="db"), False),
        ("PodTopologySpread", SPREAD, None, bound(namespace="shop"), False),
        ("PodTopologySpread", SPREAD, bound(), bound(app="db"), True),
        ("PodTopologySpread", SPREAD, bound(), bound(labels={"a": "b"}), False),
        ("PodTopologySpread", SOFT, None, bound(app="db"), True),
        ("PodTopologySpread", SPREAD, a_pod("other"), bound(), True),
        ("PodTopologySpread", SPREAD, a_pod("other"), a_pod("other", labels={"a": "b"}), False),
        ("InterPodAffinity", NEAR, None, bound(app="db"), True),
        ("InterPodAffinity", NEAR, None, bound(app="web"), False),
        ("InterPodAffinity", NEAR, bound(app="db"), None, False),
        ("InterPodAffinity", NEAR, bound(app="web"), bound(app="db"), True),
        ("InterPodAffinity", NEAR, bound(app="db"), bound(app="db", labels={"a": "b"}), False),
        ("InterPodAffinity", APART, bound(), None, True),
        ("InterPodAffinity", APART, None, bound(), False),
        ("InterPodAffinity", APART, bound(), bound(app="db"), True),
        ("InterPodAffinity", APART, bound(app="db"), bound(), False),
        ("InterPodAffinity", PLAIN, None, bound(), False),
        ("InterPodAffinity", PLAIN, bound(), None, False),
    ],
)
def test_a_pod_that_was_bound_went_or_got_other_labels(
    plugin: str, pod: Pod, old: Pod | None, new: Pod | None, helps: bool
) -> None:
    assert pod_may_help(pod, {plugin}, old, new, State(), VERSIONS["1.35"]) == helps
    assert pod_may_help(pod, set(), old, new, State(), VERSIONS["1.35"]) is False


@pytest.mark.parametrize(
    ("plugin", "pod", "old", "new", "helps"),
    [
        ("NodeResourcesFit", PLAIN, nominated(a_pod("other")), None, True),
        ("NodeResourcesFit", PLAIN, nominated(a_pod("other")), a_pod("other"), True),
        ("NodeResourcesFit", PLAIN, nominated(a_pod("other")), nominated(a_pod("other"), "node-b"), True),
        ("NodeResourcesFit", PLAIN, nominated(a_pod("other")), nominated(a_pod("other", labels={"a": "b"})), False),
        ("NodeResourcesFit", PLAIN, a_pod("other"), None, False),
        ("NodeResourcesFit", PLAIN, None, nominated(a_pod("other")), False),
        ("NodeResourcesFit", a_pod("waiting", priority=1), nominated(a_pod("other")), None, False),
        ("NodeResourcesFit", a_pod("waiting", priority=1), nominated(a_pod("other", priority=1)), None, True),
        ("NodePorts", PORT, nominated(a_pod("other", host_port=80)), None, True),
        ("NodePorts", PORT, nominated(a_pod("other", host_port=81)), None, False),
        ("InterPodAffinity", APART, nominated(a_pod("other")), None, False),
    ],
)
def test_a_pod_that_lost_its_nomination(plugin: str, pod: Pod, old: Pod | None, new: Pod | None, helps: bool) -> None:
    assert pod_may_help(pod, {plugin}, old, new, State(), VERSIONS["1.35"]) == helps


def test_what_wakes_differs_by_version() -> None:
    """Up to 1.36 all anti-affinity terms must match, and only those of the pod that waits."""
    half = bound(app=None, labels={"a": "x"})
    whole = bound(app=None, labels={"a": "x", "b": "x"})
    theirs = bound(app="db", affinity=apart_from("web", ZONE))
    for name, version in VERSIONS.items():
        wakes = [pod_may_help(TWO_TERMS, {"InterPodAffinity"}, old, None, State(), version) for old in (half, whole)]
        assert wakes == [version.one_term_wakes, True], name
        is_woken = pod_may_help(PLAIN, {"InterPodAffinity"}, theirs, None, State(), version)
        assert is_woken == version.leaving_pods_wake_by_their_terms, name


def test_a_term_may_select_by_labels_of_the_namespace() -> None:
    term = PodAffinityTerm(
        topology_key=ZONE, label_selector=selecting(app="db"), namespace_selector=selecting(team="x")
    )
    pod = a_pod("waiting", affinity=Affinity(pod_affinity=PodAffinity(required=[term])))
    state = State()
    arguments = (pod, {"InterPodAffinity"}, None, bound(app="db", namespace="shop"), state, VERSIONS["1.35"])
    assert not pod_may_help(*arguments)
    state.apply("ADDED", Namespace(metadata=ObjectMeta(name="shop", labels={"team": "y"})))
    assert not pod_may_help(*arguments)
    state.apply("MODIFIED", Namespace(metadata=ObjectMeta(name="shop", labels={"team": "x"})))
    assert pod_may_help(*arguments)
