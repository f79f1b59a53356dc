"""Make before break: replacements first, then exactly the pods that leave; every surge is taken back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from builders import a_node, a_pod
from wukong.actions import DONE, Create, Delete, Note, Outcome, Patch, Scale
from wukong.api.apps import Deployment, ManagedFieldsEntry, ReplicaSet
from wukong.api.autoscaling import HorizontalPodAutoscaler
from wukong.api.core import NEVER_MOVE, Node, Pod, PodCondition
from wukong.api.kinds import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, MOVES, PODS
from wukong.api.meta import Object, OwnerReference
from wukong.api.quota import ResourceQuota
from wukong.api.resources import Key
from wukong.api.spot import Move
from wukong.api.times import format_time
from wukong.controllers.spot.marks import COST, COST_BEFORE, LOWEST_COST, MOVING, unmark
from wukong.controllers.spot.moves import (
    RETURNED,
    RETURNING,
    REVERTED,
    SURGING,
    UNKNOWN_SECONDS,
    SpotMoves,
    moves_of_autoscaler,
    moves_of_node,
    moves_of_pod,
)
from wukong.controllers.spot.notices import Course
from wukong.controllers.spot.records import RECORD, Record, format_record
from wukong.state import Change, State

NOW = 1_800_000_000.0
KEY = Key("default", "deployment.web")


def leaving(name: str, deadline: float | None = NOW + 120) -> Node:
    node = a_node(name)
    at = format_time(deadline) if deadline is not None else ""
    record = Record(source="test", course=Course.RECLAIM, seen=format_time(NOW), deadline=at, cordoned=True)
    node.metadata.annotations[RECORD] = format_record(record)
    return node


def a_deployment(replicas: int = 2, *, generation: int = 1, **spec: Any) -> Deployment:
    meta = {"name": "web", "namespace": "default", "uid": "d", "generation": generation, "resourceVersion": "5"}
    return msgspec.convert({"metadata": meta, "spec": {"replicas": replicas, **spec}}, Deployment)


def a_set(replicas: int = 2, name: str = "web-1") -> ReplicaSet:
    replica_set = msgspec.convert(
        {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": {"replicas": replicas}}, ReplicaSet
    )
    owner = OwnerReference(name="web", kind="Deployment", api_version="apps/v1", uid="d", controller=True)
    replica_set.metadata.owner_references = [owner]
    return replica_set


def pod(name: str, node: str, *, owner: str = "web-1", is_ready: bool = True, is_marked: bool = False) -> Pod:
    built = a_pod(name, node=node)
    built.metadata.uid = f"uid-{name}"
    reference = OwnerReference(name=owner, kind="ReplicaSet", api_version="apps/v1", uid=owner, controller=True)
    built.metadata.owner_references, built.status.phase = [reference], "Running"
    built.status.conditions = [PodCondition(type="Ready", status=str(is_ready))]
    if is_marked:
        built.metadata.annotations = {MOVING: node, COST: LOWEST_COST}
    return built


def a_move(phase: str = "", *, status: dict[str, Any] | None = None, **spec: Any) -> Move:
    body = {
        "owner": {"kind": "Deployment", "name": "web", "uid": "d"},
        "original": 2,
        "surged": 3,
        "generation": 1,
        "pods": [{"name": "a", "uid": "uid-a", "node": "s1"}],
        "expires": format_time(NOW + 240),
        **spec,
    }
    meta = {"name": "deployment.web", "namespace": "default", "uid": "m", "resourceVersion": "9"}
    generation = {SURGING: 2, RETURNING: 2, RETURNED: 3}.get(phase, 0)
    seen = {"phase": phase, "generation": generation, "replicas": body["surged"] if phase else 0, "triedVersion": "1"}
    return msgspec.convert({"metadata": meta, "spec": body, "status": seen | (status or {})}, Move)


def an_autoscaler(least: int | None = 1, highest: int = 9, owner: str = "") -> HorizontalPodAutoscaler:
    target = {"kind": "Deployment", "name": "web"}
    meta = {"name": "h", "namespace": "default", "resourceVersion": "4"}
    spec = {"scaleTargetRef": target, "minReplicas": least, "maxReplicas": highest}
    autoscaler = msgspec.convert({"metadata": meta, "spec": spec}, HorizontalPodAutoscaler)
    if owner:
        autoscaler.metadata.owner_references = [OwnerReference(name="x", kind=owner, uid="x", controller=True)]
    return autoscaler


def look(*objects: Object, now: float = NOW, key: Key = KEY) -> Outcome:
    state = State()
    for subject in objects:
        state.apply("ADDED", subject)
    return SpotMoves().reconcile(key, state, now)


S1, D1, D2 = leaving("s1"), a_node("d1"), a_node("d2")
LEAVES, STAYS = pod("a", "s1", is_marked=True), pod("b", "d1")
COMES = pod("c", "d2")


def scale_of(outcome: Outcome) -> int | None:
    return next((action.replicas for action in outcome.actions if isinstance(action, Scale)), None)


def phase_of(outcome: Outcome) -> str | None:
    patches = (action for action in outcome.actions if isinstance(action, Patch) and action.resource == MOVES)
    statuses = (patch.patch.body.get("status", {}) for patch in patches)
    return next((status["phase"] for status in statuses if "phase" in status), None)


def has_deletion(outcome: Outcome) -> bool:
    return any(isinstance(action, Delete) and action.resource == MOVES for action in outcome.actions)


def test_a_move_is_written_before_anything_is_done() -> None:
    outcome = look(S1, D1, a_deployment(), a_set(), pod("a", "s1"), STAYS)
    (create,) = outcome.actions
    assert isinstance(create, Create)
    assert create.resource == MOVES
    spec = create.body["spec"]
    assert (spec["original"], spec["surged"], [it["name"] for it in spec["pods"]]) == (2, 3, ["a"])
    assert spec["expires"] == format_time(NOW + 240)
    assert create.body["metadata"]["ownerReferences"][0]["uid"] == "d"


def test_without_a_deadline_a_surge_lasts_ten_minutes_at_most() -> None:
    outcome = look(leaving("s1", None), D1, a_deployment(), a_set(), pod("a", "s1"), STAYS)
    assert isinstance(outcome.actions[0], Create)
    assert outcome.actions[0].body["spec"]["expires"] == format_time(NOW + UNKNOWN_SECONDS)


def test_the_leaving_pods_are_marked_before_the_workload_is_scaled() -> None:
    unmarked = pod("a", "s1")
    unmarked.metadata.annotations = {COST: "50"}
    outcome = look(S1, D1, a_deployment(), a_set(), unmarked, STAYS, a_move())
    (patch,) = outcome.actions
    assert isinstance(patch, Patch)
    assert patch.resource == PODS
    assert patch.patch.body["metadata"] == {
        "uid": "uid-a",
        "annotations": {MOVING: "s1", COST: LOWEST_COST, COST_BEFORE: "50"},
    }


def test_once_they_are_marked_the_workload_is_scaled_at_the_version_that_was_read() -> None:
    outcome = look(S1, D1, a_deployment(), a_set(), LEAVES, STAYS, a_move())
    trial, scale, note = outcome.actions
    assert isinstance(trial, Patch)
    assert trial.patch.body["status"]["triedVersion"] == "5"
    assert trial.patch.body["metadata"] == {"resourceVersion": "9"}
    assert scale == Scale(DEPLOYMENTS, Key("default", "web"), 3, resource_version="5")
    assert isinstance(note, Note)
    assert outcome.requeue_after == 240


def test_that_it_is_surged_is_noted_with_its_generation() -> None:
    outcome = look(S1, D1, a_deployment(3, generation=2), a_set(3), LEAVES, STAYS, a_move())
    (patch,) = outcome.actions
    assert isinstance(patch, Patch)
    noted = {"phase": SURGING, "message": "replacements start", "generation": 2, "replicas": 3}
    assert patch.patch.body["status"] == noted
    assert patch.patch.body["metadata"] == {"resourceVersion": "9"}


@pytest.mark.parametrize(
    ("others", "is_enough"),
    [
        ([STAYS], False),
        ([STAYS, pod("c", "d2", is_ready=False)], False),  # it would go before the marked one
        ([STAYS, pod("c", "")], False),
        ([STAYS, COMES], True),
        ([STAYS, COMES, pod("d", "d2", is_ready=False)], False),
        ([STAYS, pod("c", "s1")], False),  # it leaves as well
    ],
    ids=["missing", "not ready", "no node", "ready", "one more not ready", "on a leaving node"],
)
def test_the_workload_shrinks_only_when_all_others_are_ready(others: list[Pod], *, is_enough: bool) -> None:
    if others[-1].metadata.name == "c" and not others[-1].spec.node_name:
        others[-1].status.conditions = []
    outcome = look(S1, D1, D2, a_deployment(3, generation=2), a_set(3), LEAVES, *others, a_move(SURGING))
    assert (phase_of(outcome) == RETURNING) == is_enough
    assert scale_of(outcome) is None


def test_min_ready_seconds_are_waited_for_once_all_are_ready() -> None:
    objects = [S1, D1, D2, a_deployment(3, generation=2, minReadySeconds=15), a_set(3), LEAVES, STAYS, COMES]
    first = look(*objects, a_move(SURGING))
    (patch,) = first.actions
    assert isinstance(patch, Patch)
    assert patch.patch.body["status"]["readyAt"] == format_time(NOW)
    assert first.requeue_after == 16
    ready = a_move(SURGING, status={"readyAt": format_time(NOW)})
    assert look(*objects, ready, now=NOW + 10) == Outcome(requeue_after=6.0)
    assert phase_of(look(*objects, ready, now=NOW + 16)) == RETURNING


def test_it_gets_its_size_back_and_the_move_goes_when_its_pods_are_gone() -> None:
    returning = a_move(RETURNING)
    objects = [S1, D1, D2, LEAVES, STAYS, COMES, returning]
    assert scale_of(look(*objects, a_deployment(3, generation=2), a_set(3))) == 2
    shrunk = [a_deployment(2, generation=3), a_set(2)]
    assert phase_of(look(*objects, *shrunk)) == RETURNED
    returned = a_move(RETURNED)
    assert look(S1, D1, D2, LEAVES, STAYS, COMES, returned, *shrunk) == DONE  # its ReplicaSet has not chosen yet
    outcome = look(S1, D1, D2, STAYS, COMES, returned, *shrunk)
    assert has_deletion(outcome)
    assert scale_of(outcome) is None


def test_a_size_that_somebody_sets_after_the_return_is_theirs_even_if_it_was_ours_before() -> None:
    objects = [S1, D1, D2, LEAVES, STAYS, COMES, a_deployment(3, generation=4), a_set(3)]
    outcome = look(*objects, a_move(RETURNED))
    assert has_deletion(outcome)
    assert scale_of(outcome) is None


def test_more_pods_that_leave_join_the_move_first() -> None:
    outcome = look(
        S1, leaving("d1", NOW + 300), D2, a_deployment(3, generation=2), a_set(3), LEAVES, STAYS, a_move(SURGING)
    )
    (patch,) = outcome.actions
    assert isinstance(patch, Patch)
    spec = patch.patch.body["spec"]
    assert ([it["name"] for it in spec["pods"]], spec["surged"], spec["former"]) == (["a", "b"], 4, [3])
    assert spec["expires"] == format_time(NOW + 420)


def test_a_size_of_somebody_else_wins_and_is_said() -> None:
    outcome = look(S1, D1, a_deployment(7, generation=3), a_set(7), LEAVES, STAYS, a_move(SURGING))
    assert has_deletion(outcome)
    assert scale_of(outcome) == 7  # changes nothing, and is refused where what we read is old
    assert any(isinstance(action, Note) and "replicas to 7" in action.text for action in outcome.actions)


def set_by(deployment: Deployment, *managers: tuple[str, str]) -> Deployment:
    deployment.metadata.managed_fields = [
        msgspec.convert(
            {"manager": name, "subresource": subresource, "fieldsV1": {"f:spec": {"f:replicas": {}}}},
            ManagedFieldsEntry,
        )
        for name, subresource in managers
    ]
    return deployment


OURS, THEIRS, APPLIED = ("wukong", "scale"), ("kubectl", "scale"), ("argocd", "")


@pytest.mark.parametrize("phase", ["", SURGING, RETURNING])
@pytest.mark.parametrize(
    ("managers", "is_ours"),
    [([OURS], True), ([], True), ([THEIRS], False), ([("wukong", "")], False), ([OURS, APPLIED], False)],
)
def test_the_size_of_a_surge_is_ours_only_if_we_set_it(
    managers: list[tuple[str, str]], phase: str, *, is_ours: bool
) -> None:
    """Somebody may ask for exactly that size at the same time."""
    deployment = set_by(a_deployment(3, generation=2), *managers)
    outcome = look(S1, D1, deployment, a_set(3), LEAVES, STAYS, a_move(phase))
    assert (scale_of(outcome) == 2) == (is_ours and phase == RETURNING)
    assert (has_deletion(outcome) or phase_of(outcome) == RETURNED) == (not is_ours)


def test_a_size_that_was_never_tried_is_somebody_elses() -> None:
    objects = [S1, D1, a_deployment(3, generation=2), a_set(3), LEAVES, STAYS]
    assert has_deletion(look(*objects, a_move(status={"triedVersion": ""})))
    objects = [S1, leaving("d1"), a_deployment(), a_set(), LEAVES, STAYS]
    (patch,) = look(*objects, a_move(status={"triedVersion": ""})).actions
    assert isinstance(patch, Patch)
    assert patch.patch.body["spec"]["former"] == []  # it was never scaled to 3


def test_who_does_not_know_what_became_of_a_move_changes_nothing_else() -> None:
    """The Move is written first, at the version that was read; what follows is not done where that is refused."""
    beside: dict[str, Any] = {"autoscaler": {"name": "h", "minReplicas": 1}}
    surged = [S1, D1, D2, a_deployment(3, generation=2), a_set(3), LEAVES, STAYS, COMES]
    outcomes = [
        look(S1, D1, a_deployment(), a_set(), LEAVES, STAYS, an_autoscaler(), a_move(**beside)),
        look(*surged, a_move(RETURNING)),
        look(*surged, an_autoscaler(3), a_move(RETURNING, **beside)),
        look(*surged, an_autoscaler(1), a_move(RETURNING, **beside)),
    ]
    for outcome in outcomes:
        first = outcome.actions[0]
        assert isinstance(first, Patch)
        assert first.resource == MOVES
        assert first.patch.body["metadata"] == {"resourceVersion": "9"}
        assert len(outcome.actions) > 1


@pytest.mark.parametrize("status", [{"triedVersion": "5"}, {"triedVersion": "1", "triedAutoscalerVersion": "4"}])
def test_a_surge_that_may_still_arrive_is_made_before_it_is_undone(status: dict[str, Any]) -> None:
    """A leader who was stopped between the Move and the workload may go on at any time."""
    objects = [D1, a_deployment(), a_set(), STAYS, an_autoscaler()]
    outcome = look(*objects, a_move(RETURNING, status={"generation": 0, **status}, **BESIDE))
    assert (scale_of(outcome), has_deletion(outcome)) == (3, False)
    dead = {"generation": 0, "triedVersion": "1", "triedAutoscalerVersion": "2"}
    outcome = look(*objects, a_move(RETURNING, status=dead, **BESIDE))
    assert (scale_of(outcome), minimum_of(outcome), has_deletion(outcome)) == (2, [1], True)


def test_a_surge_that_somebody_takes_back_is_not_tried_again() -> None:
    objects = [S1, D1, a_deployment(2, generation=3), a_set(2), LEAVES, STAYS]
    assert phase_of(look(*objects, a_move(SURGING))) == REVERTED
    assert look(*objects, a_move(REVERTED)) == DONE
    assert has_deletion(look(D1, a_deployment(2, generation=3), a_set(2), STAYS, a_move(REVERTED)))


def test_a_workload_as_it_was_before_the_surge_is_no_sign_of_anything() -> None:
    """Each kind has a watch of its own: the Move may be newer than the Deployment that is read."""
    objects = [S1, D1, a_deployment(2, generation=1), a_set(2), LEAVES, STAYS]
    assert look(*objects, a_move(SURGING)) == DONE
    assert look(*objects, a_move(RETURNING)) == DONE


def test_a_move_that_nobody_saw_surged_is_removed_only_behind_a_write_that_an_old_mirror_cannot_make() -> None:
    outcome = look(D1, a_deployment(), a_set(), STAYS, a_move(RETURNING, status={"generation": 0}))
    scale, deletion, _ = outcome.actions
    assert scale == Scale(DEPLOYMENTS, Key("default", "web"), 2, resource_version="5")
    assert isinstance(deletion, Delete)


def test_a_withdrawn_notice_takes_the_marks_and_the_surge_back() -> None:
    kept = pod("a", "s1", is_marked=True)
    kept.metadata.annotations[COST_BEFORE] = "50"
    outcome = look(a_node("s1"), D1, a_deployment(3, generation=2), a_set(3), kept, STAYS, a_move(SURGING))
    patch = outcome.actions[0]
    assert isinstance(patch, Patch)
    assert patch.patch.body["metadata"]["annotations"] == {MOVING: None, COST: "50", COST_BEFORE: None}
    assert phase_of(outcome) == RETURNING


def test_a_surge_ends_when_its_time_is_over() -> None:
    objects = [S1, D1, a_deployment(3, generation=2), a_set(3), LEAVES, STAYS, a_move(SURGING)]
    assert phase_of(look(*objects, now=NOW + 239)) is None
    assert phase_of(look(*objects, now=NOW + 240)) == RETURNING


def test_a_pod_whose_node_is_gone_still_leaves() -> None:
    objects = [D1, D2, a_deployment(3, generation=2), a_set(3), LEAVES, STAYS]
    assert phase_of(look(*objects, a_move(SURGING))) is None
    assert phase_of(look(*objects, COMES, a_move(SURGING))) == RETURNING


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        ([a_deployment(paused=True), a_set()], "paused"),
        ([a_deployment(), a_set(), a_set(1, "web-2")], "a rollout"),
        ([a_deployment(3), a_set()], "its ReplicaSet is behind"),
        ([a_deployment(), a_set(), an_autoscaler(highest=2)], "an autoscaler at its most"),
        ([a_deployment(), a_set(), an_autoscaler(owner="ScaledObject")], "an autoscaler of somebody's"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_no_move_begins_where_the_workload_cannot_be_scaled(objects: list[Object], why: str) -> None:
    actions = look(S1, D1, pod("a", "s1"), STAYS, *objects).actions
    assert [action.reason for action in actions if isinstance(action, Note)] == ["NotReplacedFirst" for _ in actions], (
        why
    )  # and nothing else; what passes by itself is not said
    assert len(actions) == (why != "its ReplicaSet is behind")


def a_quota(used: str, hard: str = "4", resource: str = "requests.cpu", **spec: Any) -> ResourceQuota:
    status = {"hard": {resource: hard}, "used": {resource: used}}
    meta = {"name": "q", "namespace": "default"}
    return msgspec.convert(
        {"metadata": meta, "spec": {"hard": status["hard"], **spec}, "status": status}, ResourceQuota
    )


@pytest.mark.parametrize(
    ("quota", "is_refused"),
    [
        (a_quota("3"), False),
        (a_quota("3500m"), True),
        (a_quota("2", "2", "pods"), True),
        (a_quota("2", "3", "count/pods"), False),
        (a_quota("4", resource="limits.cpu"), False),  # the pod has none
        (a_quota("4", scopes=["BestEffort"]), False),
        (a_quota("4", scopes=["NotBestEffort", "NotTerminating"]), True),
        (a_quota("4", scopes=["Terminating"]), False),
        (a_quota("x"), False),
        (
            a_quota("4", scopeSelector={"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]}),
            False,
        ),
    ],
)
def test_a_quota_that_would_refuse_the_replacement_is_asked_first(quota: ResourceQuota, *, is_refused: bool) -> None:
    leaves = pod("a", "s1")
    leaves.spec.containers[0].resources.requests = {"cpu": "1"}
    (action,) = look(S1, D1, a_deployment(), a_set(), leaves, STAYS, quota).actions
    assert isinstance(action, Note if is_refused else Create)
    if isinstance(action, Note):
        assert "ResourceQuota q has no room for 1 more" in action.text


@pytest.mark.parametrize("phase", [SURGING, RETURNING])
def test_a_size_from_before_more_pods_had_to_leave_is_somebody_elses_once_a_larger_one_was_seen(phase: str) -> None:
    """Somebody scales to 3, by chance what this Move had meant to give the workload once."""
    objects = [S1, D1, a_deployment(3, generation=5), a_set(3), LEAVES, STAYS]
    seen = a_move(phase, status={"replicas": 4, "generation": 2}, surged=4, former=[3])
    assert scale_of(look(*objects, seen)) in (None, 3)
    assert scale_of(look(*objects, a_move("", surged=4, former=[3]))) == 4  # it may be ours: nobody has seen another


def test_a_size_that_came_after_the_one_that_was_seen_is_ours() -> None:
    """The Move was extended twice, and nobody has noted the size between."""
    objects = [S1, D1, a_deployment(4, generation=3), a_set(4), LEAVES, STAYS]
    outcome = look(*objects, a_move(SURGING, status={"replicas": 3}, surged=5, former=[3, 4]))
    assert (scale_of(outcome), has_deletion(outcome)) == (5, False)


def test_a_surge_that_was_extended_is_noted_again() -> None:
    objects = [S1, D1, a_deployment(4, generation=3), a_set(4), LEAVES, STAYS]
    (patch,) = look(*objects, a_move(SURGING, status={"replicas": 3}, surged=4, former=[3])).actions
    assert isinstance(patch, Patch)
    assert (patch.patch.body["status"]["replicas"], patch.patch.body["status"]["generation"]) == (4, 3)


def test_why_pods_are_not_replaced_first_is_said_once() -> None:
    state, controller = State(), SpotMoves()
    for subject in (S1, D1, a_deployment(paused=True), a_set(), pod("a", "s1"), STAYS):
        state.apply("ADDED", subject)
    assert len(controller.reconcile(KEY, state, NOW).actions) == 1
    assert controller.reconcile(KEY, state, NOW + 1) == DONE


def test_a_pod_that_was_to_be_evicted_gets_its_deletion_cost_before_the_workload_is_scaled() -> None:
    moving = pod("a", "s1")
    moving.metadata.annotations = {MOVING: "s1"}
    outcome = look(S1, D1, a_deployment(), a_set(), moving, STAYS, a_move())
    (patch,) = outcome.actions
    assert isinstance(patch, Patch)
    assert patch.patch.body["metadata"]["annotations"][COST] == LOWEST_COST


def test_a_deletion_cost_that_somebody_else_has_set_stays_when_the_mark_goes() -> None:
    edited = pod("a", "s1", is_marked=True)
    edited.metadata.annotations[COST] = "7"
    assert unmark(edited).patch.body["metadata"]["annotations"] == {MOVING: None, COST_BEFORE: None}


def test_a_pod_that_nobody_may_move_stays() -> None:
    fixed = pod("a", "s1")
    fixed.metadata.annotations = {NEVER_MOVE: "true"}
    assert look(S1, D1, a_deployment(), a_set(), fixed, STAYS) == DONE


def test_a_workload_made_again_ends_the_move_of_the_former_one() -> None:
    other = a_deployment()
    other.metadata.uid = "another"
    assert has_deletion(look(S1, D1, other, a_move()))
    assert has_deletion(look(S1, D1, a_move()))


def test_a_replica_set_of_its_own_is_scaled_itself() -> None:
    plain = a_set()
    plain.metadata.owner_references = []
    outcome = look(S1, D1, plain, pod("a", "s1"), STAYS, key=Key("default", "replicaset.web-1"))
    assert isinstance(outcome.actions[0], Create)
    assert outcome.actions[0].body["spec"]["owner"]["kind"] == "ReplicaSet"


def test_a_mark_that_came_after_its_move_had_gone_is_taken_away() -> None:
    """By a leader that did not know yet that it was none."""
    state, marked = State(), pod("a", "s1", is_marked=True)
    for subject in (a_node("s1"), D1, a_deployment(), a_set(), marked, STAYS):
        state.apply("ADDED", subject)
    change = Change("MODIFIED", "Pod", Key("default", "a"), pod("a", "s1"), marked)
    assert list(moves_of_pod(change, state)) == [KEY]
    (patch,) = SpotMoves().reconcile(KEY, state, NOW).actions
    assert isinstance(patch, Patch)
    assert patch.patch.body["metadata"]["annotations"][MOVING] is None


def test_a_node_that_gets_a_record_is_news_for_the_workloads_of_its_pods() -> None:
    state = State()
    for subject in (S1, a_deployment(), a_set(), pod("a", "s1"), pod("x", "s1", owner="none")):
        state.apply("ADDED", subject)
    change = Change("MODIFIED", "Node", Key("", "s1"), a_node("s1"), S1)
    assert list(moves_of_node(change, state)) == [KEY]
    assert list(moves_of_node(Change("MODIFIED", "Node", Key("", "s1"), S1, S1), state)) == []


# ---- beside an autoscaler


BESIDE: dict[str, Any] = {"autoscaler": {"name": "h", "minReplicas": 1}}


def minimum_of(outcome: Outcome) -> list[Any]:
    patches = (action for action in outcome.actions if isinstance(action, Patch))
    return [it.patch.body["spec"]["minReplicas"] for it in patches if it.resource == HORIZONTAL_POD_AUTOSCALERS]


def test_the_least_size_of_an_autoscaler_is_noted_and_raised_before_the_workload_is_scaled() -> None:
    objects = [S1, D1, a_deployment(), a_set(), STAYS]
    create = look(*objects, pod("a", "s1"), an_autoscaler()).actions[0]
    assert isinstance(create, Create)
    assert create.body["spec"]["autoscaler"] == {"name": "h", "minReplicas": 1}
    raising = look(*objects, LEAVES, an_autoscaler(), a_move(**BESIDE))
    assert (minimum_of(raising), scale_of(raising)) == ([3], 3)
    assert [type(action) for action in raising.actions] == [Patch, Patch, Scale, Note]
    scaling = look(*objects, LEAVES, an_autoscaler(3), a_move(**BESIDE))
    assert (minimum_of(scaling), scale_of(scaling)) == ([], 3)


def test_a_least_size_that_somebody_sets_while_the_workload_is_surged_is_not_raised_again() -> None:
    objects = [S1, D1, a_deployment(4, generation=2), a_set(4), LEAVES, STAYS]
    spec: dict[str, Any] = {"surged": 4, "autoscaler": {"name": "h", "minReplicas": 1}}
    assert minimum_of(look(*objects, an_autoscaler(1), a_move(SURGING, **spec))) == [4]
    assert minimum_of(look(*objects, an_autoscaler(2), a_move(SURGING, **spec))) == []
    assert minimum_of(look(*objects, an_autoscaler(3), a_move(SURGING, former=[3], **spec))) == [4]


@pytest.mark.parametrize("before", [1, None])
def test_it_is_restored_before_the_workload_gets_its_size_back(before: int | None) -> None:
    beside: dict[str, Any] = {"autoscaler": {"name": "h", **({} if before is None else {"minReplicas": before})}}
    objects = [S1, D1, D2, a_deployment(3, generation=2), a_set(3), LEAVES, STAYS, COMES, a_move(RETURNING, **beside)]
    restoring = look(*objects, an_autoscaler(3))
    assert (minimum_of(restoring), scale_of(restoring)) == ([before], None)
    assert scale_of(look(*objects, an_autoscaler(before))) == 2


def test_a_least_size_that_somebody_else_has_set_meanwhile_stays() -> None:
    objects = [S1, D1, D2, a_deployment(3, generation=2), a_set(3), LEAVES, STAYS, COMES]
    outcome = look(*objects, an_autoscaler(5), a_move(RETURNING, **BESIDE))
    assert (minimum_of(outcome), scale_of(outcome)) == ([5], 2)  # as it is: refused where what we read is old


def test_an_autoscaler_is_news_for_a_move_also_when_nothing_leaves_any_more() -> None:
    state = State()
    assert list(moves_of_autoscaler(an_autoscaler(), state)) == []
    state.apply("ADDED", a_move(RETURNING))
    assert list(moves_of_autoscaler(an_autoscaler(), state)) == [KEY]


@pytest.mark.parametrize(("phase", "replicas"), [(SURGING, 7), (REVERTED, 2)])
def test_it_is_restored_also_where_a_move_is_given_up(phase: str, replicas: int) -> None:
    objects = [S1, D1, a_deployment(replicas, generation=3), a_set(replicas), LEAVES, STAYS]
    assert minimum_of(look(*objects, an_autoscaler(3), a_move(phase, **BESIDE))) == [1]
