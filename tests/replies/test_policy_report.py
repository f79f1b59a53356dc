"""What `wukong explain` is told of a policy's part in a decision."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_pod, a_usage, measure
from policies import a_cluster_policy, a_policy, a_rule, policy_of, prefers, spot, steady
from wukong.api.core import Pod
from wukong.api.meta import Object
from wukong.api.objects import Objects
from wukong.api.placement import ClusterPlacementPolicy, PlacementPolicy
from wukong.api.profile import default_profile
from wukong.engine import Scheduler, Snapshot
from wukong.placement.pods.mark import MARK, Mark, format_mark
from wukong.placement.prices import Prices
from wukong.replies.extender.plugin import DEFAULT_ENTRY, add_extender
from wukong.replies.extender.policy_report import PolicyReport, build_report
from wukong.replies.extender.verbs import Extender
from wukong.state import State

NOW = 1000.0
LISTED = {"node.kubernetes.io/instance-type": "m6i.xlarge"}


def report(*policies: PlacementPolicy | ClusterPlacementPolicy, pod: Pod | None = None, **nodes: Any) -> PolicyReport:
    """Of four nodes: one has a price, one that of the table, two have none; one is measured."""
    pod = pod or a_pod(cpu="1")
    present = nodes.get("nodes") or [spot("s1", price=0.1), spot("s2"), steady("d1", labels=LISTED), steady("d2")]
    objects, state = Objects(), State()
    subjects: list[Object] = [*present, *policies]
    for subject in subjects:
        state.apply("ADDED", subject)
    for node in present:
        objects.add(node)
    measure(state, a_usage("s1", NOW, cpu=20.0, memory=20.0))
    extender = Extender(state, prices=Prices())
    scheduler = Scheduler(Snapshot.of(objects), default_profile())
    alone = scheduler.decide(pod)
    extended, plugin = add_extender(scheduler, extender, DEFAULT_ENTRY, NOW)
    return build_report(plugin, extended.view_of(pod), pod, alone)


def test_a_policy_is_named_with_what_it_wants_and_what_it_did() -> None:
    told = report(
        a_policy("web", strategy="spot-first", priority=7, schedulerName="ours", preemptionPolicy="Never"),
        a_policy("zeb"),
        pod=a_pod(cpu="1", priority=3),
    )
    assert (told.policy, told.others, told.is_enforced) == (
        "PlacementPolicy default/web",
        ("PlacementPolicy default/zeb",),
        True,
    )
    assert (told.own_strategy, told.strategy, told.is_critical) == ("spot-first", "spot-first", False)
    assert (told.priority, told.critical_priority) == (7, 1000)
    assert (told.scheduler_name, told.never_preempts) == ("ours", True)
    assert (told.offered, set(told.scores), told.is_fallback, told.observed) == (4, {"s1", "s2"}, False, {})
    assert told.alone in ("d1", "d2", "s1", "s2")
    assert (told.reads_usage, told.reads_prices) == (False, False)


def test_a_critical_pod_changes_the_strategy() -> None:
    told = report(a_policy(strategy="spot-first"), pod=a_pod(cpu="1", priority=1000))
    assert (told.own_strategy, told.strategy, told.is_critical) == ("spot-first", "on-demand-first", True)
    assert (told.priority, set(told.scores)) == (1000, {"d1", "d2"})


def test_a_decision_of_admission_is_told_and_is_not_taken_for_a_critical_pod() -> None:
    pod = a_pod(cpu="1")
    pod.metadata.annotations[MARK] = format_mark(Mark("PlacementPolicy default/web", 1, "on-demand"))
    told = report(policy_of({"capacity": {"strategy": "spot-first", "onDemandBase": 1}}), pod=pod)
    assert (told.own_strategy, told.strategy) == ("spot-first", "on-demand-only")
    assert (told.is_marked, told.is_critical, set(told.scores)) == (True, False, {"d1", "d2"})


@pytest.mark.parametrize(
    ("spec", "reads_usage", "reads_prices"),
    [
        ({"rules": [a_rule("cost-aware")]}, True, True),
        ({"rules": [a_rule("load-aware")]}, True, False),
        ({"rules": [a_rule("spot-risk")]}, False, False),
        ({"preferred_cpu": prefers(50, "50%")}, True, False),
    ],
)
def test_what_is_read_of_nodes_and_what_is_not_known_is_counted(
    spec: dict[str, Any], reads_usage: bool, reads_prices: bool
) -> None:
    told = report(a_policy(strategy="", **spec))
    assert (told.reads_usage, told.reads_prices) == (reads_usage, reads_prices)
    assert (told.unmeasured, told.unpriced, told.listed) == (3, 2, 1)
    assert [term.weight for term in told.terms if term.points] != []
    assert set(told.points) == {"d1", "d2", "s1", "s2"}


def test_points_are_by_name_and_rules_that_rank_are_named() -> None:
    told = report(a_policy(strategy="spot-preferred", rules=[a_rule("cost-aware", "prioritize")]))
    assert told.ranks == ("cost-aware",)
    assert told.weight == DEFAULT_ENTRY.weight
    assert told.points["s1"] > told.points["d1"]
    assert told.scores["s1"] > told.scores["d1"]
    assert all(0 <= points <= 100 for points in told.points.values())


def test_a_policy_that_observes_is_told_by_what_it_would_have_refused() -> None:
    told = report(a_policy(strategy="spot-only", mode="Observe"))
    assert not told.is_enforced
    assert told.observed == {"not spot: spot-only (PlacementPolicy default/web)": 2}
    assert len(told.scores) == 4
    assert told.notes == (
        "PlacementPolicy default/web observes only: it would have kept 2 of 4 nodes: "
        "2 not spot: spot-only (PlacementPolicy default/web).",
    )


def test_a_fallback_and_a_cluster_with_no_node_that_fits_are_told() -> None:
    told = report(a_policy(strategy="spot-first"), nodes=[steady("d1"), steady("d2")])
    assert (told.is_fallback, len(told.notes)) == (True, 1)
    told = report(a_cluster_policy("all", strategy="spot-first"), pod=a_pod(cpu="900"))
    assert (told.alone, told.offered, told.notes, told.scores, told.unmeasured) == ("", 0, (), {}, 0)
