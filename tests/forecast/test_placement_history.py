"""Where pods were while a change was played: what is recorded of them, what is counted, and how much is kept."""

from __future__ import annotations

import pytest

from forecast.clusters import (
    Document,
    a_baseline,
    a_deployment,
    a_node,
    nodes,
    plan_on,
    required,
    rolling,
    running_on,
    with_image,
)
from wukong.embedded.scenario.format.fields import TimelineEntry
from wukong.forecast import PlannedChange, placement_history
from wukong.forecast.placement_history import BEFORE, PlacementHistory, record_placement
from wukong.forecast.play import PlayOptions

WEB = a_deployment(affinity=required(), strategy=rolling(0, 1))
OTHER = a_deployment("other", replicas=1)


def cluster() -> list[Document]:
    hosts = ("node-1", "node-2", "node-3")
    other = running_on(OTHER, "node-1", version="xyz")
    return [*nodes(3), a_node("spare"), WEB, OTHER, *running_on(WEB, *hosts), *other]


def record(change: PlannedChange | Document, most_nodes: int = 100) -> PlacementHistory:
    planned = change if isinstance(change, PlannedChange) else PlannedChange(documents=(change,))
    return record_placement(a_baseline(cluster()), planned, PlayOptions(), 1, most_nodes)


def places_at(history: PlacementHistory, end: float) -> list[tuple[str, str, str]]:
    spans = [(pod, pod.span_at(end)) for pod in history.pods]
    return sorted((span.node, pod.version, span.phase) for pod, span in spans if span and span.phase != "gone")


def test_a_rollout_begins_with_the_old_pods_and_ends_with_the_new_ones() -> None:
    history = record(with_image(WEB))
    assert places_at(history, 0.0) == [(f"node-{number}", "old", "ready") for number in (1, 2, 3)]
    assert [(version, phase) for _, version, phase in places_at(history, 1e9)] == [("new", "ready")] * 3
    for pod in history.pods:
        phases = [span.phase for span in pod.spans]
        assert phases[0] == "ready" if pod.version == "old" else phases[-1] == "ready"
        assert [span.at for span in pod.spans] == sorted({span.at for span in pod.spans})
        assert (pod.spans[0].at == BEFORE) == (pod.version == "old")


def test_the_same_seed_plays_what_the_plan_shows() -> None:
    plan = plan_on(cluster(), with_image(WEB), seeds=(1,))
    ready = [span.at for pod in record(with_image(WEB)).pods for span in pod.spans if span.phase == "ready"]
    assert round(max(ready)) == round(plan.shown.seconds)


def test_what_nothing_happens_to_is_counted() -> None:
    history = record(with_image(WEB))
    names = [node.name for node in history.nodes]
    assert len(names) + history.untouched_nodes == 4
    assert {pod.workload for pod in history.pods} == {"default/web"}
    assert history.untouched_pods == 1
    assert [node.other_pods for node in history.nodes if node.name == "node-1"] == [1]
    assert (history.omitted_nodes, history.omitted_pods) == (0, 0)


def test_a_drained_node_is_cordoned_and_its_pods_are_of_no_version() -> None:
    history = record(PlannedChange(steps=(TimelineEntry(at="0s", drain="node-1"),)))
    (node,) = [node for node in history.nodes if node.name == "node-1"]
    assert (node.phase_at(0.0), node.phase_at(1e9)) == ("ready", "cordoned")
    assert {pod.version for pod in history.pods} == {"other"}


def test_a_node_that_comes_was_not_there_before() -> None:
    history = record(PlannedChange(nodes=(a_node("node-9"),)))
    (node,) = history.nodes
    assert (node.name, node.phase_at(0.0), node.phase_at(1e9)) == ("node-9", "gone", "ready")
    assert history.untouched_nodes == 4


def test_more_than_a_page_can_show_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement_history, "MOST_PODS", 2)
    history = record(with_image(WEB), most_nodes=2)
    assert (len(history.nodes), len(history.pods)) == (2, 2)
    assert history.omitted_nodes >= 1
    assert history.omitted_pods >= 2
    shown = {node.name for node in history.nodes}
    assert all(span.node in shown | {""} for pod in history.pods for span in pod.spans)
