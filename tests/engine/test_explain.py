"""Explanations: equal nodes grouped, the winner first, and only such fixes as really help."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from builders import HOSTNAME, ZONE, a_node, a_pod, apart_from, rather_near, spread_over, together_with
from random_clusters import Case, cases
from wukong.api.core import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    ResourceClaim,
    Volume,
    VolumeClaimSource,
)
from wukong.api.meta import OwnerReference
from wukong.api.objects import Objects
from wukong.engine import Scheduler, Snapshot
from wukong.engine.explain import Explanation, explain


def explain_on(snapshot: Snapshot, pod: Pod) -> Explanation:
    return explain(Scheduler(snapshot), pod)


def sentences(explanation: Explanation) -> list[str]:
    return [fix.sentence for fix in explanation.fixes]


def on_node_named(name: str) -> Affinity:
    """As the DaemonSet controller writes it into a new pod."""
    field = NodeSelectorRequirement(key="metadata.name", operator="In", values=[name])
    terms = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[field])])
    return Affinity(node_affinity=NodeAffinity(required=terms))


def test_equal_nodes_form_one_group_and_the_best_comes_first() -> None:
    snapshot = Snapshot([a_node(f"n{i}", zone="ab"[i % 2]) for i in range(6)])
    snapshot.assume("default/db", a_pod("db", app="db", cpu=None, memory=None), "n1")
    explanation = explain_on(snapshot, a_pod(affinity=rather_near("db")))
    assert explanation.winner == "n3"
    assert explanation.groups[0].is_best
    assert explanation.groups[0].nodes == ("n3", "n5")
    assert sum(len(group.nodes) for group in explanation.groups) == explanation.nodes == 6
    assert explanation.groups[0].points["InterPodAffinity"] == 200


def test_a_refused_node_shows_every_plugin_that_refuses_it() -> None:
    snapshot = Snapshot([a_node("n1", taints=["spot:NoSchedule"], cpu="1", unschedulable=True), a_node("n2")])
    explanation = explain_on(snapshot, a_pod(cpu="2"))
    assert explanation.groups[-1].refusals.keys() == {"NodeUnschedulable", "TaintToleration", "NodeResourcesFit"}
    assert explanation.filters == ("NodeUnschedulable", "TaintToleration", "NodeResourcesFit")


def test_tolerating_the_taint_is_offered_when_that_alone_helps() -> None:
    explanation = explain_on(Snapshot([a_node("n1", taints=["spot=true:NoSchedule"])]), a_pod())
    assert sentences(explanation)[0] == "tolerate the taint spot=true:NoSchedule"
    assert explanation.fixes[0].nodes == 1


def test_asking_for_less_names_the_most_that_fits() -> None:
    snapshot = Snapshot([a_node("n1", cpu="4"), a_node("n2", cpu="2", taints=["x:NoSchedule"])])
    snapshot.assume("default/other", a_pod("other", cpu="1500m"), "n1")
    assert "ask for at most 2500m cpu (now 3)" in sentences(explain_on(snapshot, a_pod(cpu="3")))


def test_a_required_rule_can_be_made_preferred_or_dropped() -> None:
    snapshot = Snapshot([a_node("n1", zone="a")])
    snapshot.assume("default/db", a_pod("db", app="db"), "n1")
    explanation = explain_on(snapshot, a_pod(affinity=apart_from("db")))
    assert f"make required podAntiAffinity[0] (app=db per {HOSTNAME}) preferred instead of required" in sentences(
        explanation
    )
    assert f"drop required podAntiAffinity[0] (app=db per {HOSTNAME})" in sentences(explanation)
    near = explain_on(snapshot, a_pod(affinity=together_with("cache")))
    assert f"drop required podAffinity[0] (app=cache per {ZONE})" in sentences(near)


def test_a_spread_constraint_can_be_softened() -> None:
    snapshot = Snapshot([a_node("n1", zone="a"), a_node("n2", zone="b", taints=["x:NoSchedule"])])
    snapshot.assume("default/web-0", a_pod("web-0"), "n1")
    explanation = explain_on(snapshot, a_pod(spread=[spread_over(ZONE)]))
    assert f"set whenUnsatisfiable: ScheduleAnyway on topologySpreadConstraints[0] ({ZONE})" in sentences(explanation)


def test_a_cordoned_node_and_a_missing_node_are_offered() -> None:
    snapshot = Snapshot([a_node("n1", unschedulable=True), a_node("n2", cpu="1")])
    snapshot.assume("default/full", a_pod("full", cpu="1"), "n2")
    suggestions = sentences(explain_on(snapshot, a_pod(cpu="1")))
    assert "uncordon node n1" in suggestions
    assert "add one node like n2" in suggestions


def test_mending_a_node_or_adding_one_comes_before_tolerating_what_is_wrong_with_it() -> None:
    taint = "node.kubernetes.io/unschedulable:NoSchedule"
    snapshot = Snapshot([a_node("n1", unschedulable=True, taints=[taint]), a_node("n2", cpu="1")])
    snapshot.assume("default/full", a_pod("full", cpu="1"), "n2")
    assert sentences(explain_on(snapshot, a_pod(cpu="1"))) == [
        "uncordon node n1",
        "add one node like n2",
        f"tolerate the taint {taint}",
    ]


def test_a_new_node_comes_with_the_daemons_of_the_one_it_is_like() -> None:
    """Both kinds of node have 4 cpu; on one of them daemons take half a cpu, so a pod of 4 cpu does not fit there."""
    snapshot = Snapshot([a_node("bare", labels={"pool": "bare"}), a_node("n1"), a_node("n2")])
    for node in ("bare", "n1", "n2"):
        snapshot.assume(f"default/full-{node}", a_pod(f"full-{node}", cpu="3"), node)
    agent = a_pod("agent", cpu="500m")
    owner = OwnerReference(api_version="apps/v1", kind="DaemonSet", name="agent", controller=True)
    agent.metadata.owner_references = [owner]
    snapshot.assume("kube-system/agent-2", agent, "n2")  # that of n1 is missing
    assert sentences(explain_on(snapshot, a_pod(cpu="4"))) == [
        "ask for at most 1 cpu (now 4)",
        "add one node like bare",
    ]
    assert "add one node like n1" in sentences(explain_on(snapshot, a_pod(cpu="3500m")))


def test_a_daemon_that_waits_for_room_comes_with_a_new_node_too() -> None:
    """The only node of 4 cpu is full, so its daemon of half a cpu waits; one more like it has room for 3.5."""
    agent = a_pod("agent-n1", cpu="500m", affinity=on_node_named("n1"))
    owner = OwnerReference(api_version="apps/v1", kind="DaemonSet", name="agent", controller=True)
    agent.metadata.owner_references = [owner]
    full = a_pod("full", cpu="4")
    full.spec.node_name = "n1"
    snapshot = Snapshot.of(Objects(nodes=[a_node("n1")], pods=[full, agent]))
    assert sentences(explain_on(snapshot, a_pod(cpu="3501m"))) == []
    assert sentences(explain_on(snapshot, a_pod(cpu="3500m"))) == ["add one node like n1"]


def test_every_shape_of_node_is_tried_and_one_of_each_type_is_named() -> None:
    types = {"node.kubernetes.io/instance-type": "m6i.large"}
    nodes = [a_node(f"n{number:02}", labels={**types, "serial": str(number)}) for number in range(20)]
    nodes += [a_node(f"o{number:02}", labels={"serial": str(number)}) for number in range(20)]
    nodes.append(a_node("large", cpu="8", labels={"node.kubernetes.io/instance-type": "m6i.2xlarge"}))
    snapshot = Snapshot(nodes)
    for node in nodes:
        snapshot.assume(f"default/on-{node.metadata.name}", a_pod("full", cpu="4"), node.metadata.name)
    snapshot.assume("default/more", a_pod("more", cpu="4"), "large")
    assert sentences(explain_on(snapshot, a_pod(cpu="8")))[-1] == "add one node like large"
    new_nodes = [sentence for sentence in sentences(explain_on(snapshot, a_pod(cpu="4"))) if "node like" in sentence]
    assert len(new_nodes) == 8
    assert [name for name in new_nodes if name.startswith("add one node like n")] == ["add one node like n00"]


def test_the_rule_of_another_workload_is_named_when_it_alone_bars_the_pod() -> None:
    snapshot = Snapshot([a_node("n1")])
    snapshot.assume("default/db", a_pod("db", app="db", affinity=apart_from("web")), "n1")
    suggestions = sentences(explain_on(snapshot, a_pod()))
    assert "drop the required podAntiAffinity of pods like default/db that keeps this pod away" in suggestions


def test_the_rule_of_another_workload_is_not_named_where_its_pods_leave_no_room_either() -> None:
    snapshot = Snapshot([a_node("n1", cpu="2")])
    snapshot.assume("default/db", a_pod("db", app="db", cpu="1500m", affinity=apart_from("web")), "n1")
    assert sentences(explain_on(snapshot, a_pod(cpu="1"))) == ["add one node like n1"]


def test_a_host_port_can_be_given_up_and_a_node_selector_dropped() -> None:
    snapshot = Snapshot([a_node("n1")])
    snapshot.assume("default/other", a_pod("other", host_port=80), "n1")
    assert "give up host port 80 of container main" in sentences(explain_on(snapshot, a_pod(host_port=80)))
    assert "drop disk=ssd from nodeSelector" in sentences(explain_on(snapshot, a_pod(node_selector={"disk": "ssd"})))


def test_no_single_fix_is_invented_where_two_things_are_wrong() -> None:
    explanation = explain_on(Snapshot([a_node("n1", taints=["x:NoSchedule"], unschedulable=True)]), a_pod())
    assert explanation.fixes == ()


def test_what_is_not_modelled_is_said() -> None:
    pod = a_pod()
    pod.spec.resource_claims = [ResourceClaim(name="gpu")]
    notes = explain_on(Snapshot([a_node("n1")]), pod).notes
    assert any("resource claims (DynamicResources) are not modelled" in note for note in notes)


def test_what_preemption_tries_out_is_no_reason_why_not() -> None:
    """Each host has one of them: nobody is more than one ahead, but while a victim is away all others are."""
    snapshot = Snapshot([a_node(f"n{number}") for number in range(3)])
    for number in range(3):
        snapshot.assume(f"default/web-{number}", a_pod(f"web-{number}"), f"n{number}")
    pod = a_pod("new", priority=10, affinity=apart_from("web"), spread=[spread_over(HOSTNAME)])
    (group,) = explain_on(snapshot, pod).groups
    assert list(group.refusals) == ["InterPodAffinity"]


def test_a_claim_that_is_not_there_keeps_its_pod_from_every_node() -> None:
    pod = a_pod()
    pod.spec.volumes = [Volume(name="data", persistent_volume_claim=VolumeClaimSource(claim_name="data"))]
    explanation = explain_on(Snapshot([a_node("n1")]), pod)
    assert explanation.message == '0/1 nodes are available: persistentvolumeclaim "data" not found. not found'
    assert explanation.notes == ()


@pytest.mark.slow
@settings(max_examples=40)
@given(cases())
def test_explaining_changes_nothing_and_agrees_with_the_decision(case: Case) -> None:
    snapshot = Snapshot.of(case.objects)
    scheduler = Scheduler(snapshot)
    before = scheduler.decide(case.pod)
    counters = len(snapshot.counters)
    explanation = explain(scheduler, case.pod)
    after = scheduler.decide(case.pod)
    assert (after.feasible, after.final, after.message) == (before.feasible, before.final, before.message)
    assert len(snapshot.counters) == counters
    feasible = [name for group in explanation.groups if group.is_feasible for name in group.nodes]
    assert sorted(feasible) == list(before.feasible)
    assert bool(explanation.message) == (not feasible)
