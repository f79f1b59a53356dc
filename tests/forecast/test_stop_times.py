"""How long pods take to stop is learnt from those that were asked to, and plans say what they take for granted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given as draw
from hypothesis import strategies as st

from forecast.clusters import INLINE, Document, a_deployment, nodes, required, rolling, running_on, with_image
from forecast.test_hostile import VALUES
from wukong.api.kinds import DEPLOYMENTS
from wukong.api.resources import Key
from wukong.app.snapshots import load, make_baseline
from wukong.cli.views.plan import list_sections
from wukong.cluster.anonymize import anonymize_documents
from wukong.cluster.reduction import reduce_document
from wukong.embedded.actors.kubelet.durations import Durations, PodDurations
from wukong.embedded.scenario import Scenario
from wukong.embedded.store.documents import parse_time
from wukong.forecast import Plan, PlannedChange, PlanOptions, make_plan
from wukong.forecast.start_times import build_durations
from wukong.forecast.stop_times import (
    StopTime,
    find_sleep,
    find_stop_time,
    grace_of,
    learn_stop_times,
    seconds_stopping,
    seconds_to_stop,
)

WEB = a_deployment(affinity=required(), strategy=rolling(0, 1))
PLACE = DEPLOYMENTS.group_kind, Key("default", "web")


def time(second: int) -> str:
    return f"2026-11-02T09:{second // 60:02}:{second % 60:02}Z"


NOW = parse_time(time(120))


def deleted(asked: int, grace: int = 60, **status: object) -> Document:
    return {
        "metadata": {"deletionTimestamp": time(asked + grace), "deletionGracePeriodSeconds": grace},
        "status": {"phase": "Running", **status},
    }


def finished(*seconds: int) -> list[Document]:
    return [{"name": "web", "state": {"terminated": {"finishedAt": time(second)}}} for second in seconds]


RUNNING: Document = {"name": "web", "state": {"running": {}}}
EVICTED = [{"type": "DisruptionTarget", "status": "True", "lastTransitionTime": time(10)}]

STOPPED: dict[str, tuple[Document, float | None]] = {
    "until its container finished": (deleted(10, containerStatuses=finished(35)), 25.0),
    "until the last one did": (deleted(10, containerStatuses=finished(35, 12)), 25.0),
    "within a second": (deleted(10, containerStatuses=finished(10)), 0.0),
    "killed after its grace period": (deleted(10, 30, containerStatuses=finished(45)), 30.0),
    "one still runs": (deleted(10, containerStatuses=[*finished(35), RUNNING]), None),
    "it had ended before": (deleted(10, containerStatuses=finished(5)), None),
    "deleted by force": (deleted(10, 0, containerStatuses=finished(11)), None),
    "nobody asked it to": ({"status": {"phase": "Succeeded", "containerStatuses": finished(35)}}, None),
    "evicted by its kubelet": (
        {"status": {"phase": "Failed", "conditions": EVICTED, "containerStatuses": finished(17)}},
        7.0,
    ),
    "to be evicted, and runs": ({"status": {"phase": "Running", "conditions": EVICTED}}, None),
    "without containers": (deleted(10), None),
    "a time that is none": (deleted(10, containerStatuses=[{"state": {"terminated": {"finishedAt": "soon"}}}]), None),
}


@pytest.mark.parametrize("title", STOPPED)
def test_a_pod_teaches_only_what_its_times_say(title: str) -> None:
    pod, seconds = STOPPED[title]
    assert seconds_to_stop(pod) == seconds


def test_a_pod_that_still_stops_has_taken_so_long_already() -> None:
    assert seconds_stopping(deleted(100), NOW) == 20.0
    assert seconds_stopping(deleted(30), NOW) is None  # longer than it may: nobody is there to stop it
    assert seconds_stopping({"status": {"phase": "Running"}}, NOW) is None


HOOKS: dict[str, tuple[Any, float]] = {
    "the action": ({"sleep": {"seconds": 15}}, 15.0),
    "a command": ({"exec": {"command": ["sleep", "15"]}}, 15.0),
    "a shell": ({"exec": {"command": ["/bin/sh", "-c", "sleep 15"]}}, 15.0),
    "more than sleep": ({"exec": {"command": ["sh", "-c", "sleep 15 && nginx -s quit"]}}, 0.0),
    "another program": ({"exec": {"command": ["nginx", "-s", "quit"]}}, 0.0),
    "a request": ({"httpGet": {"port": 80}}, 0.0),
    "nonsense": ({"sleep": {"seconds": "15"}, "exec": {"command": "sleep 15"}}, 0.0),
}


@pytest.mark.parametrize("title", HOOKS)
def test_a_hook_that_only_sleeps_says_how_long_it_takes_at_least(title: str) -> None:
    hook, seconds = HOOKS[title]
    assert find_sleep({"spec": {"containers": [{"name": "a"}, {"lifecycle": {"preStop": hook}}]}}) == seconds


@draw(VALUES, VALUES, st.floats(0, 1e10))
def test_whatever_a_pod_says_it_is_read(value: Any, other: Any, now: float) -> None:
    pods: list[Document] = [
        {"metadata": {"deletionTimestamp": time(5), "deletionGracePeriodSeconds": value}, "status": {"phase": other}},
        {"spec": {"containers": value, "terminationGracePeriodSeconds": other}},
        {"spec": {"containers": [{"lifecycle": {"preStop": value}}]}, "status": {"containerStatuses": [other]}},
        deleted(5, containerStatuses=[{"state": {"terminated": {"finishedAt": value}}}]),
    ]
    for pod in pods:
        seconds_to_stop(pod)
        seconds_stopping(pod, now)
        assert 0 <= grace_of(pod) <= 86_400
        assert find_sleep(pod) >= 0


# ---- what a plan makes of it


def cluster(*leaving: Document) -> list[Document]:
    """Three pods that run, and beside them pods of the same workload that were asked to stop."""
    replica_set, *pods = running_on(WEB, "node-1", "node-2", "node-3")
    _, *others = running_on(WEB, *("node-4" for _ in leaving))
    for number, (pod, like) in enumerate(zip(others, leaving, strict=True)):
        pod["metadata"] = {**pod["metadata"], **like["metadata"], "name": f"leaving-{number}"}
        pod["metadata"]["finalizers"] = ["example.com/keep"]
        pod["status"] = like["status"]
    return [*nodes(4), WEB, replica_set, *pods, *others]


def test_the_median_counts_and_the_slowest_is_told() -> None:
    pods = [deleted(10, containerStatuses=finished(10 + took)) for took in (4, 6, 50)]
    expected = StopTime(seconds=6.0, slowest_seconds=50.0, limit_seconds=60.0, pods=3)
    assert learn_stop_times(load(cluster(*pods), NOW)) == {PLACE: expected}


@pytest.mark.parametrize("is_anonymous", [False, True])
def test_snapshots_keep_what_teaches_it(is_anonymous: bool) -> None:
    hooked = cluster(deleted(10, containerStatuses=finished(35)))
    hooked[-2]["spec"]["containers"][0]["lifecycle"] = {"preStop": {"sleep": {"seconds": 7}}}
    reduced = [reduce_document(document) for document in hooked]
    kept = anonymize_documents(reduced) if is_anonymous else reduced
    (stop_time,) = learn_stop_times(load(kept, NOW)).values()
    assert (stop_time.seconds, stop_time.source) == (25.0, "learnt")
    (stop_time,) = learn_stop_times(load(kept[:-1], NOW)).values()
    assert (stop_time.seconds, stop_time.source) == (7.0, "hook")


def plan_with(documents: list[Document], given: PodDurations = PodDurations()) -> Plan:  # noqa: B008
    start = load(documents, NOW)
    stop_times = learn_stop_times(start)
    baseline = make_baseline(start, Scenario(), build_durations({}, given, stop_times))
    options = PlanOptions(stop_times=stop_times, given_durations=given)
    return make_plan(baseline, PlannedChange(documents=(with_image(WEB),)), (1,), INLINE, options)


def lines_of(plan: Plan) -> list[str]:
    return [line for line in dict(list_sections(plan))["How long pods take"] if "stop" in line]


def test_a_plan_waits_for_pods_to_stop_as_long_as_they_did() -> None:
    plan = plan_with(cluster(deleted(10, containerStatuses=finished(35))))
    assert 75 <= plan.outcomes[0].seconds < 85  # three old pods, one after the other
    assert lines_of(plan) == ["default/web: 25 s to stop; as 1 pod took"]
    given = PodDurations(by_workload={PLACE: Durations(stop_seconds=2.0)})
    plan = plan_with(cluster(deleted(10, containerStatuses=finished(35))), given)
    assert plan.outcomes[0].seconds < 15
    assert lines_of(plan) == ["default/web: 2 s to stop; as --stop-seconds says"]


def test_what_is_not_known_is_said_to_be_so() -> None:
    plan = plan_with(cluster())
    assert plan.stop_times["default/web"] == StopTime(
        seconds=0.0, slowest_seconds=0.0, limit_seconds=30.0, source="unknown"
    )
    assert lines_of(plan) == [
        "default/web: to stop, not known: taken as at once, though 30 s are allowed. --stop-seconds says it."
    ]
    assert find_stop_time(PLACE, {}, PodDurations()).limit_seconds is None
