"""The scheduler's queue: order, backoff, and when a pod has its turn again."""

from __future__ import annotations

import pytest

from builders import a_pod
from scheduler_world import replace
from wukong.api.resources import Key
from wukong.controllers.scheduler.queue import Entry, Queue

PLUGINS = frozenset({"NodeResourcesFit"})


def a_queue(*names: str, **priorities: int) -> Queue:
    queue = Queue()
    for name in (*names, *priorities):
        pod = a_pod(name, priority=priorities.get(name, 0))
        queue.add(replace(pod, metadata=replace(pod.metadata, uid=f"uid-{name}")))
    return queue


def popped(queue: Queue, now: float = 0.0) -> Entry:
    entry = queue.pop(now)
    assert entry is not None
    return entry


def test_the_highest_priority_goes_first_then_who_came_first() -> None:
    queue = a_queue("b", "a", c=5)
    assert [popped(queue).key.name for _ in range(3)] == ["c", "b", "a"]
    assert queue.pop(0.0) is None
    assert queue.next_due(0.0) is None


def test_a_pod_is_given_out_once_until_something_became_of_it() -> None:
    queue = a_queue("a")
    entry = popped(queue)
    assert queue.pop(0.0) is None
    queue.back_off_after_error(entry, 0.0)
    assert queue.pop(0.5) is None
    assert popped(queue, 1.0) is entry


@pytest.mark.parametrize(("failures", "backoff"), [(1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 10.0), (50, 10.0)])
def test_trouble_doubles_the_backoff_up_to_ten_seconds(failures: int, backoff: float) -> None:
    queue = a_queue("a")
    entry = popped(queue)
    entry.failures = failures - 1
    queue.back_off_after_error(entry, 100.0)
    assert queue.next_due(100.0) == 100.0 + backoff
    assert queue.pop(100.0 + backoff - 0.1) is None
    assert popped(queue, 100.0 + backoff) is entry


def test_a_parked_pod_waits_for_an_event_at_most_five_minutes() -> None:
    queue = a_queue("a")
    entry = popped(queue)
    queue.park(entry, PLUGINS, 0.0)
    assert queue.pop(299.0) is None
    assert queue.next_due(299.0) == 300.0
    assert popped(queue, 300.0) is entry


def test_an_idle_scheduler_does_not_wait_for_a_backoff() -> None:
    queue = a_queue("a")
    entry = popped(queue)
    queue.park(entry, PLUGINS, 0.0)
    queue.wake(entry)
    assert queue.next_due(0.1) == 0.1
    assert popped(queue, 0.1) is entry


def test_a_busy_one_does_and_then_goes_by_priority() -> None:
    queue = a_queue("low", high=9)
    high = popped(queue)
    queue.park(high, PLUGINS, 0.0)
    queue.wake(high)
    assert popped(queue, 0.5).key.name == "low"
    queue.add(a_pod("other"))
    assert popped(queue, 1.0) is high


def test_one_that_failed_goes_behind_others_of_its_priority() -> None:
    queue = a_queue("a", "b")
    first = popped(queue)
    queue.park(first, PLUGINS, 50.0)
    queue.wake(first)
    assert [popped(queue, 60.0).key.name for _ in range(2)] == ["b", "a"]


def test_a_pod_that_is_removed_has_no_turn() -> None:
    queue = a_queue("a", "b")
    queue.nominate(queue.entries[Key("default", "a")], "node-a")
    queue.remove(Key("default", "a"))
    assert popped(queue).key.name == "b"
    assert queue.pop(0.0) is None
    assert not queue.nominated


def test_a_pod_created_anew_under_an_old_name_starts_afresh() -> None:
    queue = a_queue("a")
    queue.park(popped(queue), PLUGINS, 0.0)
    again = a_pod("a")
    queue.add(replace(again, metadata=replace(again.metadata, uid="another")))
    assert not queue.parked
    assert (popped(queue).uid, len(queue)) == ("another", 1)


def test_a_pod_told_twice_is_queued_once() -> None:
    queue = a_queue("a", "a")
    popped(queue)
    assert queue.pop(0.0) is None


def test_waking_twice_gives_one_turn() -> None:
    queue = a_queue("a")
    entry = popped(queue)
    queue.park(entry, PLUGINS, 0.0)
    queue.wake(entry)
    queue.wake(entry)
    assert popped(queue, 5.0) is entry
    assert queue.pop(5.0) is None


def test_a_fork_goes_on_where_the_queue_is_and_neither_sees_what_the_other_does() -> None:
    queue = a_queue("active", "parked", "late", "held")
    held = queue.entries[Key("default", "held")]
    entries = {entry.key.name: entry for entry in (popped(queue) for _ in range(4))}
    queue.park(entries["parked"], PLUGINS, 0.0)
    queue.back_off_after_error(entries["late"], 0.0)
    queue.back_off_after_error(entries["active"], -10.0)
    queue.nominated[Key("default", "parked")] = "node-a"
    fork, copy_of = queue.fork()
    assert (sorted(fork.entries), sorted(fork.parked)) == (sorted(queue.entries), sorted(queue.parked))
    assert fork.nominated == queue.nominated
    copy = copy_of(held)
    assert copy is not held
    assert copy is copy_of(held) is fork.entries[held.key]
    assert [popped(fork, 0.5).key.name] == ["active"]
    assert fork.pop(0.5) is None
    fork.nominated.clear()
    assert queue.nominated == {Key("default", "parked"): "node-a"}
    assert popped(queue, 0.5) is entries["active"], "the fork took none of ours"
    assert [popped(side, 1.0).key.name for side in (fork, queue)] == ["late", "late"]
    assert [popped(side, 300.0).key.name for side in (fork, queue)] == ["parked", "parked"]
