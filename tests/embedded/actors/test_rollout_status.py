"""The conditions of a Deployment, case by case, as kube-controller-manager writes them."""

from __future__ import annotations

from typing import Any

import pytest

from wukong.api.resources import key_of
from wukong.embedded.actors.deployment import rollout_status
from wukong.embedded.actors.deployment.controller import RecreateIndex, _key_of_recreated
from wukong.embedded.actors.deployment.sizes import Limits
from wukong.embedded.store.documents import format_time
from wukong.embedded.world import objects
from wukong.ports import Document
from wukong.state import State
from wukong.state.mirror import Change

NOW = 1_767_225_600.0
COUNTS = ("updatedReplicas", "replicas", "readyReplicas", "availableReplicas")


def a_deployment(counts: tuple[int, ...] = (), generation: int = 1, **spec: Any) -> Any:
    metadata = {"name": "web", "namespace": "shop", "uid": "d", "generation": generation}
    status = {"observedGeneration": 1, **dict(zip(COUNTS, counts, strict=False))}
    spec = {"replicas": 3, "progressDeadlineSeconds": 600, **spec}
    return objects.read("Deployment.apps", {"metadata": metadata, "spec": spec, "status": status})


def progressing(reason: str, status: str = "True", *, age: float = 0.0, since: float = 0.0) -> Document:
    times = {"lastUpdateTime": format_time(NOW - age), "lastTransitionTime": format_time(NOW - (since or age))}
    return {"type": "Progressing", "status": status, "reason": reason, "message": "", **times}


OTHER = {"type": "Other", "status": "True", "reason": "", "message": ""}


def describe(conditions: list[Document]) -> list[tuple[str, str, str]]:
    return [(condition["type"], condition["status"], condition["reason"]) for condition in conditions]


def test_a_condition_that_changes_goes_to_the_end_and_keeps_when_its_status_did() -> None:
    before = [progressing("A", age=60), OTHER]
    assert rollout_status.set_condition(before, "Progressing", "True", "A", "new words", NOW) == before
    (_, same) = rollout_status.set_condition(before, "Progressing", "True", "B", "words", NOW)
    assert (same["lastUpdateTime"], same["lastTransitionTime"]) == (format_time(NOW), format_time(NOW - 60))
    (_, other) = rollout_status.set_condition(before, "Progressing", "False", "B", "words", NOW)
    assert other["lastTransitionTime"] == format_time(NOW)
    assert (other["status"], other["reason"], other["message"]) == ("False", "B", "words")


@pytest.mark.parametrize(
    ("spec", "reason", "expected"),
    [
        ({"paused": True}, "ReplicaSetUpdated", "DeploymentPaused"),
        ({"paused": True}, "DeploymentPaused", "DeploymentPaused"),
        ({"paused": False}, "DeploymentPaused", "DeploymentResumed"),
        ({"paused": False}, "ReplicaSetUpdated", "ReplicaSetUpdated"),
        ({"paused": False}, "DeploymentResumed", "DeploymentResumed"),
        ({"paused": True}, "ProgressDeadlineExceeded", "ProgressDeadlineExceeded"),
        ({"paused": True, "progressDeadlineSeconds": None}, "ReplicaSetUpdated", "ReplicaSetUpdated"),
        ({"paused": True, "progressDeadlineSeconds": 2**31 - 1}, "ReplicaSetUpdated", "ReplicaSetUpdated"),
    ],
)
def test_a_pause_and_its_end_are_noted(spec: Document, reason: str, expected: str) -> None:
    (condition,) = rollout_status.set_paused(a_deployment(**spec), [progressing(reason)], NOW)
    assert condition["reason"] == expected
    assert condition["status"] == ("True" if reason == expected else "Unknown")


def test_one_that_begins_paused_says_so() -> None:
    assert describe(rollout_status.set_paused(a_deployment(paused=True), [], NOW)) == [
        ("Progressing", "Unknown", "DeploymentPaused")
    ]
    assert rollout_status.set_paused(a_deployment(), [], NOW) == []


@pytest.mark.parametrize(("available", "status"), [(1, "False"), (2, "True"), (3, "True")])
def test_it_is_available_with_as_many_as_may_be_fewer(available: int, status: str) -> None:
    (condition,) = rollout_status.set_available([], available, Limits(3, unavailable=1), NOW)
    word = "Available" if status == "True" else "Unavailable"
    assert (condition["status"], condition["reason"]) == (status, f"MinimumReplicas{word}")


DONE, HALF = (3, 3, 3, 3), (1, 4, 3, 3)


@pytest.mark.parametrize(
    ("before", "after", "reason", "age", "expected"),
    [
        (HALF, DONE, "ReplicaSetUpdated", 1, ("True", "NewReplicaSetAvailable")),
        (HALF, HALF, "ReplicaSetUpdated", 1, ("True", "ReplicaSetUpdated")),
        (HALF, HALF, "ReplicaSetUpdated", 600, ("True", "ReplicaSetUpdated")),
        (HALF, HALF, "ReplicaSetUpdated", 601, ("False", "ProgressDeadlineExceeded")),
        (HALF, (2, 4, 3, 3), "NewReplicaSetCreated", 601, ("True", "ReplicaSetUpdated")),
        (HALF, (1, 3, 3, 3), "NewReplicaSetCreated", 601, ("True", "ReplicaSetUpdated")),
        (HALF, (1, 4, 4, 3), "NewReplicaSetCreated", 601, ("True", "ReplicaSetUpdated")),
        (HALF, (1, 4, 3, 4), "NewReplicaSetCreated", 601, ("True", "ReplicaSetUpdated")),
        (HALF, (1, 5, 3, 3), "NewReplicaSetCreated", 1, ("True", "NewReplicaSetCreated")),
        (DONE, (3, 3, 2, 2), "NewReplicaSetAvailable", 9999, ("True", "NewReplicaSetAvailable")),
        (DONE, (1, 3, 3, 3), "NewReplicaSetAvailable", 9999, ("True", "NewReplicaSetAvailable")),
        (HALF, HALF, "ProgressDeadlineExceeded", 1, ("False", "ProgressDeadlineExceeded")),
    ],
)
def test_how_a_rollout_goes_on(
    before: tuple[int, ...], after: tuple[int, ...], reason: str, age: float, expected: tuple[str, str]
) -> None:
    status = "False" if reason == "ProgressDeadlineExceeded" else "True"
    conditions = [progressing(reason, status, age=age, since=age + 100)]
    deployment = a_deployment(before)
    (condition,) = rollout_status.set_progressing(deployment, a_deployment(after).status, conditions, "web", NOW)
    assert (condition["status"], condition["reason"]) == expected
    if (expected[0], status) == ("True", "True"):
        assert condition["lastTransitionTime"] == format_time(NOW - age - 100)


def test_a_status_of_another_generation_is_not_complete_and_without_a_deadline_nothing_is_said() -> None:
    done = a_deployment(DONE).status
    assert rollout_status.is_complete(a_deployment(), done)
    assert not rollout_status.is_complete(a_deployment(generation=2), done)
    endless = a_deployment(progressDeadlineSeconds=None)
    assert rollout_status.set_progressing(endless, done, [progressing("X"), OTHER], "web", NOW) == [OTHER]


@pytest.mark.parametrize(
    ("conditions", "spec", "seconds"),
    [
        ([progressing("ReplicaSetUpdated", age=100)], {}, 501.0),
        ([progressing("ReplicaSetUpdated", age=600)], {}, 1.0),
        ([progressing("ReplicaSetUpdated", age=900)], {}, 1.0),
        ([progressing("NewReplicaSetAvailable", age=100)], {}, None),
        ([progressing("ProgressDeadlineExceeded", age=100)], {}, None),
        ([progressing("ReplicaSetUpdated", age=100)], {"progressDeadlineSeconds": None}, None),
        ([], {}, None),
    ],
)
def test_a_deadline_is_looked_at_a_second_after_it(
    conditions: list[Document], spec: Document, seconds: float | None
) -> None:
    assert rollout_status.seconds_to_deadline(a_deployment(**spec), conditions, NOW) == seconds


def a_set(name: str, *conditions: Document) -> Any:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    metadata = {"name": name, "namespace": "shop", "uid": name, "ownerReferences": [owner]}
    return objects.read("ReplicaSet.apps", {"metadata": metadata, "spec": {}, "status": {"conditions": [*conditions]}})


def test_a_failure_of_the_new_version_comes_before_that_of_an_old_one() -> None:
    first, second = ({"type": "ReplicaFailure", "status": "True", "reason": name, "message": name} for name in "ab")
    new, old, fine = a_set("new", first), a_set("old", second), a_set("fine")
    assert describe(rollout_status.set_replica_failure([], new, [old], NOW)) == [("ReplicaFailure", "True", "a")]
    assert describe(rollout_status.set_replica_failure([], None, [fine, old], NOW)) == [("ReplicaFailure", "True", "b")]
    assert rollout_status.set_replica_failure([first, OTHER], fine, [], NOW) == [OTHER]


def test_only_a_deployment_that_recreates_hears_of_its_pods() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "web-1", "controller": True}
    metadata = {"name": "web-1-a", "namespace": "shop", "uid": "p", "ownerReferences": [owner]}
    pod = objects.read("Pod", {"metadata": metadata, "spec": {}})
    stray = objects.read("Pod", {"metadata": {"name": "stray", "namespace": "shop", "uid": "s"}, "spec": {}})
    for strategy, names in (("Recreate", ["web"]), ("RollingUpdate", [])):
        state = State()
        state.index_of(RecreateIndex)
        state.apply("ADDED", a_deployment(strategy={"type": strategy}))
        state.apply("ADDED", a_set("web-1"))
        for subject, expected in ((pod, names), (stray, [])):
            keys = _key_of_recreated(Change("DELETED", "Pod", key_of(subject), subject, None), state)
            assert [key.name for key in keys] == expected
