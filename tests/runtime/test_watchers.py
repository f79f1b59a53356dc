"""Whom of those who watch a kind a change may concern."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wukong.api.core import Pod
from wukong.api.meta import ObjectMeta, OwnerReference
from wukong.api.resources import Key
from wukong.runtime.watchers import Watchers
from wukong.state import Change, State
from wukong.state.controller import KeysByTrait, controller_kind


def a_pod(controller: str = "", label: str = "") -> Pod:
    owners = [OwnerReference(kind=controller, name="owner", uid="1", controller=True)] if controller else []
    return Pod(metadata=ObjectMeta(name="web", owner_references=owners, labels={"app": label} if label else {}))


def app_label(pod: object) -> str:
    assert isinstance(pod, Pod)
    return pod.metadata.labels.get("app", "")


def own(change: Change, _: State) -> Iterable[Key]:
    return (change.key,)


def the_watchers() -> Watchers:
    watchers = Watchers()
    watchers.add("jobs", KeysByTrait(controller_kind, "Job", own))
    watchers.add("everyone", own)
    watchers.add("sets", KeysByTrait(controller_kind, "StatefulSet", own))
    watchers.add("launchers", KeysByTrait(app_label, "launcher", own))
    return watchers


ALL = ["jobs", "everyone", "sets", "launchers"]


@pytest.mark.parametrize(
    ("old", "new", "concerned"),
    [
        (a_pod("Job"), a_pod("Job"), ["jobs", "everyone"]),
        (None, a_pod("StatefulSet", "launcher"), ["everyone", "sets", "launchers"]),
        (a_pod("StatefulSet"), None, ["everyone", "sets"]),
        (a_pod("Anything at all", "x"), a_pod("Anything at all", "y"), ALL),  # the label changed
        (None, a_pod("Anything at all"), ["everyone"]),
        (None, a_pod(), ALL),  # whoever may adopt it is asked
        (a_pod("Job"), a_pod("StatefulSet"), ALL),
        (a_pod("Job"), a_pod(), ALL),
    ],
)
def test_a_change_concerns_those_whose_trait_the_object_has(
    old: Pod | None, new: Pod | None, concerned: list[str]
) -> None:
    assert [watcher.controller for watcher in the_watchers().list_concerned(old, new)] == concerned


@given(st.lists(st.tuples(st.text(), st.text(max_size=1)), min_size=1))
def test_however_many_kinds_of_controllers_there_are_it_keeps_no_more_than_are_asked_for(
    pods: list[tuple[str, str]],
) -> None:
    watchers = the_watchers()
    for controller, label in pods:
        watchers.list_concerned(None, a_pod(controller, label))
    assert len(watchers._by_values) <= 3 * 2
