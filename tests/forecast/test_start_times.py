"""How long pods take is learnt from the conditions of those that run, and is what plans go by."""

from __future__ import annotations

from typing import Any

import pytest

from forecast.clusters import INLINE, Document, a_deployment, changed, nodes, running_on, with_image
from wukong.api.kinds import DEPLOYMENTS
from wukong.api.resources import Key
from wukong.app.snapshots import load, make_baseline
from wukong.cluster.anonymize import anonymize_documents
from wukong.cluster.reduction import reduce_document
from wukong.embedded.actors.kubelet.durations import Durations, PodDurations
from wukong.embedded.scenario import Scenario
from wukong.forecast import Plan, PlannedChange, PlanOptions, make_plan
from wukong.forecast.start_times import (
    StartTime,
    add_probe_delays,
    build_durations,
    find_start_time,
    learn_start_times,
    seconds_to_ready,
)

WEB = a_deployment()
PLACE = DEPLOYMENTS.group_kind, Key("default", "web")


def condition(kind: str, seconds: int, status: str = "True") -> Document:
    return {
        "type": kind,
        "status": status,
        "lastTransitionTime": f"2026-11-02T09:{seconds // 60:02}:{seconds % 60:02}Z",
    }


def cluster(*seconds: int) -> list[Document]:
    """Pods of `web`, each on its node, that took so long to be ready."""
    hosts = [f"node-{number}" for number in range(1, len(seconds) + 1)]
    replica_set, *pods = running_on(WEB, *hosts)
    for pod, took in zip(pods, seconds, strict=True):
        pod["status"] = {"phase": "Running", "conditions": [condition("PodScheduled", 0), condition("Ready", took)]}
    return [*nodes(3), WEB, replica_set, *pods]


def plan_with(documents: list[Document], given: PodDurations, *applied: Document) -> Plan:
    start = load(documents)
    times = add_probe_delays(learn_start_times(start), applied)
    baseline = make_baseline(start, Scenario(), build_durations(times, given))
    options = PlanOptions(start_times=times, given_durations=given)
    return make_plan(baseline, PlannedChange(documents=applied), (1,), INLINE, options)


def test_the_median_counts_and_the_slowest_is_told() -> None:
    assert learn_start_times(load(cluster(20, 22, 90))) == {
        PLACE: StartTime(seconds=22.0, slowest_seconds=90.0, pods=3, source="learnt")
    }


@pytest.mark.parametrize("is_anonymous", [False, True])
def test_snapshots_keep_what_teaches_it(is_anonymous: bool) -> None:
    reduced = [reduce_document(document) for document in cluster(20, 22, 90)]
    kept = anonymize_documents(reduced) if is_anonymous else reduced
    (time,) = learn_start_times(load(kept)).values()
    assert (time.seconds, time.slowest_seconds, time.pods) == (22.0, 90.0, 3)


PODS: dict[str, tuple[list[Any], float | None]] = {
    "as it should be": ([condition("PodScheduled", 5), condition("Ready", 47)], 42.0),
    "not ready": ([condition("PodScheduled", 5), condition("Ready", 47, "False")], None),
    "ready before it had a node": ([condition("PodScheduled", 47), condition("Ready", 5)], None),
    "within the same second": ([condition("PodScheduled", 5), condition("Ready", 5)], None),
    "after hours of trouble": (
        [condition("PodScheduled", 5), {**condition("Ready", 5), "lastTransitionTime": "2026-11-02T12:00:00Z"}],
        None,
    ),
    "without times": ([{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}], None),
    "without conditions": ([], None),
}


@pytest.mark.parametrize("title", PODS)
def test_a_pod_teaches_only_what_its_conditions_say(title: str) -> None:
    conditions, seconds = PODS[title]
    assert seconds_to_ready({"status": {"conditions": conditions}}) == seconds


def test_a_plan_takes_as_long_as_pods_did_before() -> None:
    plan = plan_with(cluster(20, 20, 20), PodDurations(), with_image(WEB))
    assert 60 <= plan.outcomes[0].seconds < 70  # three pods, one after the other
    assert plan.verdict.text == "Completes in about 1 min 1 s, in 1 of 1"
    assert plan.start_times["default/web"].source == "learnt"


def test_what_is_given_counts_for_more_and_probes_are_waited_for() -> None:
    given = PodDurations(by_workload={PLACE: Durations(start_seconds=100.0)})
    assert plan_with(cluster(20, 20, 20), given, with_image(WEB)).outcomes[0].seconds > 300
    of_all = PodDurations(of_all=Durations(start_seconds=1.0))
    assert plan_with(cluster(20, 20, 20), of_all, with_image(WEB)).outcomes[0].seconds < 10
    probed = with_image(WEB)
    probed["spec"]["template"]["spec"]["containers"][0]["readinessProbe"] = {
        "httpGet": {"port": 80},
        "initialDelaySeconds": 45,
    }
    plan = plan_with(cluster(20, 20, 20), PodDurations(), probed)
    assert plan.start_times["default/web"] == StartTime(seconds=45.0, slowest_seconds=45.0, source="probe")
    assert 135 <= plan.outcomes[0].seconds < 150


def test_min_ready_seconds_are_part_of_the_time() -> None:
    patient = changed(WEB, "spec.minReadySeconds", 30)
    plan = plan_with(cluster(20, 20, 20), PodDurations(), with_image(patient))
    assert 150 <= plan.outcomes[0].seconds < 165


def test_times_that_are_not_known_are_said_to_be_so() -> None:
    times: dict[Any, StartTime] = {}
    assert find_start_time(PLACE, times, PodDurations()).source == "unknown"
    assert find_start_time(PLACE, times, PodDurations(of_all=Durations(start_seconds=3.0))).source == "given"
    plan = plan_with([*nodes(3), WEB], PodDurations(), with_image(WEB))
    assert plan.verdict.text == "Completes, in 1 of 1"
