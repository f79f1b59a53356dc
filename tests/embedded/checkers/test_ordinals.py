"""The order of a StatefulSet's pods that checkers hold its controller to; what they know of it is what a walk finds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedded.actors.test_daemon_index import EVENTS, Step, take_in
from embedded.actors.test_ordinal_index import OWNER, ordinal_pods
from wukong.api.apps import StatefulSet
from wukong.api.core import Pod
from wukong.api.meta import controller_of
from wukong.api.resources import Key
from wukong.embedded.checkers.ordinals import OrdinalPods, may_create, may_scale_down, may_update
from wukong.embedded.checkers.pods import is_active, is_ready
from wukong.ports import Document
from wukong.state import State

ORDINALS = {f"web-{number}": number for number in range(4)}


@given(st.lists(st.tuples(EVENTS, st.just("Pod"), ordinal_pods()), max_size=20))
def test_a_checker_knows_which_ordinals_are_ready(steps: list[Step]) -> None:
    state = State()
    index = state.index_of(OrdinalPods)
    for version, step in enumerate(steps):
        take_in(state, step, version)
        owned = [pod for pod in state.all(Pod) if controller_of(pod.metadata) and pod.metadata.name in ORDINALS]
        expected = {ORDINALS[pod.metadata.name]: is_active(pod) and is_ready(pod) for pod in owned}
        assert index.of("ss") == expected
        assert state.fork().index_of(OrdinalPods).of("ss") == expected


def a_pod(ordinal: int, word: str = "ready") -> Document:
    """`word`: ready, coming, leaving or ended; with `old ` before it of an old revision."""
    is_old, word = word.startswith("old "), word.removeprefix("old ")
    name = f"web-{ordinal}"
    labels = {"controller-revision-hash": "old" if is_old else "new"}
    meta: Document = {"name": name, "namespace": "shop", "uid": name, "labels": labels, "ownerReferences": [OWNER]}
    if word == "leaving":
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    ready = {"type": "Ready", "status": "True" if word in ("ready", "leaving") else "False"}
    phase = "Failed" if word == "ended" else "Running"
    return {"metadata": meta, "spec": {}, "status": {"phase": phase, "conditions": [ready]}}


class Case:
    """A StatefulSet and its pods, each as `a_pod` has it."""

    def __init__(self, pods: dict[int, str], **spec: Any) -> None:
        self.state = State()
        meta = {"name": "web", "namespace": "shop", "uid": "ss"}
        documents: list[Step] = [("ADDED", "StatefulSet.apps", {"metadata": meta, "spec": spec})]
        documents += [("ADDED", "Pod", a_pod(ordinal, word)) for ordinal, word in pods.items()]
        for version, step in enumerate(documents):
            take_in(self.state, step, version)
        (self.owner,) = self.state.all(StatefulSet)

    def pod(self, ordinal: int) -> Pod:
        pod = self.state.get(Pod, Key("shop", f"web-{ordinal}"))
        assert pod is not None
        return pod


@pytest.mark.parametrize(
    ("pods", "ordinal", "spec", "is_its_turn"),
    [
        ({}, 0, {}, True),
        ({}, 1, {}, False),
        ({0: "ready"}, 1, {}, True),
        ({0: "coming"}, 1, {}, False),
        ({0: "leaving"}, 1, {}, False),
        ({0: "ended"}, 1, {}, False),
        ({1: "ready"}, 2, {}, False),
        ({0: "ready", 1: "ready"}, 2, {}, True),
        ({0: "ready", 2: "coming"}, 1, {}, True),
        ({0: "ready", 1: "ready", 2: "ready"}, 3, {}, False),
        ({}, 2, {"podManagementPolicy": "Parallel"}, True),
        ({}, 3, {"podManagementPolicy": "Parallel"}, False),
        ({}, 1, {"ordinals": {"start": 1}}, True),
        ({}, 0, {"ordinals": {"start": 1}}, False),
        ({1: "ready"}, 2, {"ordinals": {"start": 1}}, True),
        ({}, 2, {"ordinals": {"start": 1}}, False),
    ],
)
def test_a_pod_is_created_after_those_below_it(
    pods: dict[int, str], ordinal: int, spec: dict[str, Any], is_its_turn: bool
) -> None:
    case = Case({**pods, ordinal: "coming"}, replicas=3, **spec)
    assert may_create(case.pod(ordinal), case.owner, case.state) is is_its_turn


@pytest.mark.parametrize(
    ("pods", "ordinal", "spec", "is_its_turn"),
    [
        ({0: "ready", 1: "ready", 2: "ready"}, 2, {}, True),
        ({0: "ready", 1: "ready", 2: "ready", 3: "ready"}, 2, {}, False),
        ({0: "ready", 1: "ready", 2: "ready", 3: "leaving"}, 2, {}, False),
        ({0: "ready", 1: "ready", 2: "ready", 3: "ready"}, 3, {}, True),
        ({0: "ready", 1: "ready", 2: "coming"}, 2, {}, True),
        ({0: "ready", 1: "coming", 2: "ready"}, 2, {}, False),
        ({0: "ready", 2: "ready"}, 2, {}, False),
        ({0: "ready", 1: "ready"}, 1, {}, False),
        ({2: "ready", 3: "ready"}, 2, {"podManagementPolicy": "Parallel"}, True),
        ({1: "ready"}, 1, {"podManagementPolicy": "Parallel"}, False),
        ({0: "ready", 1: "ready", 2: "ready"}, 0, {"ordinals": {"start": 1}}, True),
    ],
)
def test_a_pod_is_scaled_away_after_those_above_it_while_those_that_stay_are_ready(
    pods: dict[int, str], ordinal: int, spec: dict[str, Any], is_its_turn: bool
) -> None:
    case = Case(pods, replicas=2, **spec)
    assert may_scale_down(case.pod(ordinal), case.owner, case.state) is is_its_turn


def partition(number: int) -> dict[str, Any]:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": number}}}


@pytest.mark.parametrize(
    ("pods", "ordinal", "spec", "is_its_turn"),
    [
        ({0: "old ready", 1: "old ready", 2: "old ready"}, 2, {}, True),
        ({0: "old ready", 1: "old ready", 2: "old coming"}, 2, {}, True),
        ({0: "old ready", 1: "old ready", 2: "old ready"}, 1, {}, False),
        ({0: "old ready", 1: "old ready", 2: "ready"}, 1, {}, True),
        ({0: "old ready", 1: "old ready", 2: "coming"}, 1, {}, False),
        ({0: "old ready", 1: "old ready", 2: "leaving"}, 1, {}, False),
        ({0: "old ready", 1: "old ready"}, 1, {}, False),
        ({0: "old ready", 1: "ready", 2: "coming"}, 0, {}, False),
        ({0: "old ready", 1: "ready", 2: "ready"}, 0, {}, True),
        ({0: "old ready", 1: "old coming", 2: "coming"}, 1, {"podManagementPolicy": "Parallel"}, False),
        ({0: "old ready", 1: "old ready", 2: "old ready"}, 2, partition(2), True),
        ({0: "old ready", 1: "old ready", 2: "ready"}, 1, partition(2), False),
        ({1: "old ready", 2: "old ready", 3: "ready"}, 2, {**partition(2), "ordinals": {"start": 1}}, False),
        ({1: "old ready", 2: "old ready", 3: "ready"}, 2, {**partition(1), "ordinals": {"start": 1}}, True),
        ({0: "old ready", 1: "old ready", 2: "old ready"}, 2, {"updateStrategy": {"type": "OnDelete"}}, False),
    ],
)
def test_an_update_takes_a_pod_after_those_above_it_and_none_below_the_partition(
    pods: dict[int, str], ordinal: int, spec: dict[str, Any], is_its_turn: bool
) -> None:
    case = Case(pods, replicas=3, **spec)
    assert may_update(case.pod(ordinal), case.owner, case.state, frozenset()) is is_its_turn


@pytest.mark.parametrize(("deleted", "is_its_turn"), [("web-2", False), ("web-0", True), ("web-9", True)])
def test_what_went_in_the_same_decision_is_not_ready_any_more(deleted: str, is_its_turn: bool) -> None:
    case = Case({0: "old ready", 1: "old ready", 2: "ready"}, replicas=3)
    assert may_update(case.pod(1), case.owner, case.state, {deleted}) is is_its_turn
