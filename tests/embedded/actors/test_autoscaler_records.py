"""Updates that were recorded with the real cluster-autoscaler 1.35.2 and two versions side by side.

Eight pods of 1 cpu on two nodes of 6, and eight of the next version beside them, which were promoted when all were
ready: then the old ones went. Recorded with blue-green updates and canaries of Argo Rollouts 1.10.1; here each version
is a Deployment, and the story does what the controller did. What counts is the autoscaler: most nodes at once, nodes in
the end, pods that had to move.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from wukong.api.node_groups import NodeGroup, NodeTemplate
from wukong.app.embedded import play_scenario
from wukong.embedded.scenario import Scenario, Story
from wukong.embedded.scenario.format.fields import DeleteTarget, NodeEntry, ScaleTarget, TimelineEntry
from wukong.ports import Document

UPDATE, PROMOTION = "100s", "400s"
SECOND_GONE = "430s"  # Argo's scaleDownDelaySeconds: 30 s after the third version came
SEEDS = range(1, 13)
CANARY_STEPS = ((2, 6), (4, 4), (6, 2), (8, 0))  # pods of the new and of the old version at 25, 50, 75 and 100 %


class Record(NamedTuple):
    layout: str
    most: int
    end: int
    moved: int  # pods of the new version
    fewest: int  # of the new version, once it was complete
    rule: str = ""  # required or preferred: apart from the version that is stable
    budget: int = 0


RECORDS = {
    "no rule": Record("4+4", 3, 2, 2, 6),
    "no rule, and the old ones fill a node": Record("6+2", 3, 2, 0, 8),
    "no rule, and a budget of seven": Record("4+4", 3, 2, 2, 7, budget=7),
    "versions apart": Record("4+4", 4, 2, 0, 8, "required"),
    "versions apart, and the old ones fill a node": Record("6+2", 4, 2, 0, 8, "required"),
    "versions preferred apart": Record("4+4", 3, 2, 2, 6, "preferred"),
}


@pytest.mark.parametrize("title", RECORDS)
def test_two_versions_side_by_side_take_and_give_back_as_many_nodes_as_recorded(title: str) -> None:
    record = RECORDS[title]
    budgets = [a_budget("v2", record.budget)] if record.budget else []
    timeline = [
        *lay_out(record.layout),
        TimelineEntry(at=UPDATE, apply=[a_version("v2", "v1", record.rule), *budgets]),
        TimelineEntry(at=PROMOTION, delete=DeleteTarget(kind="Deployment", name="v1")),
    ]
    story = play_scenario(a_scenario(record.layout, timeline), 1)
    assert story.findings == []
    assert (story.nodes.max, story.nodes.end) == (record.most, record.end)
    new = story.workloads["default/v2"]
    assert (new.available, new.restarts, new.min_available) == (8, record.moved, record.fewest)


@pytest.mark.slow
@pytest.mark.parametrize("promotion", ["500s", "630s", "2000s"])
def test_a_third_version_that_avoids_only_the_stable_one_takes_a_fifth_node_and_moves(promotion: str) -> None:
    """When the third version was promoted was not recorded: it does not matter."""
    timeline = [  # the nodes of the second version are there before: with it they may come one after the other
        *(TimelineEntry(at="0s", cordon=name) for name in ("workers-3", "workers-4")),
        *(TimelineEntry(at="40s", uncordon=name) for name in ("workers-3", "workers-4")),
        TimelineEntry(at=UPDATE, apply=a_version("v2", "v1", "required")),
        TimelineEntry(at=PROMOTION, apply=a_version("v3", "v1", "required")),
        TimelineEntry(at=SECOND_GONE, delete=DeleteTarget(kind="Deployment", name="v2")),
        TimelineEntry(at=promotion, delete=DeleteTarget(kind="Deployment", name="v1")),
    ]
    story = play_scenario(a_scenario("4+4", timeline, nodes=4), 1)
    assert (story.nodes.max, story.nodes.end) == (5, 2)
    newest = story.workloads["default/v3"]
    assert (newest.available, newest.restarts, newest.min_available) == (8, 2, 6)


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.parametrize(("rule", "most", "evicted", "fewest"), [("required", 3, 2, 6), ("", 2, 0, 8)])
def test_a_canary_takes_and_gives_back_as_many_nodes_as_recorded(
    rule: str, most: int, evicted: int, fewest: int
) -> None:
    """Steps of a quarter, by Argo's counts. Each lasts two thirds of the time until an unneeded node goes: so one goes
    in the second step. How long that time was when it was recorded is not known, nor who was where: by chance a third
    old pod moves, too."""
    timeline = []
    for number, (new, old) in enumerate(CANARY_STEPS):
        begin = 100 + 400 * number
        canary = TimelineEntry(at=f"{begin}s", apply=a_version("v2", "v1", rule, replicas=new))
        stable = ScaleTarget(kind="Deployment", name="v1", replicas=old)
        timeline += [canary, TimelineEntry(at=f"{begin + 30}s", scale=stable)]
    scenario, endings = a_scenario("4+4", timeline), list[tuple[int, int]]()
    for seed in SEEDS:
        story = play_scenario(scenario, seed)
        assert (story.nodes.max, story.nodes.end) == (most, 2)
        old_version, new_version = story.workloads["default/v1"], story.workloads["default/v2"]
        assert (new_version.restarts, new_version.available) == (0, 8)
        endings.append((old_version.restarts, count_fewest_ready(story)))
    others = {(3, 5)} if rule else set()
    assert set(endings) <= {(evicted, fewest), *others}
    assert 2 * endings.count((evicted, fewest)) > len(SEEDS)


def count_fewest_ready(story: Story) -> int:
    """Pods of all versions together, once all old ones were ready."""
    ready, fewest = 0, 8
    for event in story.events:
        ready += {"ready": 1, "stopping": -1}.get(event.text, 0)
        fewest = min(fewest, ready) if event.at >= 100 else fewest
    return fewest


def test_a_group_at_its_maximum_leaves_two_of_the_new_version_waiting() -> None:
    timeline = [TimelineEntry(at=UPDATE, apply=a_version("v2", "v1", "required"))]
    story = play_scenario(a_scenario("4+4", timeline, most=3), 1)
    assert story.nodes.max == 3
    assert (story.workloads["default/v1"].available, story.workloads["default/v2"].available) == (8, 6)


def a_scenario(layout: str, timeline: list[TimelineEntry], most: int = 10, nodes: int = 2) -> Scenario:
    template = NodeTemplate(capacity={"cpu": 6, "memory": "24Gi"})
    return Scenario(
        node_groups=[NodeGroup(name="workers", min=2, max=most, boot_seconds=2, template=template)],
        nodes=[NodeEntry(name_prefix="workers-", count=nodes, group="workers")],
        manifests=[a_version("v1", "", replicas=6 if layout == "6+2" else 8)],
        timeline=timeline,
        until="3h",
    )


def lay_out(layout: str) -> list[TimelineEntry]:
    """Six pods go to the only node that takes some, and then two more to the other one."""
    if layout == "4+4":
        return []
    return [
        TimelineEntry(at="0s", cordon="workers-2"),
        TimelineEntry(at="40s", uncordon="workers-2"),
        TimelineEntry(at="41s", scale=ScaleTarget(kind="Deployment", name="v1", replicas=8)),
    ]


def a_version(name: str, stable: str, rule: str = "", replicas: int = 8) -> Document:
    container = {"name": "main", "image": f"web:{name}", "resources": {"requests": {"cpu": "1"}}}
    labels = {"app": "web", "version": name}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"version": stable}}}
    rules: dict[str, Any] = {
        "required": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
        "preferred": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]},
    }
    affinity = {"affinity": {"podAntiAffinity": rules[rule]}} if rule else {}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], **affinity}}
    body = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": body}


def a_budget(version: str, least: int) -> Document:
    spec = {"minAvailable": least, "selector": {"matchLabels": {"version": version}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": version}, "spec": spec}
