"""What kube-scheduler is answered: by the pod's policy, its priority, and what is known of the nodes right now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from builders import a_node, a_pod, a_usage, measure
from policies import DISRUPTED, a_cluster_policy, a_policy, a_rule, needs, policy_of, prefers, rows_of, spot, steady
from wukong.api.core import (
    Affinity,
    Namespace,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
)
from wukong.api.meta import Object, ObjectMeta
from wukong.engine.arrays import Floats, Mask
from wukong.placement.fleet import Fleet
from wukong.placement.pods.mark import MARK, Mark, format_mark
from wukong.placement.rule import NoConfig, Rule
from wukong.placement.rules import BUILT_IN
from wukong.replies.extender.verbs import Extender, FilterResult, Settings, Victim
from wukong.state import State

NOW = 1000.0
NODES = [spot("s1"), spot("s2"), steady("d1"), steady("d2")]
GPU = "nvidia.com/gpu"


def extender(*objects: Object, nodes: Sequence[Object] = NODES, settings: Settings | None = None) -> Extender:
    state = State()
    for obj in (*nodes, *objects):
        state.apply("ADDED", obj)
    return Extender(state, settings)


def run_filter(ours: Extender, pod: Pod | None = None, *names: str) -> FilterResult:
    fleet = ours.fleet(NOW)
    return ours.filter(pod or a_pod(), fleet, rows_of(fleet, *(names or fleet.names)), NOW)


def list_kept(ours: Extender, pod: Pod | None = None, *names: str) -> list[str]:
    result = run_filter(ours, pod, *names)
    return [name for name, is_kept in zip(names or ours.fleet(NOW).names, result.kept.tolist(), strict=True) if is_kept]


def run_prioritize(ours: Extender, pod: Pod | None = None) -> dict[str, int]:
    fleet = ours.fleet(NOW)
    scores_given = ours.prioritize(pod or a_pod(), fleet, np.arange(fleet.size, dtype=np.intp), NOW)
    return dict(zip(fleet.names, scores_given.tolist(), strict=True))


def notes(result: FilterResult) -> dict[str, str]:
    return {note.reason: note.text for note in result.notes}


def daemon(node: str) -> Pod:
    """As the DaemonSet controller makes it: for one node, by name."""
    field = NodeSelectorRequirement(key="metadata.name", operator="In", values=[node])
    terms = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[field])])
    return a_pod(affinity=Affinity(node_affinity=NodeAffinity(required=terms)))


# ---- capacity and priority


def test_without_any_policy_the_configured_strategy_holds() -> None:
    assert list_kept(extender()) == ["s1", "s2"]
    assert list_kept(extender(settings=Settings(strategy="on-demand-first"))) == ["d1", "d2"]
    assert list_kept(extender(settings=Settings(strategy=""))) == ["d1", "d2", "s1", "s2"]
    assert run_filter(extender()).plan == "no policy"


@pytest.mark.parametrize(
    ("strategy", "priority", "expected"),
    [
        ("spot-first", 999, ["s1", "s2"]),
        ("spot-first", 1000, ["d1", "d2"]),
        ("spot-first", 2_000_000_000, ["d1", "d2"]),
        ("spot-preferred", 1000, ["d1", "d2"]),
        ("", 1000, ["d1", "d2"]),
        ("", 0, ["d1", "d2", "s1", "s2"]),
        ("on-demand-first", 0, ["d1", "d2"]),
        ("spot-only", 1000, ["s1", "s2"]),  # the policy leaves no choice
        ("on-demand-only", 0, ["d1", "d2"]),
    ],
)
def test_critical_pods_go_on_demand_first(strategy: str, priority: int, expected: list[str]) -> None:
    assert list_kept(extender(a_policy(strategy=strategy)), a_pod(priority=priority)) == expected


@pytest.mark.parametrize(
    ("capacity", "fallback", "priority", "expected"),
    [
        ("spot", "OnDemand", 0, ["s1"]),
        ("on-demand", "OnDemand", 0, ["d1"]),
        ("spot", "Wait", 0, ["s1"]),
        ("spot", "OnDemand", 1000, ["s1"]),  # a policy that splits has said which of its pods
        ("", "OnDemand", 0, ["s1"]),
        ("", "OnDemand", 1000, ["d1"]),
    ],
)
def test_what_was_decided_at_admission_is_obeyed(
    capacity: str, fallback: str, priority: int, expected: list[str]
) -> None:
    split = {"strategy": "spot-first", "onDemandBase": 1, "fallback": fallback}
    ours = extender(policy_of({"capacity": split}))
    pod = a_pod(priority=priority)
    pod.metadata.annotations[MARK] = format_mark(Mark("PlacementPolicy default/web", 1, capacity))
    assert list_kept(ours, pod, "s1", "d1") == expected


def test_a_pod_that_waits_for_spot_is_refused_every_other_node() -> None:
    split = {"strategy": "spot-first", "spotPercent": 50, "fallback": "Wait"}
    pod = a_pod()
    pod.metadata.annotations[MARK] = format_mark(Mark("PlacementPolicy default/web", 1, "spot"))
    assert list_kept(extender(policy_of({"capacity": split})), pod, "d1", "d2") == []


@pytest.mark.parametrize("policy", ["PlacementPolicy default/other", "ClusterPlacementPolicy web", ""])
def test_a_mark_of_another_policy_is_not_obeyed(policy: str) -> None:
    ours = extender(policy_of({"capacity": {"strategy": "spot-first", "onDemandBase": 1}}))
    pod = a_pod()
    pod.metadata.annotations[MARK] = format_mark(Mark(policy, 1, "on-demand"))
    assert list_kept(ours, pod, "s1", "d1") == ["s1"]


def test_from_which_priority_on_pods_are_critical_is_configured() -> None:
    ours = extender(settings=Settings(critical_priority=10))
    assert list_kept(ours, a_pod(priority=10)) == ["d1", "d2"]
    assert list_kept(ours, a_pod(priority=9)) == ["s1", "s2"]


def test_a_policy_has_the_last_word_on_priority() -> None:
    assert list_kept(extender(a_policy(strategy="spot-first", priority=5000)), a_pod(priority=0)) == ["d1", "d2"]
    assert list_kept(extender(a_policy(strategy="spot-first", priority=5)), a_pod(priority=5000)) == ["s1", "s2"]


def test_a_pod_without_priority_is_not_critical() -> None:
    pod = a_pod()
    pod.spec.priority = None
    assert list_kept(extender(), pod) == ["s1", "s2"]


def test_a_fallback_is_told_once_about_the_pod() -> None:
    result = run_filter(extender(), None, "d1", "d2")
    assert result.is_fallback
    assert notes(result) == {"CapacityFallback": "No spot node is left for spot-first; using on-demand (no policy)."}
    assert (result.notes[0].key.namespace, result.notes[0].key.name) == ("default", "web-1")
    critical = run_filter(extender(), a_pod(priority=1000), "s1")
    assert notes(critical) == {
        "CapacityFallback": "No on-demand node is left for on-demand-first; using spot (no policy)."
    }
    assert run_filter(extender()).notes == ()


def test_that_a_daemon_runs_on_its_own_node_is_no_news() -> None:
    result = run_filter(extender(), daemon("d1"), "d1")
    assert (result.kept.tolist(), result.is_fallback, result.notes) == ([True], False, ())


def test_a_pod_that_selects_on_demand_nodes_does_not_fall_back_but_one_that_spot_nodes_would_suit_does() -> None:
    ours = extender(nodes=[spot("s1", labels={"disk": "ssd"}), steady("d1", labels={"disk": "ssd", "tier": "web"})])
    assert not run_filter(ours, a_pod(node_selector={"tier": "web"}), "d1").is_fallback
    assert run_filter(ours, a_pod(node_selector={"disk": "ssd"}), "d1").is_fallback


# ---- nodes too old to trust


def stale(*objects: Object, nodes: Sequence[Object] = NODES) -> Extender:
    """One whose watch of nodes has been silent for 162.4 s, which is too long."""
    return Extender(extender(*objects, nodes=nodes).state, node_staleness=lambda now: 162.4)


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("spot-first", ["d1", "d2"]),
        ("spot-only", []),
        ("on-demand-first", ["d1", "d2"]),
        ("on-demand-only", ["d1", "d2"]),
        ("spot-preferred", ["d1", "d2", "s1", "s2"]),
        ("", ["d1", "d2", "s1", "s2"]),
    ],
)
def test_no_strategy_chooses_a_spot_node_that_may_be_gone(strategy: str, expected: list[str]) -> None:
    assert list_kept(stale(a_policy(strategy=strategy))) == expected
    assert preempt(stale(a_policy(strategy=strategy)), ["d1", "d2", "s1", "s2"]) == expected


@pytest.mark.parametrize("strategy", ["spot-first", "spot-only", "on-demand-first"])
def test_pods_wait_where_only_spot_nodes_are_offered_and_are_told_the_age(strategy: str) -> None:
    result = run_filter(stale(a_policy(strategy=strategy)), None, "s1")
    assert (result.kept.tolist(), result.is_fallback, result.notes) == ([False], False, ())
    assert [(refusal.kind, refusal.reason, refusal.is_final) for refusal in result.refusals] == [
        ("stale-mirror", f"spot, and the node watch is 163 s old: {strategy} (PlacementPolicy default/web)", True)
    ]


def test_a_fallback_from_spot_nodes_too_old_to_trust_says_so() -> None:
    result = run_filter(stale())
    assert result.is_fallback
    assert notes(result) == {
        "CapacityFallback": "The node watch is too old to trust a spot node for spot-first; "
        "using on-demand (no policy)."
    }


def test_floors_leaving_nodes_and_points_go_on_with_an_old_watch_but_for_those_of_being_spot() -> None:
    nodes = [spot("s1"), steady("d1", cpu="1"), steady("d2", cpu="8"), steady("d3", taints=[DISRUPTED])]
    policy = a_policy(strategy="spot-first", floors=[needs("cpu", "4")])
    assert list_kept(stale(policy, nodes=nodes)) == ["d2"]
    preferring = a_policy(strategy="spot-preferred", preferred_cpu=prefers(1, "50%"))
    ours = stale(preferring)
    measure(ours.state, a_usage("s1", NOW, cpu=0), a_usage("d1", NOW, cpu=0))
    assert run_prioritize(ours) == {"s1": 10, "s2": 5, "d1": 10, "d2": 5}
    ours.node_staleness = lambda now: 0.0
    assert run_prioritize(ours)["s1"] > run_prioritize(ours)["d1"]


def test_a_policy_that_observes_counts_what_it_would_have_refused_for_an_old_watch() -> None:
    result = run_filter(stale(a_policy(mode="Observe", strategy="spot-only")))
    assert result.kept.all()
    assert {refusal.kind for refusal in result.observed} == {"stale-mirror", "capacity"}


# ---- policies


def test_an_edit_holds_for_the_next_question() -> None:
    ours = extender(a_policy(strategy="spot-only"))
    assert list_kept(ours) == ["s1", "s2"]
    ours.state.apply("MODIFIED", a_policy(strategy="on-demand-only"))
    assert list_kept(ours) == ["d1", "d2"]
    ours.state.apply("DELETED", a_policy(strategy="on-demand-only"))
    assert list_kept(ours) == ["s1", "s2"]  # no policy: spot-first
    ours.state.apply("ADDED", a_cluster_policy("default", strategy="on-demand-only"))
    assert list_kept(ours) == ["d1", "d2"]


def test_a_namespace_that_changes_its_labels_may_change_its_policy() -> None:
    policy = a_cluster_policy("prod", namespaces={"env": "prod"}, strategy="on-demand-only")
    ours = extender(policy, Namespace(kind="Namespace", metadata=ObjectMeta(name="default")))
    assert list_kept(ours) == ["s1", "s2"]
    labelled = Namespace(kind="Namespace", metadata=ObjectMeta(name="default", labels={"env": "prod"}))
    ours.state.apply("MODIFIED", labelled)
    assert list_kept(ours) == ["d1", "d2"]


def test_a_bad_policy_never_stands_in_a_pods_way() -> None:
    wrong: list[dict[str, Any]] = [
        {"strategy": "nonsense"},
        {"mode": "Whatever"},
        {"rules": [a_rule("absent", "filter")]},
        {"rules": [a_rule("cost-aware", costFactor="much")]},
        {"floors": [needs("gpus", "many")]},
        {"preferred_cpu": prefers(0, "all")},
    ]
    for spec in wrong:
        assert list_kept(extender(a_policy(**spec))) == ["s1", "s2"], spec
        assert list_kept(extender(a_policy("a", **spec), a_policy("b", strategy="on-demand-only"))) == ["d1", "d2"], (
            spec
        )


def test_policies_just_as_specific_are_reported() -> None:
    result = run_filter(extender(a_policy("b", strategy="on-demand-only"), a_policy("a", strategy="spot-only")))
    assert notes(result) == {
        "PolicyAmbiguous": "PlacementPolicy default/a holds, the first by name; just as specific: "
        "PlacementPolicy default/b."
    }
    assert result.plan == "PlacementPolicy default/a"


# ---- Observe


def test_a_policy_that_observes_says_what_it_would_have_done_and_keeps_all_but_leaving_nodes() -> None:
    leaving = spot("s3", taints=[DISRUPTED])
    ours = extender(a_policy(mode="Observe", strategy="spot-only"), nodes=[*NODES, leaving])
    result = run_filter(ours)
    assert list_kept(ours) == ["d1", "d2", "s1", "s2"]
    assert [refusal.kind for refusal in result.refusals] == ["leaving"]
    assert [(refusal.kind, int(refusal.mask.sum())) for refusal in result.observed] == [("capacity", 2)]
    assert not result.is_fallback
    assert notes(result) == {
        "PlacementObserved": "PlacementPolicy default/web observes only: it would have kept 2 of 5 nodes: "
        "1 node is leaving: taint karpenter.sh/disrupted; 2 not spot: spot-only (PlacementPolicy default/web)."
    }


def test_a_policy_that_observes_scores_nothing_and_preempts_as_ever() -> None:
    wish: dict[str, Any] = {"strategy": "spot-preferred", "preemptionPolicy": "Never", "floors": [needs("cpu", 99)]}
    ours = extender(a_policy(mode="Observe", **wish), nodes=[*NODES, spot("s3", taints=[DISRUPTED])])
    assert set(run_prioritize(ours).values()) == {0}
    assert preempt(ours, ["s1", "d1", "s3"]) == ["s1", "d1"]
    assert set(run_prioritize(extender(a_policy(**wish))).values()) == {0, 10}


# ---- nodes


def test_leaving_nodes_are_refused_for_good_and_come_back_when_the_notice_is_withdrawn() -> None:
    ours = extender(nodes=[spot("s1", taints=[DISRUPTED]), spot("s2")])
    result = run_filter(ours)
    assert result.kept.tolist() == [False, True]
    assert [(refusal.reason, refusal.is_final) for refusal in result.refusals] == [
        ("node is leaving: taint karpenter.sh/disrupted", True)
    ]
    ours.state.apply("MODIFIED", spot("s1"))
    assert list_kept(ours) == ["s1", "s2"]


def test_a_node_the_mirror_has_not_shown_yet_is_kept() -> None:
    assert list_kept(extender(a_policy(floors=[needs("cpu", 99)])), None, "new") == ["new"]


def test_nodes_given_in_full_are_judged_by_what_they_say() -> None:
    ours = extender()
    fleet = ours.fleet_of([spot("s1"), steady("new"), spot("gone", taints=[DISRUPTED])], NOW)
    result = ours.filter(a_pod(), fleet, np.arange(3, dtype=np.intp), NOW)
    assert result.kept.tolist() == [True, False, False]
    assert [refusal.kind for refusal in result.refusals] == ["leaving", "capacity"]


def test_points_follow_measured_usage() -> None:
    ours = extender(a_policy(preferred_cpu=prefers(1, "50%")))
    measure(ours.state, a_usage("s1", NOW, cpu=0), a_usage("s2", NOW, cpu=100), a_usage("d1", NOW - 180, cpu=100))
    assert run_prioritize(ours) == {"s1": 10, "s2": 0, "d1": 5, "d2": 5}


@pytest.mark.parametrize(("namespace", "noted"), [("shop", "shop"), ("", "default")])
def test_a_note_is_about_the_pod_in_its_namespace(namespace: str, noted: str) -> None:
    pod = a_pod()
    pod.metadata.namespace, pod.metadata.uid = namespace, "u"
    (note,) = run_filter(extender(), pod, "d1").notes
    assert (note.key.namespace, note.key.name, note.uid) == (noted, "web-1", "u")


def test_a_pod_that_asks_for_more_than_the_floor_needs_that() -> None:
    nodes = [steady("a", cpu="4"), steady("b", cpu="8")]
    ours = extender(a_policy(floors=[needs("cpu", "2")]), nodes=nodes)
    assert list_kept(ours, a_pod(cpu="1")) == ["a", "b"]
    assert list_kept(ours, a_pod(cpu="5")) == ["b"]
    assert list_kept(extender(a_policy(), nodes=nodes), a_pod(cpu="5")) == ["a", "b"], "without a floor it is not ours"


def test_a_floor_sees_pods_at_once() -> None:
    ours = extender(a_policy(floors=[needs("cpu", "2")]), nodes=[steady("a", cpu="4"), steady("b", cpu="4")])
    assert list_kept(ours) == ["a", "b"]
    ours.state.apply("ADDED", a_pod("big", node="a", cpu="2500m"))
    assert list_kept(ours) == ["b"]
    assert list_kept(ours, a_pod(cpu="4")) == ["b"]


def test_a_gpu_is_any_of_the_configured_names() -> None:
    nodes = [a_node("amd", extra={"amd.com/gpu": "1"}), a_node("own", extra={"x.com/gpu": "1"}), a_node("none")]
    policy = a_policy(floors=[needs("gpu", 1)])
    assert list_kept(extender(policy, nodes=nodes)) == ["amd"]
    assert list_kept(extender(policy, nodes=nodes, settings=Settings(gpu_names=("x.com/gpu",)))) == ["own"]


# ---- preempt


def preempt(
    ours: Extender, candidates: Mapping[str, Sequence[Victim]] | Sequence[str], pod: Pod | None = None
) -> list[str]:
    named = candidates if isinstance(candidates, Mapping) else dict.fromkeys(candidates, ())
    return ours.preempt(pod or a_pod(), named, NOW)


@pytest.mark.parametrize(
    ("strategy", "candidates", "expected"),
    [
        ("", ["s1", "d1"], ["s1", "d1"]),
        ("spot-only", ["s1", "d1"], ["s1"]),
        ("on-demand-only", ["s1", "d1"], ["d1"]),
        ("on-demand-only", ["s1"], []),
        ("spot-first", ["d1", "s1", "d2"], ["s1"]),
        ("spot-first", ["d1", "d2"], ["d1", "d2"]),
        ("on-demand-first", ["s1", "d1"], ["d1"]),
        ("spot-preferred", ["s1", "d1"], ["s1", "d1"]),
        ("spot-first", ["leaving", "d1"], ["d1"]),
        ("", ["leaving"], []),
        ("", [], []),
        ("spot-first", ["new"], ["new"]),  # not heard of yet
    ],
)
def test_nobody_is_preempted_where_the_pod_must_not_go(
    strategy: str, candidates: list[str], expected: list[str]
) -> None:
    ours = extender(a_policy(strategy=strategy), nodes=[*NODES, spot("leaving", taints=[DISRUPTED])])
    assert preempt(ours, candidates) == expected


def test_nobody_is_preempted_for_a_policy_that_says_never() -> None:
    assert preempt(extender(a_policy(preemptionPolicy="Never")), ["s1", "d1"]) == []
    assert preempt(extender(a_policy(preemptionPolicy="PreemptLowerPriority")), ["s1"]) == ["s1"]


def test_critical_pods_preempt_on_demand_first() -> None:
    assert preempt(extender(), ["s1", "d1"], a_pod(priority=1000)) == ["d1"]


def test_filter_rules_hold_for_preemption_too() -> None:
    policy = a_policy(rules=[a_rule("label-match", "filter", matchLabels={"kubernetes.io/hostname": "d1"})])
    assert preempt(extender(policy), ["s1", "d1"]) == ["d1"]


def with_victims() -> tuple[Extender, Pod, Pod]:
    """Two nodes of 4 cores, full; a floor of 2. Preempting `large` is enough, preempting `small` is not."""
    ours = extender(
        a_policy(strategy="spot-first", floors=[needs("cpu", "2")]), nodes=[spot("s", cpu="4"), steady("d", cpu="4")]
    )
    small, large = a_pod("small", node="s", cpu="1"), a_pod("large", node="d", cpu="2")
    small.metadata.uid, large.metadata.uid = "u-small", "u-large"
    rest = [a_pod("rest-s", node="s", cpu="3"), a_pod("rest-d", node="d", cpu="2")]
    for number, pod in enumerate((small, large, *rest)):
        pod.metadata.uid = pod.metadata.uid or str(number)
        ours.state.apply("ADDED", pod)
    return ours, small, large


def test_floors_count_what_the_victims_free_whether_named_or_given() -> None:
    ours, small, large = with_victims()
    assert preempt(ours, {"d": ["u-large"]}) == ["d"]
    assert preempt(ours, {"d": [large]}) == ["d"]
    assert preempt(ours, {"s": ["u-small"]}) == []
    assert preempt(ours, {"s": [small]}) == []
    assert preempt(ours, {"d": ["nobody"]}) == []
    assert preempt(ours, {"d": ["u-large"]}, a_pod(cpu="3")) == []  # the request is more than the floor
    assert preempt(ours, {"new": ["u-large"]}) == ["new"]


def test_a_strategy_chooses_among_the_nodes_that_would_do() -> None:
    """The spot node stays too full: then on-demand it is, rather than nowhere."""
    ours, small, large = with_victims()
    assert preempt(ours, {"s": [small], "d": [large]}) == ["d"]


def test_a_pod_whose_requests_make_no_sense_is_still_answered() -> None:
    pod = a_pod(cpu="lots")
    ours = extender(a_policy(floors=[needs("cpu", 1)]))
    assert list_kept(ours, pod) == ["d1", "d2", "s1", "s2"]
    assert preempt(ours, {"s1": [pod]}, pod) == ["s1"]


class Failing(Rule[NoConfig]):
    name = "failing"
    config = NoConfig

    def points(self, config: NoConfig, fleet: Fleet, pod: Pod) -> Floats:
        raise RuntimeError("boom")

    def refuses(self, config: NoConfig, fleet: Fleet, pod: Pod) -> Mask:
        raise RuntimeError("boom")


def test_a_custom_rule_that_fails_leaves_the_answers_as_they_are() -> None:
    policy = a_policy(rules=[a_rule("failing"), a_rule("failing", "filter"), a_rule("failing", "prioritize")])
    ours = Extender(extender(policy).state, rules={**BUILT_IN, "failing": Failing()})
    assert list_kept(ours) == ["d1", "d2", "s1", "s2"]
    assert set(run_prioritize(ours).values()) == {0}
    assert preempt(ours, ["s1"]) == ["s1"]
    assert ours.judge.faults == {"failing": "RuntimeError: boom"}
