"""Verdicts: what is unsafe about a change that completes, who else suffers, and how many plays go which way."""

from __future__ import annotations

import pytest

from forecast.clusters import (
    Document,
    a_budget,
    a_deployment,
    a_node,
    nodes,
    plan_on,
    required,
    rolling,
    running_on,
    with_image,
)
from wukong.app.snapshots import Baseline
from wukong.embedded.scenario.format.fields import ScaleTarget, TimelineEntry
from wukong.errors import NoProgress
from wukong.forecast import PlannedChange, PlanOptions
from wukong.forecast.fields import Play, Problem, VerdictKind, WorkloadForecast
from wukong.forecast.verdict import Limits, find_shortage, gather_outcomes, reach_verdict


def drain(*names: str, removed: bool = False) -> PlannedChange:
    steps = tuple(TimelineEntry(at="0s", drain=name) for name in names)
    return PlannedChange(steps=steps, removed_nodes=frozenset(names if removed else ()))


def test_a_drain_that_a_budget_forbids_never_ends() -> None:
    web = a_deployment(replicas=2)
    cluster = [*nodes(2), web, *running_on(web, "node-1", "node-2"), a_budget(minAvailable=2)]
    plan = plan_on(cluster, drain("node-1"))
    assert plan.verdict.kind == "never-ends"
    (problem,) = plan.verdict.problems
    assert problem.subject == "node node-1"
    assert "disruption budget" in problem.text
    assert plan.shown.touched.refused_evictions


def test_a_drain_that_takes_more_than_a_strategy_promises_degrades_and_is_told_with_its_numbers() -> None:
    web = a_deployment(replicas=3)  # of which none may be unavailable
    plan = plan_on([*nodes(2), web, *running_on(web, "node-1", "node-1", "node-2")], drain("node-1", removed=True))
    assert (plan.verdict.kind, plan.verdict.is_safe) == ("degrades", False)
    assert plan.verdict.problems[0].text == "falls to 1 available, below the 3 that its strategy promises"
    touched, forecast = plan.shown.touched, plan.shown.nodes
    assert [(pod.workload, pod.node, pod.cause) for pod in touched.disrupted] == [
        ("default/web", "node-1", "evicted")
    ] * 2
    assert (forecast.before, forecast.after, forecast.removed, forecast.freed) == (2, 1, ["node-1"], [])


def test_an_update_of_a_stateful_set_that_waits_already_is_told_with_its_numbers() -> None:
    """It waits for its second pod before and after, so nothing happens: none is up to date."""
    template = {
        "metadata": {"labels": {"app": "db"}},
        "spec": {"containers": [{"name": "main", "image": "db:1", "resources": {"requests": {"cpu": "3"}}}]},
    }
    spec = {"replicas": 2, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": template}
    meta = {"name": "db", "namespace": "default"}
    stateful_set = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": spec}
    plan = plan_on([a_node("node-1"), stateful_set], PlannedChange(documents=(with_image(stateful_set, "db:2"),)))
    assert plan.verdict.kind == "needs-nodes"
    assert "1 of 2 available, 0 up to date" in plan.verdict.problems[0].text
    assert plan.shown.workloads["default/db"].up_to_date == 0


def test_a_drain_for_which_there_is_no_room_needs_nodes() -> None:
    web = a_deployment(replicas=2, cpu="3")
    plan = plan_on([*nodes(2), web, *running_on(web, "node-1", "node-2")], drain("node-1"))
    assert plan.verdict.kind == "needs-nodes"
    assert [(needed.like, needed.count) for needed in plan.shown.nodes.needed] == [("node-2", 1)]


def test_a_pod_that_nobody_makes_again_is_lost() -> None:
    bare: Document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "alone", "namespace": "default"},
        "spec": {"nodeName": "node-1", "containers": [{"name": "main", "image": "x"}]},
    }
    plan = plan_on([*nodes(2), bare], drain("node-1"))
    assert [(problem.kind, problem.subject) for problem in plan.verdict.problems] == [("degrades", "pod default/alone")]
    assert plan.shown.nodes.freed == ["node-1"]


def test_a_bare_pod_that_is_applied_and_fits_nowhere_needs_a_node_or_never_gets_one() -> None:
    for cpu, verdict in (("3", "Needs 1 node like Node-1, in 2 of 2"), ("9", "Never ends, in 2 of 2")):
        pod: Document = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "big", "namespace": "default"},
            "spec": {"containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}]},
        }
        web = a_deployment(replicas=1, cpu="3")
        plan = plan_on([a_node("Node-1"), web, *running_on(web, "Node-1")], pod)
        assert (plan.verdict.text, plan.verdict.problems[0].subject) == (verdict, "pod default/big")


def test_an_outage_of_who_promises_nothing_is_told_unless_the_change_is_about_it() -> None:
    web = a_deployment(replicas=1, strategy={"type": "Recreate"})
    cluster = [*nodes(2), web, *running_on(web, "node-1")]
    (problem,) = plan_on(cluster, drain("node-1")).verdict.problems
    assert (problem.kind, problem.subject, problem.text) == (
        "degrades",
        "default/web",
        "has no pod available for a while",
    )
    assert plan_on(cluster, with_image(web)).verdict.kind == "completes"


def test_a_rollout_below_a_budget_breaks_it_though_its_strategy_allows_that() -> None:
    web = a_deployment(replicas=4, strategy=rolling(0, 2))
    plan = plan_on([*nodes(4), web, a_budget(minAvailable=3)], with_image(web))
    assert [(problem.kind, problem.subject) for problem in plan.verdict.problems] == [
        ("degrades", "budget default/web")
    ]
    (budget,) = plan.shown.touched.budgets
    assert (budget.allowed_before, budget.min_allowed, budget.min_healthy, budget.desired_healthy) == (1, 0, 2, 3)


def test_a_budget_that_rises_with_the_replicas_is_not_broken_by_them() -> None:
    web = a_deployment(replicas=2)
    grow = PlannedChange(steps=(TimelineEntry(at="0s", scale=ScaleTarget(kind="Deployment", name="web", replicas=8)),))
    plan = plan_on([*nodes(3), web, a_budget(minAvailable="60%")], grow)
    assert (plan.verdict.kind, plan.shown.touched.budgets) == ("completes", [])


@pytest.mark.parametrize(
    ("limits", "verdict"),
    [
        ({"": 2}, "completes"),
        ({"": "67%"}, "degrades"),
        ({"default/web": 3}, "degrades"),
        ({"default/x": 3}, "completes"),
    ],
)
def test_min_available_is_what_the_user_says(limits: dict[str, int | str], verdict: str) -> None:
    web = a_deployment(replicas=3, strategy=rolling(0, 1))
    options = PlanOptions(limits=Limits(limits))
    assert plan_on([*nodes(3), web], with_image(web), options=options).verdict.kind == verdict


def test_who_is_preempted_and_finds_no_other_node_is_starved() -> None:
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}
    low, vip = a_deployment("low", replicas=2, cpu="3"), a_deployment("vip", replicas=1, cpu="3")
    vip["spec"]["template"]["spec"]["priorityClassName"] = "high"
    plan = plan_on([*nodes(2), high, low, *running_on(low, "node-1", "node-2")], vip)
    assert plan.verdict.kind == "degrades"
    assert plan.verdict.text.startswith("Degrades, in 2 of 2")
    assert plan.shown.touched.starved == ["default/low"]
    assert {(pod.workload, pod.cause) for pod in plan.shown.touched.disrupted} == {("default/low", "preempted")}
    assert plan.shown.workloads["default/vip"].completed_at is not None


def test_a_manifest_that_changes_nothing_is_said_to_do_so() -> None:
    web = a_deployment()
    plan = plan_on([*nodes(2), web], web)
    assert (plan.verdict.text, plan.verdict.is_safe, plan.shown.workloads) == ("Nothing changes", True, {})


def test_what_was_stuck_before_is_not_held_against_the_change() -> None:
    stuck, web = a_deployment("stuck", replicas=1, cpu="9"), a_deployment(replicas=2)
    plan = plan_on([*nodes(2), stuck, web], with_image(web))
    assert (plan.verdict.kind, plan.shown.stuck) == ("completes", [])
    assert any(line.startswith("default/stuck: ") for line in plan.shown.stuck_before)


def test_prices_before_and_after_count_nodes_that_would_have_to_come() -> None:
    priced = [a_node(f"node-{number}", node_kubernetes="") for number in range(1, 3)]
    for node in priced:
        node["metadata"]["labels"] = {
            "kubernetes.io/hostname": node["metadata"]["name"],
            "placement.novasphere.dev/price-per-hour": "0.1",
        }
    web = a_deployment(replicas=2, affinity=required())
    plan = plan_on([*priced, web], a_deployment(replicas=4, affinity=required()))
    assert plan.cost is not None
    assert (plan.cost.before, plan.cost.after, plan.cost.unknown, plan.cost.is_list_price) == (146.0, 292.0, 0, False)


def test_the_same_arguments_give_the_same_plan_whatever_the_executor() -> None:
    web = a_deployment(replicas=4, affinity=required())
    cluster, change = [*nodes(5), web], PlannedChange(documents=(with_image(web),))
    first, second = (plan_on(cluster, change, seeds=(3, 1, 2)).document() for _ in range(2))
    assert first == second


def test_a_world_that_never_comes_to_rest_is_a_play_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise NoProgress("the clock stands still")

    monkeypatch.setattr(Baseline, "play", fail)
    plan = plan_on([*nodes(1), a_deployment()], with_image(a_deployment()))
    assert (plan.verdict.kind, plan.verdict.problems[0].text) == ("never-ends", "the clock stands still")


# ---- without a cluster


def a_play(seed: int, kind: VerdictKind, seconds: float = 10.0, subject: str = "shop/web") -> Play:
    problems = [Problem(kind=kind, subject=subject, text="why")] if kind != "completes" else []
    return Play(seed=seed, kind=kind, seconds=seconds, problems=problems)


def test_the_worst_that_some_seeds_show_is_the_verdict_with_one_of_them() -> None:
    plays = [a_play(seed, "never-ends" if seed in (7, 9, 12) else "completes", seed) for seed in range(1, 17)]
    outcomes = gather_outcomes(reversed(plays))
    assert [(outcome.kind, len(outcome.seeds), outcome.seeds[0]) for outcome in outcomes] == [
        ("never-ends", 3, 7),
        ("completes", 13, 1),
    ]
    assert reach_verdict(outcomes).text == "Never ends, in 3 of 16 (seed 7)"


@pytest.mark.parametrize(
    ("seconds", "are_times_known", "text"),
    [
        (0.3, True, "Completes in less than 1 s, in 1 of 1"),
        (64.0, True, "Completes in about 1 min 4 s, in 1 of 1"),
        (7260.0, True, "Completes in about 2 h 1 min, in 1 of 1"),
        (64.0, False, "Completes, in 1 of 1"),
    ],
)
def test_how_long_it_takes_is_said_only_where_it_is_known(seconds: float, are_times_known: bool, text: str) -> None:
    outcomes = gather_outcomes([a_play(1, "completes", seconds)])
    assert reach_verdict(outcomes, are_times_known=are_times_known).text == text


@pytest.mark.parametrize(
    ("history", "shortage"),
    [
        ([(0.0, 4, 4), (1.0, 3, 4)], None),  # as promised
        ([(0.0, 4, 4), (1.0, 2, 4)], (2, 3)),
        ([(0.0, 4, 8), (1.0, 4, 8)], None),  # more are wanted: nobody was lost
        ([(0.0, 4, 2), (1.0, 2, 2)], None),  # fewer are wanted
    ],
)
def test_a_shortage_is_below_what_was_promised_and_below_what_there_was(
    history: list[tuple[float, int, int]], shortage: tuple[int, int] | None
) -> None:
    forecast = WorkloadForecast(
        kind="Deployment",
        key="shop/web",
        replicas=4,
        replicas_before=4,
        available=4,
        available_before=4,
        up_to_date=4,
        min_available=0,
        unavailable_limit=1,
        availability=history,
    )
    assert find_shortage(forecast) == shortage
