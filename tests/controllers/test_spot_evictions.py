"""Pods that no surge replaces are evicted in turn, through their budgets, while there is time."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from builders import a_node, a_pod
from wukong.actions import DONE, Delete, Evict, Note, Outcome, Patch
from wukong.api.apps import Deployment, PodDisruptionBudget, ReplicaSet, StatefulSet
from wukong.api.core import NEVER_MOVE, Node, Pod, PodCondition, Taint, Toleration
from wukong.api.kubevirt import VirtualMachineInstance
from wukong.api.meta import LabelSelector, Object, OwnerReference
from wukong.api.placement import PlacementPolicy
from wukong.api.resources import Key
from wukong.api.spot import Move
from wukong.api.times import format_time
from wukong.controllers.spot.deadlines import LAST_SECONDS
from wukong.controllers.spot.evictions import LOOK_SECONDS, SpotEvictions
from wukong.controllers.spot.marks import COST, COST_BEFORE, MOVING
from wukong.controllers.spot.moves import REVERTED, SURGING
from wukong.controllers.spot.notices import Course
from wukong.controllers.spot.pending_evictions import PATIENCE
from wukong.controllers.spot.records import RECORD, Record, format_record
from wukong.controllers.spot.start_times import StartTimes
from wukong.placement.leaving_nodes import NOTICE
from wukong.placement.rules import BUILT_IN
from wukong.semantics.start_time import MOST_SECONDS
from wukong.state import State

NOW = 1_800_000_000.0
KEY = Key("", "s1")
GRACE = 30


def leaving(name: str = "s1", seconds: float | None = 120.0, course: Course = Course.RECLAIM) -> Node:
    node = a_node(name)
    at = "" if seconds is None else format_time(NOW + seconds)
    record = Record(source="test", course=course, seen=format_time(NOW), deadline=at, cordoned=True)
    node.metadata.annotations[RECORD] = format_record(record)
    node.spec.unschedulable = True
    return node


def pod(name: str, node: str = "s1", *, kind: str = "StatefulSet", owner: str = "db", **more: Any) -> Pod:
    is_ready = more.pop("is_ready", True)
    built = a_pod(name, node=node, labels={"app": owner}, **more)
    built.metadata.uid, built.status.phase = f"uid-{name}", "Running"
    built.spec.termination_grace_period_seconds = GRACE
    built.status.conditions = [PodCondition(type="Ready", status=str(is_ready))]
    if kind:
        group = {"VirtualMachineInstance": "kubevirt.io/v1", "Job": "batch/v1"}.get(kind, "apps/v1")
        reference = OwnerReference(name=owner, kind=kind, api_version=group, uid=owner, controller=True)
        built.metadata.owner_references = [reference]
    return built


def a_workload(kind: type[Any], name: str, replicas: int, **spec: Any) -> Any:
    meta = {"name": name, "namespace": "default", "uid": name}
    return msgspec.convert({"metadata": meta, "spec": {"replicas": replicas, **spec}}, kind)


def a_budget(allowed: int, name: str = "db") -> PodDisruptionBudget:
    spec = {"selector": {"matchLabels": {"app": "db"}}}
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": spec,
            "status": {"disruptionsAllowed": allowed},
        },
        PodDisruptionBudget,
    )


def look(*objects: Object, now: float = NOW) -> Outcome:
    state = State()
    for subject in objects:
        state.apply("ADDED", subject)
    return SpotEvictions(BUILT_IN).reconcile(KEY, state, now)


def evicted_by(outcome: Outcome) -> list[str]:
    return [action.key.name for action in outcome.actions if isinstance(action, Evict)]


DB, ROOM = a_workload(StatefulSet, "db", 3), a_node("d1")
SET = [pod("db-0"), pod("db-1"), pod("db-2", "d1")]


def test_one_pod_of_a_stateful_set_is_evicted_at_a_time() -> None:
    outcome = look(leaving(), ROOM, DB, *SET)
    assert evicted_by(outcome) == ["db-0"]
    assert outcome.requeue_after == LOOK_SECONDS


@pytest.mark.parametrize(
    "others",
    [
        [pod("db-1"), pod("db-2", "d1", is_ready=False)],
        [pod("db-1")],  # one has not come again yet
    ],
    ids=["not ready", "missing"],
)
def test_the_next_waits_until_all_others_are_ready(others: list[Pod]) -> None:
    assert evicted_by(look(leaving(), ROOM, DB, pod("db-0"), *others)) == []


def test_of_two_nodes_that_leave_only_one_gives_up_a_pod_of_a_controller() -> None:
    objects = [leaving(), leaving("s2"), ROOM, DB, pod("db-0", "s2"), pod("db-1"), pod("db-2", "d1")]
    assert evicted_by(look(*objects)) == []  # db-0 is the other node's
    assert evicted_by(look(*objects, now=NOW + 120 - GRACE - LAST_SECONDS)) == ["db-1"]


def test_a_pod_that_no_node_takes_stays_until_the_last_moment() -> None:
    big = [pod("db-0", cpu="3"), pod("db-1", "d1", cpu="3"), pod("db-2", "d1", cpu="1")]
    assert evicted_by(look(leaving(), ROOM, DB, *big)) == []
    assert evicted_by(look(leaving(), ROOM, DB, *big, now=NOW + 120 - GRACE - LAST_SECONDS)) == ["db-0"]


@pytest.mark.parametrize(("budgets", "evicted"), [([1], ["db-0"]), ([0], []), ([2, 2], [])])
def test_budgets_are_asked_first(budgets: list[int], evicted: list[str]) -> None:
    covering = [a_budget(allowed, f"b{index}") for index, allowed in enumerate(budgets)]
    assert evicted_by(look(leaving(), ROOM, DB, *SET, *covering)) == evicted


def two_nodes(*objects: Object) -> tuple[State, SpotEvictions]:
    """db-0 on s2, db-1 on s1, and s1 was written down first: db-1 is evicted, and the mirror does not show that."""
    state, controller = State(), SpotEvictions(BUILT_IN)
    for subject in (leaving(), a_node("s2"), ROOM, DB, pod("db-0", "s2"), pod("db-1"), pod("db-2", "d1"), *objects):
        state.apply("ADDED", subject)
    assert evicted_by(controller.reconcile(KEY, state, NOW)) == ["db-1"]
    state.apply("MODIFIED", leaving("s2"))
    return state, controller


def test_what_was_evicted_a_moment_ago_counts_before_the_mirror_shows_it() -> None:
    state, controller = two_nodes()
    assert evicted_by(controller.reconcile(Key("", "s2"), state, NOW)) == []
    assert evicted_by(controller.reconcile(KEY, state, NOW)) == []  # nor is it evicted again


def test_a_budget_counts_as_used_until_it_shows_the_eviction_itself() -> None:
    other = Key("", "s2")
    state, controller = two_nodes(a_budget(1))
    state.apply("MODIFIED", leaving("s2", seconds=3.0))  # its last moment is near: then only budgets count
    going = pod("db-1")
    going.metadata.deletion_timestamp = format_time(NOW + GRACE)
    state.apply("MODIFIED", going)
    assert evicted_by(controller.reconcile(other, state, NOW + 2)) == []
    counted = a_budget(1)  # somebody else is ready again meanwhile
    counted.metadata.resource_version = "2"
    state.apply("MODIFIED", counted)
    assert evicted_by(controller.reconcile(other, state, NOW + 2)) == ["db-0"]


def test_a_failed_eviction_is_tried_again_and_holds_nobody_up_for_long() -> None:
    state, controller = two_nodes()
    state.attempts.record_failure(controller.name, KEY, "ServerFailed: 503", NOW)
    assert evicted_by(controller.reconcile(Key("", "s2"), state, NOW + 1)) == []
    assert evicted_by(controller.reconcile(Key("", "s2"), state, NOW + PATIENCE)) == ["db-0"]


def test_a_budget_that_was_not_counted_since_it_changed_allows_nothing() -> None:
    changed = a_budget(1)
    changed.metadata.generation = 2
    assert evicted_by(look(leaving(), ROOM, DB, *SET, changed)) == []


def test_a_budget_is_not_spent_twice_at_the_last_moment() -> None:
    objects = [leaving(), ROOM, DB, *SET]
    last = NOW + 120 - GRACE - LAST_SECONDS
    assert evicted_by(look(*objects, now=last)) == ["db-0", "db-1"]
    assert evicted_by(look(*objects, a_budget(1), now=last)) == ["db-0"]


@pytest.mark.parametrize(
    ("subject", "is_said"),
    [
        (pod("agent", kind="DaemonSet"), False),
        (pod("bare", kind=""), True),
        (pod("static", kind="Node"), False),
    ],
    ids=["DaemonSet", "bare", "static"],
)
def test_who_is_left_alone(subject: Pod, *, is_said: bool) -> None:
    outcome = look(leaving(), ROOM, subject, now=NOW + 119)
    assert evicted_by(outcome) == []
    assert any(isinstance(action, Note) and action.reason == "CannotMove" for action in outcome.actions) == is_said


def test_a_pod_without_a_controller_is_named_once() -> None:
    controller, state = SpotEvictions(BUILT_IN), State()
    for subject in (leaving(), pod("bare", kind="")):
        state.apply("ADDED", subject)
    assert len(controller.reconcile(KEY, state, NOW).actions) == 1
    assert controller.reconcile(KEY, state, NOW + 2) == DONE


def test_a_pod_that_nobody_may_move_is_left_alone() -> None:
    fixed = pod("db-0")
    fixed.metadata.annotations = {NEVER_MOVE: "true"}
    assert evicted_by(look(leaving(), ROOM, DB, fixed, *SET[1:], now=NOW + 119)) == ["db-1"]


@pytest.mark.parametrize("course", [Course.DRAIN, Course.RECOMMEND, Course.LOST])
def test_only_a_node_whose_machine_goes_is_emptied(course: Course) -> None:
    assert look(leaving(course=course), ROOM, DB, *SET) == DONE


def test_jobs_are_evicted_and_start_again_elsewhere() -> None:
    assert evicted_by(look(leaving(), ROOM, pod("report", kind="Job", owner="report"))) == ["report"]


def test_the_higher_priority_goes_first() -> None:
    low, high = pod("a", kind="Job", owner="a"), pod("b", kind="Job", owner="b")
    low.spec.priority, high.spec.priority = 1, 100
    assert evicted_by(look(leaving(), ROOM, low, high)) == ["b", "a"]


def a_replicated(phase: str | None, **spec: Any) -> list[Object]:
    """A Deployment of one pod on the leaving node, and its Move if there is one."""
    deployment, replica_set = a_workload(Deployment, "web", 1, **spec), a_workload(ReplicaSet, "web-1", 1)
    replica_set.metadata.owner_references = [
        OwnerReference(name="web", kind="Deployment", api_version="apps/v1", uid="web", controller=True)
    ]
    body = {
        "metadata": {"name": "deployment.web", "namespace": "default"},
        "spec": {"owner": {"kind": "Deployment", "name": "web", "uid": "web"}, "original": 1, "surged": 2},
        "status": {"phase": phase},
    }
    moves = [] if phase is None else [msgspec.convert(body, Move)]
    return [deployment, replica_set, pod("w", kind="ReplicaSet", owner="web-1"), *moves]


@pytest.mark.parametrize(
    ("phase", "spec", "evicted"),
    [
        (None, {}, []),  # its Move will come
        (SURGING, {}, []),
        (REVERTED, {}, ["w"]),
        (None, {"paused": True}, ["w"]),
    ],
)
def test_who_is_being_replaced_is_not_evicted(phase: str | None, spec: dict[str, Any], evicted: list[str]) -> None:
    assert evicted_by(look(leaving(), ROOM, *a_replicated(phase, **spec))) == evicted


def test_at_the_last_moment_a_move_that_is_not_done_is_not_waited_for() -> None:
    objects = [leaving(), ROOM, *a_replicated(SURGING)]
    last = NOW + 120 - GRACE - LAST_SECONDS
    assert evicted_by(look(*objects, now=last - 1)) == []
    assert evicted_by(look(*objects, now=last)) == ["w"]


def test_of_a_short_notice_two_thirds_are_for_replacements() -> None:
    objects = [leaving(seconds=30.0), ROOM, *a_replicated(SURGING)]
    assert evicted_by(look(*objects, now=NOW + 19)) == []
    assert evicted_by(look(*objects, now=NOW + 20)) == ["w"]


def test_without_a_deadline_there_is_no_last_moment() -> None:
    assert evicted_by(look(leaving(seconds=None), ROOM, *a_replicated(SURGING), now=NOW + 9999)) == []


@pytest.mark.parametrize(("evacuates_from", "evicted"), [("", ["launcher"]), ("s1", [])])
def test_a_virtual_machine_is_asked_to_leave_once(evacuates_from: str, evicted: list[str]) -> None:
    instance = msgspec.convert(
        {
            "metadata": {"name": "vm", "namespace": "default", "uid": "vm"},
            "status": {"evacuationNodeName": evacuates_from},
        },
        VirtualMachineInstance,
    )
    launcher = pod("launcher", kind="VirtualMachineInstance", owner="vm")
    assert evicted_by(look(leaving(), ROOM, instance, launcher)) == evicted


# ---- the deadline


LAST = NOW + 120 - GRACE - LAST_SECONDS


def a_policy(choice: str, mode: str = "Enforce", app: str = "db") -> PlacementPolicy:
    spec = {"selector": {"matchLabels": {"app": app}}, "onDeadline": choice, "mode": mode}
    return msgspec.convert({"metadata": {"name": "p", "namespace": "default"}, "spec": spec}, PlacementPolicy)


def deleted_by(outcome: Outcome) -> list[str]:
    return [action.key.name for action in outcome.actions if isinstance(action, Delete)]


def notes_of(outcome: Outcome, reason: str) -> list[str]:
    return [action.text for action in outcome.actions if isinstance(action, Note) and action.reason == reason]


def test_who_cannot_be_saved_is_named_before_it_dies_with_the_budget_and_who_uses_it_up() -> None:
    objects = [leaving(), ROOM, DB, pod("db-0"), pod("db-2", "d1", is_ready=False), a_budget(0)]
    assert notes_of(look(*objects, now=LAST - 1), "GoesWithNode") == []
    (text,) = notes_of(look(*objects, now=LAST), "GoesWithNode")
    assert "PodDisruptionBudget db allows no disruption, for db-2 is not ready" in text
    assert format_time(NOW + 120) in text


@pytest.mark.parametrize(
    ("policy", "is_deleted"),
    [
        (a_policy("Delete"), True),
        (a_policy("Leave"), False),
        (a_policy("Delete", mode="Observe"), False),
        (a_policy("Delete", app="other"), False),
    ],
)
def test_a_policy_says_whether_a_pod_is_deleted_past_its_budget_at_the_last_moment(
    policy: PlacementPolicy, *, is_deleted: bool
) -> None:
    objects = [leaving(), ROOM, DB, *SET, a_budget(0), policy]
    assert deleted_by(look(*objects, now=LAST - 1)) == []
    outcome = look(*objects, now=LAST)
    assert (evicted_by(outcome), deleted_by(outcome)) == ([], ["db-0", "db-1"] if is_deleted else [])
    assert bool(notes_of(outcome, "DeletedAtDeadline")) == is_deleted


def test_a_pod_whose_budget_allows_it_is_evicted_and_not_deleted() -> None:
    outcome = look(leaving(), ROOM, DB, *SET, a_budget(2), a_policy("Delete"), now=LAST)
    assert (evicted_by(outcome), deleted_by(outcome)) == (["db-0", "db-1"], [])


def test_the_pod_of_a_virtual_machine_is_never_deleted() -> None:
    launcher = pod("launcher", kind="VirtualMachineInstance", owner="vm")
    objects = [leaving(), ROOM, launcher, a_policy("Delete", app="vm")]
    covering = a_budget(0)
    covering.spec.selector = LabelSelector(match_labels={"app": "vm"})
    assert deleted_by(look(*objects, covering, now=LAST)) == []


# ---- marks


def test_a_pod_is_marked_as_moving_just_before_it_is_evicted() -> None:
    patch, evict = look(leaving(), ROOM, DB, *SET).actions
    assert isinstance(patch, Patch)
    assert patch.patch.body["metadata"] == {"uid": "uid-db-0", "annotations": {MOVING: "s1"}}
    assert isinstance(evict, Evict)


def test_the_mark_goes_when_the_notice_is_withdrawn() -> None:
    marked = pod("db-0")
    marked.metadata.annotations = {MOVING: "s1", COST: "5"}
    (patch,) = look(a_node("s1"), DB, marked).actions
    assert isinstance(patch, Patch)
    assert patch.patch.body["metadata"]["annotations"] == {MOVING: None, COST_BEFORE: None}


# ---- the order, and room


def started_in(subject: Pod, seconds: float) -> Pod:
    """A pod that was ready so long after it got its node."""
    subject.status.conditions = [
        PodCondition("PodScheduled", "True", last_transition_time=format_time(NOW - 5000)),
        PodCondition("Ready", "True", last_transition_time=format_time(NOW - 5000 + seconds)),
    ]
    return subject


def test_of_equal_margins_the_slowest_start_goes_first_then_the_longest_grace() -> None:
    slow = [started_in(pod("z-0", owner="z"), 90), started_in(pod("z-1", "d1", owner="z"), 70)]
    quick = [started_in(pod("b-0", owner="b"), 10), started_in(pod("b-1", "d1", owner="b"), 10)]
    patient = [pod("c-0", owner="c"), pod("c-1", "d1", owner="c")]
    patient[0].spec.termination_grace_period_seconds = 60
    sets = [a_workload(StatefulSet, name, 2) for name in "zbc"]
    assert evicted_by(look(leaving(), ROOM, *sets, *slow, *quick, *patient)) == ["z-0", "b-0", "c-0"]


@pytest.mark.parametrize(
    ("seconds", "learnt"),
    [([20, 30, 400], 30), ([0], 0), ([-5], 0), ([MOST_SECONDS + 1], 0), ([], 0), ([8], 8)],
)
def test_a_start_is_learnt_from_the_pods_of_the_controller(seconds: list[float], learnt: float) -> None:
    state = State()
    others = [started_in(pod(f"db-{number}"), value) for number, value in enumerate(seconds)]
    for subject in (*others, pod("db-9")):
        state.apply("ADDED", subject)
    assert StartTimes(state).find(pod("db-9")) == learnt


def test_of_equal_priority_the_thinnest_margin_goes_first_then_the_longest_grace() -> None:
    many = [pod("a-1", kind="Job", owner="a"), pod("a-2", "d1", kind="Job", owner="a")]
    patient = pod("c", kind="Job", owner="c")
    patient.spec.termination_grace_period_seconds = 60
    outcome = look(leaving(), ROOM, *many, pod("b", kind="Job", owner="b"), patient)
    assert evicted_by(outcome) == ["c", "b", "a-1"]


@pytest.mark.parametrize("priority", [0, 1000])
def test_a_node_with_a_notice_that_is_not_written_down_yet_is_no_place_to_go(priority: int) -> None:
    """Nodes of one pool get notice in the same moment: one of them is written down before the other."""
    noticed = a_node("s2")
    noticed.metadata.annotations[NOTICE] = "2m"
    job = pod("job", kind="Job", owner="job", cpu="3")
    job.spec.priority = priority
    assert evicted_by(look(leaving(), noticed, a_node("d1", cpu="1"), job)) == []
    assert evicted_by(look(leaving(), a_node("s2"), a_node("d1", cpu="1"), job)) == ["job"]


def test_room_that_one_pod_takes_the_next_does_not_get() -> None:
    jobs = [pod(name, kind="Job", owner=name, cpu="3") for name in ("a", "b")]
    assert evicted_by(look(leaving(), a_node("d1"), *jobs)) == ["a"]
    assert evicted_by(look(leaving(), a_node("d1"), a_node("d2"), *jobs)) == ["a", "b"]


def test_lower_pods_make_room_if_they_find_a_place_themselves_and_else_it_is_said() -> None:
    high = pod("high", kind="Job", owner="high", cpu="3")
    high.spec.priority = 1000
    victim = pod("low", "d1", kind="Job", owner="low", cpu="3")
    victim.spec.priority = 1
    objects = [leaving(), ROOM, high, victim]
    outcome = look(*objects)
    assert evicted_by(outcome) == []
    (text,) = notes_of(outcome, "WouldCascade")
    assert "it would preempt default/low" in text
    only_low = a_node("d2")  # room for the victim alone
    only_low.spec.taints = [Taint(key="low", effect="NoSchedule")]
    victim.spec.tolerations = [Toleration(key="low", operator="Exists")]
    outcome = look(*objects, only_low)
    assert (evicted_by(outcome), notes_of(outcome, "WouldCascade")) == (["high"], [])
