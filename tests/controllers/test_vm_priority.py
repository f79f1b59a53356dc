"""PriorityClasses of Wukongs: there before they are named, shared, kept while used, and gone some time after."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from vms import NOW, a_vm, a_wukong, an_instance
from wukong.actions import DONE, Create, Delete, Outcome, Patch
from wukong.api.core import PriorityClass
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.controllers.priority_classes import UNUSED_SECONDS
from wukong.controllers.vm.priority_classes import UNUSED, ClassUsers, PriorityClasses
from wukong.controllers.vm.priority_limits import PriorityLimits
from wukong.placement.vm import build_priority_class, build_virtual_machine
from wukong.placement.vm.settings import VmSettings
from wukong.state import State

KEY = Key("", "wukong-100")
URGENT: dict[str, Any] = {"schedulingPolicy": {"priority": 100}}


def a_state(*objects: Object) -> State:
    state = State()
    for subject in objects:
        state.apply("ADDED", subject)
    return state


def look(*objects: Object, key: Key = KEY, now: float = NOW, **limits: Any) -> Outcome:
    return PriorityClasses(PriorityLimits(**limits)).reconcile(key, a_state(*objects), now)


def urgent(name: str = "web", **spec: Any) -> Object:
    return a_wukong(name, scheduling=URGENT, **spec)


def a_class(*, is_ours: bool = True, mark: str = "") -> PriorityClass:
    policy = a_wukong(scheduling=URGENT).spec.scheduling.scheduling_policy  # type: ignore[union-attr]
    assert policy is not None
    document = build_priority_class(policy)
    document["metadata"] |= {"uid": "c", "resourceVersion": "3"}
    document["metadata"]["labels"] = document["metadata"]["labels"] if is_ours else {}
    document["metadata"]["annotations"] = {UNUSED: mark} if mark else {}
    return msgspec.convert(document, PriorityClass)


def test_the_first_who_asks_has_the_class_made() -> None:
    (create,) = look(urgent(), urgent("db")).actions
    assert isinstance(create, Create)
    assert (create.body["metadata"]["name"], create.body["value"]) == ("wukong-100", 100)
    assert look(urgent(), a_class()) == DONE


def test_nobody_who_may_not_ask_has_one_made() -> None:
    assert look(urgent(), highest=50) == DONE
    assert look(urgent(), namespaces=("ops",)) == DONE


def test_an_unused_class_is_marked_then_deleted_at_the_version_with_the_mark() -> None:
    outcome = look(a_class())
    (patch,) = outcome.actions
    assert isinstance(patch, Patch)
    assert patch.patch.body["metadata"]["annotations"] == {UNUSED: "2027-01-15T08:00:00Z"}
    assert patch.patch.body["metadata"]["resourceVersion"] == "3"
    assert outcome.requeue_after == UNUSED_SECONDS
    marked = a_class(mark="2027-01-15T08:00:00Z")
    assert look(marked, now=NOW + 60) == Outcome(requeue_after=UNUSED_SECONDS - 60)
    assert look(marked, now=NOW + UNUSED_SECONDS).actions == (
        Delete(look_resource(patch), KEY, uid="c", resource_version="3"),
    )


def look_resource(patch: Patch) -> Any:
    return patch.resource


def test_a_class_that_is_used_again_loses_its_mark() -> None:
    (patch,) = look(urgent(), a_class(mark="2027-01-15T07:00:00Z")).actions
    assert isinstance(patch, Patch)
    assert patch.patch.body["metadata"] == {"resourceVersion": "3", "annotations": {UNUSED: None}}


@pytest.mark.parametrize("is_instance", [False, True])
def test_a_class_is_kept_while_a_machine_names_it_though_its_wukong_asks_for_another(is_instance: bool) -> None:
    wukong = a_wukong(scheduling=URGENT)
    vm = a_vm(build_virtual_machine(wukong, "web", VmSettings()))
    user = an_instance(vm, "node-a") if is_instance else vm
    assert look(user, a_wukong(generation=2), a_class()) == DONE


def test_a_class_of_somebody_else_is_never_touched() -> None:
    assert look(a_class(is_ours=False)) == DONE
    assert look(urgent(), a_class(is_ours=False)) == DONE


def test_users_are_what_they_would_be_counted_anew_after_any_changes() -> None:
    state = a_state(urgent(), urgent("db"))
    users = state.index_of(ClassUsers)
    assert users.list_asking("wukong-100") == [Key("shop", "db"), Key("shop", "web")]
    fork = state.fork()
    changed = a_wukong("db", generation=2)
    changed.metadata.resource_version = "8"
    fork.apply("MODIFIED", changed)
    assert fork.index_of(ClassUsers).list_asking("wukong-100") == [Key("shop", "web")]
    assert users.list_asking("wukong-100") == [Key("shop", "db"), Key("shop", "web")]
    fork.apply("DELETED", urgent())
    assert not fork.index_of(ClassUsers).is_used("wukong-100")
    assert fork.index_of(ClassUsers).list_asking("wukong-100") == []
