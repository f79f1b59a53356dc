"""PriorityClasses of policies: there before pods are given them, kept while somebody has them, and gone later."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from builders import a_pod
from wukong.actions import DONE, Create, Delete, Outcome, Patch
from wukong.api.core import Pod, PriorityClass
from wukong.api.kinds import PRIORITY_CLASSES
from wukong.api.meta import Object
from wukong.api.placement import ClusterPlacementPolicy, PlacementPolicy
from wukong.api.resources import Key, key_of
from wukong.controllers.policy.controller import Policy
from wukong.controllers.policy.priority_classes import PolicyClassUsers, PolicyPriorityClasses
from wukong.controllers.priority_classes import UNUSED_SECONDS
from wukong.placement.pods.priority import UNUSED, build_policy_class
from wukong.placement.rules import BUILT_IN
from wukong.state import State

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z
KEY = Key("", "placement-1000")
CRITICAL: dict[str, Any] = {"critical": True}


def a_policy(spec: dict[str, Any] = CRITICAL, name: str = "web") -> PlacementPolicy:
    document = {"metadata": {"name": name, "namespace": "shop", "uid": name}, "spec": spec}
    return msgspec.convert(document, PlacementPolicy)


def a_class(*, mark: str = "", is_ours: bool = True) -> PriorityClass:
    document = build_policy_class(a_policy().spec)
    assert document is not None
    document["metadata"] |= {"uid": "c", "resourceVersion": "3", "annotations": {UNUSED: mark} if mark else {}}
    document["metadata"]["labels"] = document["metadata"]["labels"] if is_ours else {}
    return msgspec.convert(document, PriorityClass)


def a_state(*objects: Object) -> State:
    state = State()
    for subject in objects:
        state.apply("ADDED", subject)
    return state


def look(*objects: Object, key: Key = KEY, now: float = NOW) -> Outcome:
    return PolicyPriorityClasses(BUILT_IN).reconcile(key, a_state(*objects), now)


@pytest.mark.parametrize("kind", [PlacementPolicy, ClusterPlacementPolicy])
def test_a_policy_of_a_namespace_has_no_class_made_above_the_limit_and_one_of_the_cluster_has(
    kind: type[PlacementPolicy | ClusterPlacementPolicy],
) -> None:
    spec = {"priority": {"value": 1_000_001}}
    policy = msgspec.convert({"metadata": {"name": "web", "namespace": "shop"}, "spec": spec}, kind)
    if kind is ClusterPlacementPolicy:
        policy.metadata.namespace = ""
    outcome = look(policy, key=Key("", "placement-1000001"))
    assert bool(outcome.actions) == (kind is ClusterPlacementPolicy)
    told = Policy(BUILT_IN).reconcile(key_of(policy), a_state(policy), NOW).actions[0]
    assert isinstance(told, Patch)
    conditions = told.patch.body["status"]["conditions"]
    limited = [condition["message"] for condition in conditions if condition["type"] == "PriorityLimited"]
    assert bool(limited) == (kind is PlacementPolicy)
    assert all("expected at most 1000000 in a namespace, got 1000001" in message for message in limited)


def urgent_pod() -> Pod:
    pod = a_pod("web-1")
    pod.spec.priority_class_name = "placement-1000"
    return pod


@pytest.mark.parametrize(
    ("spec", "name", "value", "preemption"),
    [
        (CRITICAL, "placement-1000", 1000, "PreemptLowerPriority"),
        ({"priority": {"value": 5}}, "placement-5", 5, "PreemptLowerPriority"),
        ({"priority": {"value": -5, "preemptionPolicy": "Never"}}, "placement-minus-5-never", -5, "Never"),
    ],
)
def test_a_policy_has_the_class_made_that_it_asks_for(
    spec: dict[str, Any], name: str, value: int, preemption: str
) -> None:
    of_cluster = msgspec.convert({"metadata": {"name": "all"}, "spec": spec}, ClusterPlacementPolicy)
    for policy in (a_policy(spec), of_cluster):
        (create,) = look(policy, key=Key("", name)).actions
        assert isinstance(create, Create)
        assert create.body["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "wukong"}
        written = (create.body["metadata"]["name"], create.body["value"], create.body["preemptionPolicy"])
        assert written == (name, value, preemption)


@pytest.mark.parametrize(
    "spec",
    [
        {**CRITICAL, "mode": "Observe"},
        {**CRITICAL, "capacity": {"strategy": "spot-only"}},
        {"priority": {"className": "placement-1000"}},
        {},
    ],
    ids=["observes", "has a problem", "names one", "asks for none"],
)
def test_none_is_made_for_a_policy_that_does_not_ask_or_may_not(spec: dict[str, Any]) -> None:
    assert look(a_policy(spec)) == DONE


def test_an_unused_class_is_marked_and_deleted_later_at_the_version_with_the_mark() -> None:
    outcome = look(a_class())
    (patch,) = outcome.actions
    assert isinstance(patch, Patch)
    assert patch.patch.body["metadata"]["annotations"] == {UNUSED: "2027-01-15T08:00:00Z"}
    assert outcome.requeue_after == UNUSED_SECONDS
    marked = a_class(mark="2027-01-15T08:00:00Z")
    assert look(marked, now=NOW + UNUSED_SECONDS).actions == (
        Delete(PRIORITY_CLASSES, KEY, uid="c", resource_version="3"),
    )


@pytest.mark.parametrize("user", [a_policy(), a_policy({"priority": {"className": "placement-1000"}}), urgent_pod()])
def test_a_class_is_kept_while_a_policy_or_a_pod_names_it(user: Object) -> None:
    assert look(user, a_class()) == DONE
    (patch,) = look(user, a_class(mark="2027-01-15T07:00:00Z")).actions
    assert isinstance(patch, Patch)
    assert patch.patch.body["metadata"]["annotations"] == {UNUSED: None}


def test_a_class_of_somebody_else_is_never_touched() -> None:
    assert look(a_class(is_ours=False)) == DONE
    of_wukongs = a_class()
    of_wukongs.metadata.name = "wukong-5"
    assert look(of_wukongs, key=Key("", "wukong-5")) == DONE


def test_users_are_what_they_would_be_counted_anew_after_any_changes() -> None:
    state = a_state(a_policy(), urgent_pod())
    users = state.index_of(PolicyClassUsers)
    assert (users.list_asking(KEY.name), users.is_used(KEY.name)) == ([Key("shop", "web")], True)
    fork = state.fork()
    fork.apply("DELETED", urgent_pod())
    changed = a_policy({})
    changed.metadata.resource_version = "9"
    fork.apply("MODIFIED", changed)
    after = fork.index_of(PolicyClassUsers)
    assert (after.list_asking(KEY.name), after.is_used(KEY.name)) == ([], False)
    assert (users.list_asking(KEY.name), users.is_used(KEY.name)) == ([Key("shop", "web")], True)
