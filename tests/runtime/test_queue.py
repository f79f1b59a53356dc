"""The queue: each item once, at its time, never while in flight."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wukong.runtime.queue import Backoff, Queue


def test_an_item_is_queued_once_and_the_earliest_time_holds() -> None:
    queue: Queue[str] = Queue()
    queue.add_after("a", 10, 0)
    queue.add("a", 5)
    queue.add_after("a", 20, 0)
    assert (len(queue), queue.next_due()) == (1, 5)
    assert queue.take_due(4.9) == []
    assert queue.take_due(5) == ["a"]
    assert (len(queue), queue.next_due(), queue.in_flight) == (0, None, 1)


def test_the_first_item_is_taken_and_what_no_longer_counts_is_not_due() -> None:
    queue: Queue[str] = Queue()
    queue.add_after("b", 2, 0)
    queue.add("b", 1)  # the former time no longer counts
    queue.add("a", 0)
    assert (queue.next_due(), queue.take_first()) == (0, "a")
    assert (queue.next_due(), queue.take_first()) == (1, "b")
    assert not queue.may_have_due(3)
    assert (len(queue), queue.in_flight) == (0, 2)


def test_an_item_in_flight_waits_until_it_is_done() -> None:
    queue: Queue[str] = Queue()
    queue.add("a", 0)
    queue.take_due(0)
    queue.add("a", 1)
    assert queue.take_due(100) == []
    queue.finish("a")
    assert queue.take_due(100) == ["a"]
    queue.finish("a")
    assert queue.next_due() is None


def test_of_several_times_asked_while_in_flight_the_earliest_holds() -> None:
    queue: Queue[str] = Queue()
    queue.add("a", 0)
    queue.take_due(0)
    queue.add("a", 1)
    queue.add_after("a", 60, 1)
    queue.finish("a")
    assert queue.next_due() == 1


def test_the_oldest_come_first_and_no_more_than_asked() -> None:
    queue: Queue[str] = Queue()
    for item, at in (("late", 3), ("b", 1), ("a", 1)):
        queue.add(item, at)
    assert queue.take_due(5, limit=2) == ["b", "a"]
    assert queue.take_due(5, limit=0) == []
    assert queue.take_due(5) == ["late"]


@pytest.mark.parametrize(
    ("failures", "jitter", "expected"),
    [(1, 0, 1.0), (2, 0, 2.0), (4, 0, 8.0), (5, 0, 10.0), (2000, 0, 10.0), (3, 0.5, 3.0)],
)
def test_backoff_doubles_up_to_its_cap_less_a_share_by_chance(failures: int, jitter: float, expected: float) -> None:
    assert Backoff(first=1.0, cap=10.0, spread=0.5).delay(failures, jitter) == expected


def test_failures_back_off_until_one_success() -> None:
    queue: Queue[str] = Queue(Backoff(first=1.0, cap=10.0))
    delays = []
    now = 0.0
    queue.add("a", now)
    for _ in range(3):
        assert queue.take_due(now) == ["a"]
        delays.append(queue.retry("a", now, 0.0))
        queue.finish("a")
        now += delays[-1]
    assert delays == [1.0, 2.0, 4.0]
    queue.forget("a")
    assert queue.retry("a", now, 0.0) == 1.0
    assert queue.retry("b", now, 0.0, at_least=30.0) == 30.0


steps = st.lists(st.tuples(st.sampled_from(["add", "after", "due", "done"]), st.integers(0, 3), st.integers(0, 5)))


@given(steps)
def test_nothing_asked_for_is_lost_and_nothing_runs_twice_at_once(story: list[tuple[str, int, int]]) -> None:
    queue: Queue[int] = Queue()
    now, running, owed = 0, set[int](), set[int]()
    for step, item, number in story:
        if step == "add":
            queue.add(item, now)
            owed.add(item)
        elif step == "after":
            queue.add_after(item, number, now)
            owed.add(item)
        elif step == "due":
            now += number
            taken = queue.take_due(now)
            assert not running & set(taken)
            running |= set(taken)
            owed -= set(taken)
        elif item in running:
            running.remove(item)
            queue.finish(item)
    for item in running:
        queue.finish(item)
    assert set(queue.take_due(now + 10)) == owed


def test_what_is_asked_for_while_an_item_waits_for_its_turn_is_part_of_it() -> None:
    queue: Queue[str] = Queue()
    queue.add("a", 0)
    queue.take_due(0)
    queue.add("a", 1)
    queue.restart("a", 2)
    queue.finish("a")
    assert queue.next_due() is None


def test_what_is_asked_for_later_than_work_on_an_item_begins_is_not() -> None:
    queue: Queue[str] = Queue()
    queue.add("a", 0)
    queue.take_due(0)
    queue.add("a", 3)
    queue.restart("a", 2)
    queue.finish("a")
    assert queue.next_due() == 3


def test_a_key_asked_for_again_and_again_leaves_nothing_behind() -> None:
    queue: Queue[str] = Queue()
    for number in range(10_000):
        queue.add_after("web", 300.0, float(number))  # look again in five minutes
        queue.add("web", float(number))  # but it changes all the time
        assert queue.take_due(float(number)) == ["web"]
        queue.finish("web")
    assert len(queue._heap) <= 1100
    queue.add("db", 1.0)
    queue.add("web", 2.0)
    assert queue.take_due(10_000.0) == ["db", "web"]


@pytest.mark.parametrize(("at_least", "expected"), [(7.0, 7.0), (1e9, 300.0), (float("inf"), 300.0), (-5.0, 0.5)])
def test_what_a_server_says_is_heeded_within_reason(at_least: float, expected: float) -> None:
    queue: Queue[str] = Queue()
    queue.add("web", 0.0)
    queue.take_due(0.0)
    assert queue.retry("web", 0.0, 0.0, at_least=at_least) == expected
