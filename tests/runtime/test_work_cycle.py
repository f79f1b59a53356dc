"""What becomes of a key at work, without any I/O: done, failed, unknown, abandoned."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from wukong.actions import Action, Bind, Note, Outcome, Patch
from wukong.api.core import Pod, PodSpec
from wukong.api.kinds import PODS
from wukong.api.meta import ObjectMeta
from wukong.api.resources import Key
from wukong.errors import Conflict, OutcomeUnknown
from wukong.ports import PatchBody
from wukong.runtime.dispatch import ASSUMED_SECONDS, Dispatch, Item
from wukong.runtime.pending_writes import WrittenVersion
from wukong.runtime.work_cycle import Work, WorkCycle, is_dispensable
from wukong.state import State
from wukong.state.controller import Watch

KEY = Key("default", "web")
ITEM = Item("marker", KEY)
PATCH = Patch(PODS, KEY, PatchBody("merge", {"metadata": {"labels": {"a": "b"}}}))
BIND = Bind(KEY, "n1")
NOTE = Note(PODS, KEY, "Marking", "soon")
METADATA = ObjectMeta(name="web", namespace="default", uid="u", resource_version="2")


class Marker:
    name = "marker"
    watches = (Watch(PODS),)

    def __init__(self, *actions: Action) -> None:
        self.actions, self.decisions = actions, 0

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        self.decisions += 1
        return Outcome(self.actions)


def a_cycle(*actions: Action) -> tuple[WorkCycle, Marker]:
    state, marker = State(), Marker(*actions)
    dispatch = Dispatch([marker], state)
    first = Pod(kind="Pod", metadata=replace(METADATA, resource_version="1"))
    dispatch.observe(state.apply("ADDED", first), 0.0)
    return WorkCycle(dispatch), marker


def take(cycle: WorkCycle, now: float) -> Work:
    [item] = cycle.dispatch.queue.take_due(now)
    assert item == ITEM
    return cycle.take(item, now)


def test_a_key_is_done_when_its_last_action_is_and_rests_until_its_write_shows() -> None:
    cycle, _ = a_cycle(NOTE, PATCH)
    work = take(cycle, 0.0)
    assert (work.next_action, is_dispensable(NOTE), is_dispensable(PATCH)) == (NOTE, True, False)
    work.advance(None)
    work.advance(WrittenVersion("Pod", KEY, "2"))
    assert work.next_action is None
    cycle.finish(work, 1.0)
    assert (cycle.dispatch.queue.in_flight, len(cycle.dispatch.queue)) == (1, 0)


def test_what_failed_takes_back_the_rest_and_comes_again() -> None:
    cycle, marker = a_cycle(PATCH, BIND)
    work = take(cycle, 0.0)
    assert KEY in assumed(cycle)
    delay = cycle.fail(work, Conflict("changed"), 0.0, jitter=0.0)
    assert KEY not in assumed(cycle)
    assert not take(cycle, delay).only_looks
    assert marker.decisions == 2


def test_an_unknown_outcome_is_looked_at_before_the_key_is_decided_again_however_often_that_takes() -> None:
    cycle, marker = a_cycle(BIND)
    work = take(cycle, 0.0)
    delay = cycle.fail(work, OutcomeUnknown("lost"), 0.0, jitter=0.0)
    assert KEY in assumed(cycle)  # it may have happened
    for _ in range(2):
        look = take(cycle, delay)
        assert (look.only_looks, look.next_action) == (True, BIND)
        delay += cycle.fail(look, OutcomeUnknown("lost again"), delay, jitter=0.0)
    look = take(cycle, delay)
    look.advance(None)
    assert marker.decisions == 1
    cycle.finish(look, delay)
    assert not take(cycle, delay).only_looks
    assert marker.decisions == 2


def test_a_binding_that_the_api_server_took_counts_until_the_watch_says_otherwise() -> None:
    for end in ("finish", "fail", "abandon"):
        cycle, _ = a_cycle(BIND, PATCH)
        work = take(cycle, 0.0)
        work.advance(None)
        if end == "finish":
            work.advance(None)
            cycle.finish(work, 0.0)
        elif end == "fail":
            cycle.fail(work, Conflict("changed"), 0.0, jitter=0.0)
        else:
            cycle.abandon(work, 0.0)
        cycle.dispatch.expire(10 * ASSUMED_SECONDS)
        assert KEY in assumed(cycle), end
        bound = Pod(kind="Pod", metadata=METADATA, spec=PodSpec(node_name="n2"))
        cycle.dispatch.observe(cycle.dispatch.state.apply("MODIFIED", bound), 1.0)
        assert KEY not in assumed(cycle), end


def test_a_binding_that_nobody_answered_counts_for_a_while() -> None:
    cycle, _ = a_cycle(BIND)
    delay = cycle.fail(take(cycle, 0.0), OutcomeUnknown("lost"), 0.0, jitter=0.0)
    look = take(cycle, delay)
    look.advance(None)
    cycle.finish(look, delay)
    assert KEY in assumed(cycle)
    cycle.dispatch.expire(ASSUMED_SECONDS)
    assert KEY not in assumed(cycle)


def test_work_that_is_abandoned_keeps_what_may_have_happened_and_waits_for_whoever_comes_next() -> None:
    cycle, _ = a_cycle(BIND)
    cycle.abandon(take(cycle, 0.0), 0.0)
    assert KEY in assumed(cycle)
    assert (len(cycle.dispatch.queue), cycle.dispatch.state.attempts.get("marker", KEY)) == (1, None)


def assumed(cycle: WorkCycle) -> Any:
    return cycle.dispatch.state.placements


def test_a_key_whose_action_gets_lost_again_and_again_comes_back_ever_later() -> None:
    cycle, marker = a_cycle(PATCH)
    now, delays = 0.0, []
    for _ in range(4):
        delays.append(cycle.fail(take(cycle, now), OutcomeUnknown("lost"), now, jitter=0.0))
        now += delays[-1]
        look = take(cycle, now)
        assert look.only_looks
        look.advance(None)  # it has not happened
        cycle.finish(look, now)
    assert delays == [0.5, 1.0, 2.0, 4.0]
    attempt = cycle.dispatch.state.attempts.get("marker", KEY)
    assert attempt is not None
    assert attempt.count == 4
    done = take(cycle, now)
    done.advance(None)
    cycle.finish(done, now)
    assert cycle.dispatch.state.attempts.get("marker", KEY) is None
    cycle.dispatch.queue.add(ITEM, now)
    assert cycle.fail(take(cycle, now), Conflict("changed"), now, jitter=0.0) == 0.5
    assert marker.decisions == 6
