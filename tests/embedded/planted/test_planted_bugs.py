"""Bugs planted on purpose: each is found by checkers, or because the cluster does not come to rest, in a few seeds.

Every test names the seed that shows its bug, and shows that the product itself passes all seeds up to that one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from embedded.planted.hunting import failing, hunted, planted
from wukong.actions import DONE, Action, Create
from wukong.api.meta import Object
from wukong.embedded.actors.garbage.controller import PodGarbage
from wukong.embedded.actors.replica_set import controller as replica_set
from wukong.embedded.faults.writes import FaultyTransport
from wukong.embedded.store import binding_and_scale, eviction, garbage_collection
from wukong.embedded.world.transport import RetryingTransport
from wukong.errors import Conflict, OutcomeUnknown
from wukong.runtime import delivery
from wukong.runtime.dispatch import Dispatch, Item
from wukong.runtime.effect_check import has_happened
from wukong.state import Change, State


class Bug(NamedTuple):
    where: object
    name: str
    planted: Callable[..., Any]
    faults: dict[str, float]  # at these rates
    found: str  # in the reasons


def ignored_budget(*_: object) -> None:
    """Evictions are not charged, so none is refused."""


def blind_to_its_own_writes(self: Dispatch, item: Item, written: object, now: float) -> None:
    self.queue.finish(item)


def no_assumption(self: Dispatch, action: object, now: float) -> None:
    """What was bound a moment ago is not counted until the watch shows it."""


_perform = FaultyTransport.perform


def conflicts_taken_for_success(self: FaultyTransport, action: Action) -> object:
    try:
        return _perform(self, action)
    except Conflict:
        return None


_do_once = RetryingTransport.perform


def creates_repeated_blindly(self: RetryingTransport, action: Action) -> object:
    if not isinstance(action, Create):
        return _do_once(self, action)
    while True:
        try:
            return self._do(action)
        except OutcomeUnknown:
            continue


_manage = replica_set._manage


def surplus_kept(*given: Any) -> list[Action]:
    return [each for each in _manage(*given) if isinstance(each, Create)]


_waiting = garbage_collection._waiting


def finalizer_kept(*given: Any) -> Iterator[Action]:
    return (each for each in _waiting(*given) if type(each).__name__ != "Patch")


def relist_without_goodbyes(self: State, kind: str, items: Any) -> list[Change]:
    listed: list[Object] = list(items)
    return [change for found in listed for change in self.apply("MODIFIED", found, kind)]


def deletion_taken_for_the_last(action: Any, found: Any) -> bool:
    """Whoever is leaving is taken to have been told to leave at once."""
    is_leaving = found is not None and bool(found.get("metadata", {}).get("deletionTimestamp"))
    return is_leaving if type(action).__name__ == "Delete" and is_leaving else has_happened(action, found)


BUGS = {
    "a budget ignored by evictions": Bug(eviction, "_charge", ignored_budget, {}, "evicted although budget"),
    "a pod bound twice": Bug(
        binding_and_scale, "_unbindable", lambda pod: "", {"two-leaders": 4, "stale": 0.1}, "moved from node"
    ),
    "a stale read trusted": Bug(
        Dispatch, "_rest", blind_to_its_own_writes, {"stale": 0.05}, "decided again before its own write"
    ),
    "a lost conflict": Bug(FaultyTransport, "perform", conflicts_taken_for_success, {"conflict": 0.1}, ""),
    "a pod leaked on a dead node": Bug(PodGarbage, "reconcile", lambda *_: DONE, {}, "which is gone"),
    "a finalizer never removed": Bug(garbage_collection, "_waiting", finalizer_kept, {}, "waits for its finalizer"),
    "two leaders who both create": Bug(
        replica_set, "_manage", surplus_kept, {"two-leaders": 1, "stale": 0.03}, "pods and should have"
    ),
    "anti-affinity of an assumed pod ignored": Bug(
        Dispatch, "_assume", no_assumption, {"stale": 0.05}, "InterPodAffinity says"
    ),
    "a landed create repeated": Bug(
        RetryingTransport, "perform", creates_repeated_blindly, {"lost-answer": 0.1}, "there were enough"
    ),
    "a list that says no goodbyes": Bug(
        State, "replace", relist_without_goodbyes, {"missed": 0.02, "gone": 0.02}, "at rest"
    ),
    "a forced deletion taken for done": Bug(
        delivery, "has_happened", deletion_taken_for_the_last, {"lost-request": 0.2}, "still leaving node"
    ),
}


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found_and_the_product_passes_the_same_seeds(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    bug = BUGS[name]
    with planted(bug.where, bug.name, bug.planted):
        seed, reasons = hunted(bug.faults)
    record_property("figure", f"{name}: found with seed {seed}: {reasons[0]}")
    assert any(bug.found in reason for reason in reasons), reasons
    assert failing(bug.faults, until=seed) == {}
