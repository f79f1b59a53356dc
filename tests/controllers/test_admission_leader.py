"""Whoever leads has the label, and nobody else."""

from __future__ import annotations

import pytest

from builders import a_pod
from wukong.actions import DONE, Patch
from wukong.api.core import Pod
from wukong.api.kinds import PODS
from wukong.api.resources import Key
from wukong.controllers.admission.controller import LEADER_LABEL, LeaderLabel
from wukong.ports import PatchBody
from wukong.state import State

OWN = Key("wukong-system", "admission-1")
SIBLINGS = {"app.kubernetes.io/component": "admission"}


def an_instance(
    name: str, *, leads: bool = False, namespace: str = "wukong-system", component: str = "admission"
) -> Pod:
    labels = {"app.kubernetes.io/component": component, **({LEADER_LABEL: "true"} if leads else {})}
    return a_pod(name, namespace=namespace, labels=labels)


def set_label(name: str, value: str | None) -> Patch:
    body = {"metadata": {"labels": {LEADER_LABEL: value}}}
    return Patch(PODS, Key("wukong-system", name), PatchBody("merge", body))


@pytest.mark.parametrize(
    ("pods", "actions"),
    [
        ([an_instance("admission-1")], [set_label("admission-1", "true")]),
        ([an_instance("admission-1", leads=True)], []),
        (
            [an_instance("admission-1"), an_instance("admission-2", leads=True), an_instance("admission-3")],
            [set_label("admission-1", "true"), set_label("admission-2", None)],
        ),
        (
            [
                an_instance("admission-1", leads=True),
                an_instance("other", leads=True, component="extender"),
                an_instance("admission-2", leads=True, namespace="elsewhere"),
            ],
            [],
        ),
        ([an_instance("admission-2", leads=True)], []),  # not in a pod that the mirror has
    ],
    ids=["takes it", "has it", "takes it over", "others are left alone", "unknown"],
)
def test_who_leads_is_labelled_and_nobody_else(pods: list[Pod], actions: list[Patch]) -> None:
    state = State()
    for pod in pods:
        state.apply("ADDED", pod)
    assert list(LeaderLabel(OWN, SIBLINGS).reconcile(OWN, state, 0.0).actions) == actions


def test_one_that_ends_takes_no_label() -> None:
    state, pod = State(), an_instance("admission-1")
    pod.metadata.deletion_timestamp = "2026-11-16T12:00:00Z"
    state.apply("ADDED", pod)
    assert LeaderLabel(OWN, SIBLINGS).reconcile(OWN, state, 0.0) == DONE


def test_it_looks_when_a_pod_of_its_namespace_changes_and_at_no_other_time() -> None:
    state = State()
    (watch,) = LeaderLabel(OWN, SIBLINGS).watches
    (near,) = state.apply("ADDED", an_instance("admission-2"))
    (far,) = state.apply("ADDED", an_instance("admission-2", namespace="shop"))
    assert list(watch.keys(near, state)) == [OWN]
    assert list(watch.keys(far, state)) == []
