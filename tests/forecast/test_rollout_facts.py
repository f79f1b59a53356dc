"""What is known of rollouts on real clusters, as plans: which ones complete, which never end, and what they cost."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from forecast.clusters import (
    INLINE,
    a_deployment,
    a_term,
    nodes,
    plan_on,
    preferred,
    required,
    rolling,
    running_on,
    with_image,
)
from wukong.api.node_groups import NodeGroup, NodeTemplate
from wukong.app.snapshots import load, make_baseline
from wukong.embedded.scenario import Scenario
from wukong.forecast import PlannedChange, make_plan


class Case(NamedTuple):
    nodes: int
    replicas: int
    verdict: str
    fewest: int
    affinity: dict[str, Any] | None = required()
    strategy: dict[str, Any] | None = None
    cpu: str = "500m"


OF_OWN_VERSION = required(a_term(matchLabelKeys=["pod-template-hash"]))
OF_OTHER_VERSIONS = required(a_term(mismatchLabelKeys=["pod-template-hash"]))
IMAGE_CHANGES = {
    "three on three nodes, one each": Case(3, 3, "never-ends", 3),
    "two on two nodes, one each": Case(2, 2, "never-ends", 2),
    "four on four: a quarter may be unavailable": Case(4, 4, "completes", 3),
    "three on four: there is a spare node": Case(4, 3, "completes", 3),
    "no surge, one unavailable": Case(3, 3, "completes", 2, strategy=rolling(0, 1)),
    "apart from pods of their own version": Case(3, 3, "completes", 3, OF_OWN_VERSION),
    "apart from other versions, no spare node": Case(3, 3, "never-ends", 3, OF_OTHER_VERSIONS),
    "apart from other versions, one spare node": Case(4, 3, "completes", 3, OF_OTHER_VERSIONS),
    "apart if possible": Case(3, 3, "completes", 3, preferred()),
    "all old pods go first": Case(3, 3, "completes", 0, strategy={"type": "Recreate"}),
    "full nodes, no room for the surge": Case(3, 3, "never-ends", 3, None, cpu="3"),
    "full nodes, no surge": Case(3, 3, "completes", 2, None, rolling(0, 1), cpu="3"),
}


@pytest.mark.parametrize("title", IMAGE_CHANGES)
def test_a_change_of_image_goes_as_on_a_real_cluster(title: str) -> None:
    case = IMAGE_CHANGES[title]
    web = a_deployment(replicas=case.replicas, affinity=case.affinity, strategy=case.strategy, cpu=case.cpu)
    plan = plan_on([*nodes(case.nodes), web], with_image(web))
    forecast = plan.shown.workloads["default/web"]
    assert (plan.verdict.kind, forecast.min_available) == (case.verdict, case.fewest), plan.verdict
    assert plan.verdict.is_safe is (case.verdict == "completes")
    assert [(change.action, change.rollout.starts) for change in plan.changes if change.rollout] == [("change", True)]
    is_stuck = case.verdict == "never-ends"
    assert (forecast.completed_at is None, bool(plan.shown.blocked), forecast.available) == (
        is_stuck,
        is_stuck,
        case.replicas,
    )
    last = forecast.course[-1]
    assert (last.old, last.new, last.pending) == ((case.replicas, 1, 1) if is_stuck else (0, case.replicas, 0))
    assert plan.shown.nodes.needed == []  # what it is to be in the end fits: only the way there is barred


SEED_002 = {  # two pods on one node get a rule that wants them apart
    2: ("never-ends", 2),  # the second new pod is barred by the last old one, and by the first new one
    3: ("completes", 2),
}


@pytest.mark.parametrize("count", SEED_002)
def test_a_rule_that_is_added_to_two_pods_on_one_node(count: int) -> None:
    web = a_deployment(replicas=2)
    documents = [*nodes(count), web, *running_on(web, "node-1", "node-1")]
    plan = plan_on(documents, a_deployment(replicas=2, affinity=required()), seeds=range(1, 5))
    forecast = plan.shown.workloads["default/web"]
    assert (plan.verdict.kind, forecast.min_available) == SEED_002[count], plan.verdict
    assert len(plan.outcomes) == 1
    assert plan.changes[0].rollout is not None
    assert plan.changes[0].rollout.causes == ["spec.affinity"]


EIGHT_PODS = {  # on two nodes of six slots each, doubled by the update: what seed 003 tells, and what was recorded
    "no rule": (None, 3),
    "required": (OF_OTHER_VERSIONS, 4),
}


@pytest.mark.parametrize("title", EIGHT_PODS)
def test_nodes_come_for_a_doubled_rollout_and_go_again_without_a_pod_restarted(title: str) -> None:
    affinity, most = EIGHT_PODS[title]
    web = a_deployment(replicas=8, affinity=affinity, cpu="1", strategy=rolling("100%", 0))
    documents = [*nodes(2, cpu="6"), web, *running_on(web, *["node-1", "node-2"] * 4)]
    labels = {"pool": "workers"}
    for node in documents[:2]:
        node["metadata"]["labels"] |= labels
    template = NodeTemplate(labels=labels, capacity={"cpu": "6", "memory": "16Gi"})
    group = NodeGroup(name="workers", min=2, max=6, boot_seconds=30, match_labels=labels, template=template)
    baseline = make_baseline(load(documents), Scenario(node_groups=[group], start_seconds=15))
    plan = make_plan(baseline, PlannedChange(documents=(with_image(web),)), (1, 2), INLINE)
    forecast, shown = plan.shown.nodes, plan.shown.workloads["default/web"]
    assert (forecast.before, forecast.most, forecast.after) == (2, most, 2)
    assert (plan.verdict.kind, shown.min_available, shown.evicted, shown.up_to_date) == ("completes", 8, 0, 8)
    assert f"with {most - 2} more node" in plan.verdict.text


def test_what_does_not_fit_in_the_end_needs_nodes_and_says_how_many() -> None:
    web = a_deployment(replicas=3, affinity=required())
    plan = plan_on([*nodes(3), web], a_deployment(replicas=5, affinity=required()))
    assert plan.verdict.kind == "needs-nodes"
    assert plan.verdict.text == "Needs 2 nodes like node-1, in 2 of 2"
    assert [(needed.like, needed.count) for needed in plan.shown.nodes.needed] == [("node-1", 2)]
    (blocked,) = plan.shown.blocked
    assert (blocked.workload, blocked.others) == ("default/web", 1)
    assert [(reason.plugin, reason.nodes) for reason in blocked.reasons] == [("InterPodAffinity", 3)]
