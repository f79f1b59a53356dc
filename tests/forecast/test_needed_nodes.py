"""How many nodes a plan says are missing: with as many the change needs none, with one fewer it still does."""

from __future__ import annotations

import pytest

from forecast.clusters import INLINE, a_baseline, a_deployment, a_node
from plan_comparison.changes import draw_change
from wukong.embedded.scenario.format.fields import TimelineEntry
from wukong.forecast import PlannedChange, make_plan
from wukong.forecast.node_copies import copy_node

ZONE = "topology.kubernetes.io/zone"
# Drains, rollouts, a scale and a StatefulSet; of 39 and 28 pods waited already before the change.
SEEDS = (2, 19, 25, 28, 39, 50)


@pytest.mark.parametrize("seed", SEEDS)
def test_as_many_nodes_as_a_plan_says_are_enough_and_one_fewer_is_not(seed: int) -> None:
    drawn = draw_change(seed)
    steps = (TimelineEntry(at="0s", drain=drawn.drained),) if drawn.drained else ()
    baseline, change = (
        a_baseline([*drawn.nodes, *drawn.before]),
        PlannedChange(documents=(*drawn.documents,), steps=steps),
    )
    plan = make_plan(baseline, change, (1,), INLINE)
    assert plan.verdict.kind == "needs-nodes", drawn.text
    (needed,) = plan.shown.nodes.needed
    example = next(node for node in drawn.nodes if node["metadata"]["name"] == needed.like)
    new_nodes = [copy_node(example, f"new-{number}") for number in range(needed.count)]
    for nodes, is_enough in ((new_nodes, True), (new_nodes[1:], False)):
        verdict = make_plan(baseline, change.with_nodes(*nodes), (1,), INLINE).verdict
        assert (verdict.kind != "needs-nodes") is is_enough, drawn.text


def test_every_shape_of_node_is_tried_before_none_is_said_to_help() -> None:
    """Fifteen shapes are commoner than the one that takes the pod: two nodes of each, and only one large one."""
    small = [a_node(f"small-{number}-{copy}", serial=str(number)) for number in range(15) for copy in "ab"]
    baseline = a_baseline([*small, a_node("large", cpu="8"), a_deployment("db", 1, cpu="6")])
    change = PlannedChange(documents=(a_deployment("db", 2, cpu="6"),))
    (needed,) = make_plan(baseline, change, (1,), INLINE).shown.nodes.needed
    assert (needed.like, needed.count) == ("large", 1)


def test_where_no_shape_alone_is_enough_nodes_of_several_are_counted() -> None:
    """Two per node, and as many in each of two zones: four pods more are two nodes, one in each."""
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    zones = [a_node(f"node-{zone}", cpu="4", **{ZONE: zone}) for zone in "ab"]
    web = [a_deployment("web", replicas, cpu="2") for replicas in (4, 8)]
    for document in web:
        document["spec"]["template"]["spec"]["topologySpreadConstraints"] = [spread]
    baseline, change = a_baseline([*zones, web[0]]), PlannedChange(documents=(web[1],))
    plan = make_plan(baseline, change, (1,), INLINE)
    assert plan.verdict.kind == "needs-nodes"
    assert {(needed.like, needed.count) for needed in plan.shown.nodes.needed} == {("node-a", 1), ("node-b", 1)}
    more = [copy_node(node, f"new-{number}") for number, node in enumerate(zones)]
    assert make_plan(baseline, change.with_nodes(*more), (1,), INLINE).verdict.kind == "completes"
