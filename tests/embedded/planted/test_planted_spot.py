"""Bugs planted in the mover of pods off spot nodes: each is found by checkers, without any fault, in a few seeds.

The product passes the same seeds; with one of the checkers missing the bug it is for would pass, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from embedded.planted.hunting import SPOT, find_failing_seeds, hunt, plant
from wukong.actions import Action, Outcome, Patch, Scale
from wukong.api.autoscaling import HorizontalPodAutoscaler
from wukong.api.resources import key_of
from wukong.api.spot import Move
from wukong.controllers.spot import autoscalers, evictions, moves
from wukong.controllers.spot.owners import OwnerPods
from wukong.state import State


class Bug(NamedTuple):
    where: object
    name: str
    replacement: Callable[..., Any]
    expected: str  # part of a reason


def forget_surge(move: Move, pods: OwnerPods, state: State) -> Outcome:
    """The Move goes, and the workload keeps its size."""
    return moves._finish(move, pods, state)


_surge = moves._surge


class SurgeTwice:
    """A workload that is surged already is surged once more, by somebody who has not heard of it."""

    def __init__(self) -> None:
        self._surged: set[str] = set()  # workloads: once each

    def __call__(self, move: Move, pods: OwnerPods, state: State, now: float) -> Outcome:
        uid = pods.owner.metadata.uid
        if pods.replicas != move.spec.surged or uid in self._surged:
            return _surge(move, pods, state, now)
        self._surged.add(uid)
        return Outcome((Scale(pods.resource, key_of(pods.owner), pods.replicas + len(move.spec.pods)),))


def await_nobody(move: Move, pods: OwnerPods, state: State, now: float, left: float | None) -> Outcome:
    return Outcome((moves._set_phase(move, moves.RETURNING, "replacements are available"),))


def know_no_deadline(*_: object) -> bool:
    return False


_raise_minimum = autoscalers.raise_minimum


def overwrite_minimum(move: Move, state: State) -> list[Action]:
    """Whatever the least size is, it becomes ours."""
    if (raised := _raise_minimum(move, state)) or move.spec.autoscaler is None:
        return raised
    for autoscaler in state.all(HorizontalPodAutoscaler):
        if autoscaler.spec.min_replicas != move.spec.surged:
            return [autoscalers._set_minimum(autoscaler, move.spec.surged)]
    return []


def mark_after_surge(move: Move, pods: OwnerPods, state: State, now: float) -> Outcome:
    """The workload is scaled first, and its leaving pods are marked then."""
    outcome = _surge(move, pods, state, now)
    marks_pods = any(isinstance(it, Patch) and it.resource.kind == "Pod" for it in outcome.actions)
    if not marks_pods or pods.replicas == move.spec.surged or move.status.phase:
        return outcome
    scale = Scale(pods.resource, key_of(pods.owner), move.spec.surged)
    return replace(outcome, actions=(scale, *outcome.actions))


BUGS = {
    "a surge that is forgotten": Bug(moves, "_return", forget_surge, "removed while its workload has"),
    "a surge that is made twice": Bug(moves, "_surge", SurgeTwice(), "and nobody asked for more or less than 2"),
    "pods that go before their replacements are ready": Bug(
        moves, "_await_replacements", await_nobody, "before so many others are ready"
    ),
    "a deadline that is ignored": Bug(evictions, "is_last_moment", know_no_deadline, "could have been evicted"),
    "an autoscaler that is overwritten": Bug(
        moves, "raise_minimum", overwrite_minimum, "minReplicas to 5; overwritten"
    ),
    "a deletion cost after the surge": Bug(moves, "_surge", mark_after_surge, "before all pods that leave were marked"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BUGS)
def test_a_bug_in_the_mover_is_found_and_the_product_passes_the_same_seeds(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    bug = BUGS[name]
    with plant(bug.where, bug.name, bug.replacement):
        seed, reasons = hunt({}, SPOT)
    record_property("figure", f"{name}: found with seed {seed}: {reasons[0]}")
    assert any(bug.expected in reason for reason in reasons), reasons
    assert find_failing_seeds({}, seed, SPOT) == {}
