"""DefaultPreemption: who may be evicted, who is spared, which node is chosen."""

from typing import Any

import pytest
from msgspec.structs import replace

from rules.samples import Manifest, a_cluster, a_container, a_node, a_pod
from wukong.api.core import Pod
from wukong.api.profile import default_profile
from wukong.rules import Decision, Preemption, decide
from wukong.rules.budgets import split_by_budget
from wukong.rules.cluster import Cluster

PROFILE = default_profile()
EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def old(name: str, cpu: str = "2", priority: int = 0, start: str = EARLY, **fields: Any) -> Pod:
    return a_pod(name, cpu=cpu, priority=priority, status={"startTime": start, **fields.pop("status", {})}, **fields)


def new(cpu: str = "3", priority: int = 10, **fields: Any) -> Pod:
    return a_pod(cpu=cpu, priority=priority, **fields)


def nodes(**pods: list[Pod]) -> Cluster:
    """Nodes of 4 cpu, named by the keywords, with these pods."""
    return a_cluster(*(a_node(name, cpu="4") for name in pods), pods=pods)


def preemption(cluster: Cluster, pod: Pod) -> Preemption:
    preemption_made = decide(cluster, pod, PROFILE).preemption
    assert preemption_made is not None
    return preemption_made


def budget(allowed: int, name: str = "pdb", app: str = "web", **status: Any) -> Manifest:
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed, **status},
    }


def test_pods_of_lower_priority_make_room_and_the_message_stays_short() -> None:
    decision = decide(nodes(n1=[old("low", "4")]), new(), PROFILE)
    assert decision.preemption == Preemption("n1", ["default/low"], {"n1": ["default/low"]})
    assert decision.message == "0/1 nodes are available: 1 Insufficient cpu."


def test_the_cluster_is_left_as_it_was() -> None:
    cluster = nodes(n1=[old("low", "4")])
    decide(cluster, new(), PROFILE)
    assert [pod.key for pod in cluster.nodes["n1"].pods] == ["default/low"]


@pytest.mark.parametrize("priority", [10, 11])
def test_equal_and_higher_priorities_are_safe(priority: int) -> None:
    decision = decide(nodes(n1=[old("safe", "4", priority)]), new(), PROFILE)
    assert decision.preemption is None
    assert decision.message == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_the_most_important_pods_are_spared_first() -> None:
    pods = [old("young", "1", start=LATE), old("aged", "1", start=EARLY), old("vip", "2", priority=5)]
    assert preemption(nodes(n1=pods), new("1")).victims == ["default/young"]
    assert preemption(nodes(n1=pods), new("2")).victims == ["default/aged", "default/young"]
    assert preemption(nodes(n1=pods), new("3")).candidates == {"n1": ["default/vip", "default/young"]}


def test_a_pod_that_has_not_started_counts_as_the_youngest() -> None:
    pods = [a_pod("pending", cpu="2"), old("aged", "2")]
    assert preemption(nodes(n1=pods), new("2")).victims == ["default/pending"]


def test_a_node_too_small_when_empty_is_no_candidate() -> None:
    decision = decide(nodes(n1=[old("low", "4")]), new("5"), PROFILE)
    assert decision.message is not None
    assert decision.message.endswith("1 Preemption is not helpful for scheduling.")


def test_when_evicting_everybody_does_not_help_the_reasons_are_given() -> None:
    cluster = nodes(n1=[old("low", "2"), old("high", "2", priority=99)])
    decision = decide(cluster, new("3"), PROFILE)
    assert decision.message is not None
    assert decision.message.endswith("preemption: 0/1 nodes are available: 1 Insufficient cpu.")


def test_a_policy_of_never_preempts_nobody() -> None:
    decision = decide(nodes(n1=[old("low", "4")]), new(preemptionPolicy="Never"), PROFILE)
    assert decision.preemption is None
    assert decision.message is not None
    assert decision.message.endswith("preemption: not eligible due to preemptionPolicy=Never.")


def test_a_profile_without_preemption_says_nothing_about_it() -> None:
    profile = replace(PROFILE, has_preemption=False, has_claims_message=False)
    decision = decide(nodes(n1=[old("low", "4")]), new(), profile)
    assert decision.message == "0/1 nodes are available: 1 Insufficient cpu."
    assert decision.preemption is None


@pytest.mark.parametrize(
    ("one", "other", "chosen"),
    [
        # the lowest of the highest priorities
        ([old("a", "4", 3)], [old("b", "2", 4), old("c", "2", -9)], "one"),
        # the lowest sum of priorities, shifted so that fewer negative ones win
        ([old("a", "2", 3), old("b", "2", 1)], [old("c", "2", 3), old("d", "2", 2)], "one"),
        ([old("a", "2", -5), old("b", "2", -5)], [old("c", "4", -5)], "other"),
        # the latest start among the most important victims
        ([old("a", "4", 3, EARLY)], [old("b", "4", 3, LATE)], "other"),
        # then by name
        ([old("a", "4", 3)], [old("b", "4", 3)], "one"),
    ],
)
def test_the_least_harmful_node_is_chosen(one: list[Pod], other: list[Pod], chosen: str) -> None:
    assert preemption(nodes(one=one, other=other), new("4")).node == chosen


def test_a_broken_budget_weighs_more_than_any_priority() -> None:
    protected = old("protected", "4", -100, labels={"app": "web"})
    cluster = a_cluster(
        a_node("one", cpu="4"),
        a_node("two", cpu="4"),
        pods={"one": [protected], "two": [old("plain", "4", 5)]},
        others=[budget(0)],
    )
    chosen_preemption = preemption(cluster, new("4"))
    assert chosen_preemption.node == "two"
    assert chosen_preemption.candidates == {"one": ["default/protected"], "two": ["default/plain"]}


def test_pods_protected_by_a_budget_are_tried_first_and_given_up_first() -> None:
    pods = [old("plain", "2", 5), old("web", "2", 1, labels={"app": "web"})]
    spared = a_cluster(a_node(cpu="4"), pods={"n1": pods}, others=[budget(0)])
    assert preemption(spared, new("2")).victims == ["default/plain"]
    both = a_cluster(a_node(cpu="4"), pods={"n1": pods}, others=[budget(0)])
    assert preemption(both, new("4")).candidates == {"n1": ["default/web", "default/plain"]}
    assert preemption(both, new("4")).victims == ["default/plain", "default/web"]


def test_a_freed_host_port_counts() -> None:
    port = [{"containerPort": 80, "hostPort": 80}]
    holder = a_pod("holder", containers=[a_container(ports=port)])
    newcomer = a_pod(priority=10, containers=[a_container(ports=port)])
    assert preemption(nodes(n1=[holder]), newcomer).victims == ["default/holder"]


def test_unwanted_neighbours_can_be_evicted() -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "db"}}}
    hermit = new("1", affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    cluster = nodes(n1=[old("db", "1", labels={"app": "db"}), old("web", "1")])
    assert preemption(cluster, hermit).victims == ["default/db"]


# After preemption -------------------------------------------------------------------------------------------------


def nominated(cluster: Cluster, pod: Pod) -> Decision:
    return decide(cluster, pod, PROFILE, nominated="n1")


def test_the_nominated_node_is_taken_without_looking_at_others() -> None:
    decision = nominated(nodes(n1=[], n2=[]), new())
    assert decision.best == ["n1"]
    assert (decision.verdicts, decision.scores) == ({}, {})


def test_a_nominated_node_that_does_not_fit_is_one_of_many() -> None:
    assert nominated(nodes(n1=[old("high", "4", 99)], n2=[]), new()).best == ["n2"]


def test_while_its_victims_are_leaving_a_pod_preempts_nobody_else() -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    leaving = old("leaving", "4", deleted=True, status={"conditions": [condition]})
    decision = nominated(nodes(n1=[leaving], n2=[old("low", "4")]), new())
    assert decision.preemption is None
    assert decision.message is not None
    assert decision.message.endswith("preemption: not eligible due to a terminating pod on the nominated node.")


def test_pods_leaving_for_other_reasons_do_not_stop_it() -> None:
    decision = nominated(nodes(n1=[old("leaving", "4", deleted=True)]), new())
    assert decision.preemption is not None


def test_an_unresolvable_nominated_node_does_not_stop_it() -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    leaving = old("leaving", "1", deleted=True, status={"conditions": [condition]})
    cluster = a_cluster(a_node("n1", unschedulable=True), a_node("n2"), pods={"n1": [leaving], "n2": [old("low", "4")]})
    assert nominated(cluster, new()).preemption == Preemption("n2", ["default/low"], {"n2": ["default/low"]})


# Budgets ----------------------------------------------------------------------------------------------------------


def broken(pods: list[Pod], *budgets: Manifest) -> list[str]:
    cluster = a_cluster(a_node(), others=list(budgets))
    return [pod.metadata.name for pod in split_by_budget(pods, cluster.pod_disruption_budgets)[0]]


WEBS = [a_pod(f"w{index}", labels={"app": "web", "tier": "x"}) for index in range(3)]


@pytest.mark.parametrize(("allowed", "expected"), [(3, []), (2, ["w2"]), (1, ["w1", "w2"]), (0, ["w0", "w1", "w2"])])
def test_each_eviction_uses_up_the_budget(allowed: int, expected: list[str]) -> None:
    assert broken(WEBS, budget(allowed)) == expected


def test_every_covering_budget_is_used_up() -> None:
    tier = {**budget(1, "tier"), "spec": {"selector": {"matchLabels": {"tier": "x"}}}}
    assert broken(WEBS, budget(2), tier) == ["w1", "w2"]


def test_an_empty_or_absent_selector_protects_nobody() -> None:
    assert broken(WEBS, {**budget(0), "spec": {"selector": {}}}) == []
    assert broken(WEBS, {**budget(0), "spec": {}}) == []


def test_budgets_protect_their_own_namespace_only() -> None:
    assert broken(WEBS, {**budget(0), "metadata": {"name": "pdb", "namespace": "other"}}) == []


def test_pods_without_labels_are_not_protected() -> None:
    everything = {"selector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["x"]}]}}
    assert broken([a_pod("bare"), WEBS[0]], {**budget(0), "spec": everything}) == ["w0"]


def test_pods_already_let_go_use_up_nothing() -> None:
    assert broken(WEBS, budget(2, disruptedPods={"w0": EARLY})) == []
