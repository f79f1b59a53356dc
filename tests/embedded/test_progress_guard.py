"""A run that gets nowhere says so, and who keeps it there; one that is merely large does not."""

from __future__ import annotations

import pytest

from forecast.clusters import a_deployment, nodes, plan_on, running_on
from wukong.actions import DONE, Outcome, Patch
from wukong.api.core import Node
from wukong.api.kinds import NODES
from wukong.api.resources import Key
from wukong.embedded.scenario.format.fields import TimelineEntry
from wukong.embedded.store import Server
from wukong.embedded.world import progress_guard
from wukong.embedded.world.clock import VirtualClock
from wukong.embedded.world.progress_guard import MAX_DECISIONS, MAX_IN_WINDOW, MAX_SECONDS, ProgressGuard
from wukong.embedded.world.world import World
from wukong.errors import NoProgress
from wukong.forecast import PlannedChange
from wukong.ports import PatchBody
from wukong.runtime.dispatch import Item
from wukong.state import State
from wukong.state.controller import Watch


class Painter:
    """Wants every node in its colour."""

    watches = (Watch(NODES),)

    def __init__(self, colour: str) -> None:
        self.name = self.colour = colour

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        node = state.get(Node, key)
        if node is None or node.metadata.labels.get("colour") == self.colour:
            return DONE
        body = PatchBody("merge", {"metadata": {"labels": {"colour": self.colour}}})
        return Outcome((Patch(NODES, key, body),))


class Sleeper:
    """Looks every hour, for ever."""

    name = "sleeper"
    watches = (Watch(NODES),)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        return Outcome(requeue_after=3600.0)


def a_world(*controllers: Painter | Sleeper) -> World:
    clock = VirtualClock()
    server = Server(clock, definitions=[])
    server.create(NODES, {"metadata": {"name": "n1"}})
    return World(controllers, server=server, clock=clock)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [None, 60.0])
def test_controllers_that_undo_each_others_work_are_named(seconds: float | None) -> None:
    world = a_world(Painter("red"), Painter("blue"))
    with pytest.raises(NoProgress, match=r"undo each other's work.* red n1 \d+ times") as caught:
        world.run(seconds=seconds)
    assert "blue n1" in str(caught.value)


def test_a_run_without_a_deadline_that_never_ends_says_so() -> None:
    world = a_world(Sleeper())
    with pytest.raises(NoProgress, match=r"not quiet after 366 days.*last sleeper n1.*Give the run a deadline"):
        world.run()
    assert a_world(Sleeper()).run(seconds=MAX_SECONDS + 7200) == "deadline"


def test_many_keys_in_one_instant_are_no_quarrel() -> None:
    guard = ProgressGuard(0.0, has_deadline=False)
    for number in range(20 * MAX_DECISIONS):
        guard.observe(0.0, Item("kubelet", Key("shop", f"pod-{number}")))
    for number in range(2 * MAX_DECISIONS):
        guard.observe(1.0 + number, Item("replicaset", Key("shop", "web")))


def test_one_key_may_be_decided_so_often_in_one_instant_and_in_ten_minutes_and_not_once_more() -> None:
    item, other = Item("blue", Key("", "n1")), Item("red", Key("", "n1"))
    guard = ProgressGuard(0.0, has_deadline=True)
    guard.observe(5.0, other)
    for _ in range(MAX_DECISIONS):
        guard.observe(5.0, item)
    with pytest.raises(NoProgress) as caught:
        guard.observe(5.0, item)
    assert str(caught.value).startswith("The clock stands still 5.000 s after the run began: ")
    assert f"In this instant were looked at: blue n1 {MAX_DECISIONS + 1} times, red n1 1 times." in str(caught.value)

    guard = ProgressGuard(0.0, has_deadline=True)
    for number in range(1, MAX_IN_WINDOW + 1):
        guard.observe(number * 0.03, item)
    with pytest.raises(
        NoProgress, match=rf"Nothing comes to rest .* In 600 s were looked at: blue n1 {MAX_IN_WINDOW + 1}"
    ):
        guard.observe(600.0, item)
    guard = ProgressGuard(0.0, has_deadline=True)
    for number in range(1, MAX_IN_WINDOW + 2):
        guard.observe(number * 0.0301, item)


def test_a_year_is_long_enough_unless_there_is_a_deadline() -> None:
    ProgressGuard(7.0, has_deadline=False).observe(7.0 + MAX_SECONDS, None)
    with pytest.raises(NoProgress, match="nobody in particular"):
        ProgressGuard(7.0, has_deadline=False).observe(7.001 + MAX_SECONDS, None)
    ProgressGuard(7.0, has_deadline=True).observe(8.0 + MAX_SECONDS, None)


def test_keys_that_wait_for_a_worker_in_one_instant_are_no_quarrel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node is lost with more pods than a key may be looked at: each is looked at once, when its time has come."""
    monkeypatch.setattr(progress_guard, "MAX_DECISIONS", 40)
    web = a_deployment(replicas=80, cpu="10m")
    documents = [*nodes(2), web, *running_on(web, *["node-1"] * 80)]
    plan = plan_on(documents, PlannedChange(steps=(TimelineEntry(at="0s", kill="node-1"),)), seeds=(1,))
    assert "The clock stands still" not in plan.verdict.text + str(plan.verdict.problems)
    assert plan.shown.workloads["default/web"].available == 80
