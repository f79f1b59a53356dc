"""No order in which records arrive takes a ledger back in time, and all orders end the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ledgers import a_record
from wukong.api.ledger import ReplicaRecord
from wukong.semantics.record_order import order_of, take_in

LATER = "2026-01-01T01:00:00Z"
CLOSED = "2026-01-01T00:30:00Z"


def play(records: list[ReplicaRecord]) -> ReplicaRecord | None:
    """What is said after all of them."""
    latest, closed = None, set[str]()
    for record in records:
        change = take_in(latest, record, is_closed=record.uid in closed)
        closed = (closed | {change.closed_uid}) - {change.opened_uid}
        latest = change.latest
    return latest


def test_the_higher_generation_holds_whichever_comes_first() -> None:
    first, second = a_record(1), a_record(2, replicas=5)
    assert play([first, second]) == play([second, first]) == play([second, second, first]) == second


def test_a_workload_that_was_made_again_begins_at_generation_1_and_closes_the_one_before() -> None:
    before, after = a_record(9), a_record(1, uid="0", created=LATER)
    assert take_in(before, after, is_closed=False) == (after, "a", LATER, "")
    assert play([after, before]) == play([before, after, before]) == after


def test_a_late_record_of_a_closed_workload_does_not_open_it() -> None:
    closing = a_record(1, closed_at=CLOSED)
    late = play([a_record(1), closing, a_record(2, replicas=5)])
    assert late == a_record(2, replicas=5, closed_at=CLOSED)


def test_a_workload_that_was_there_after_it_was_closed_is_open_again() -> None:
    there = a_record(1, at=LATER)
    assert play([a_record(1), a_record(1, closed_at=CLOSED), there]) == a_record(1)


def test_of_two_that_were_made_in_the_same_second_the_first_holds_until_it_is_closed() -> None:
    first, second = a_record(1, uid="z"), a_record(1, uid="b", replicas=2)
    assert play([first, second]) == first
    assert play([second, first]) == second
    assert play([first, a_record(1, uid="z", closed_at=CLOSED), second, first]) == second


def test_to_close_what_nobody_knows_says_nothing() -> None:
    assert play([a_record(1, closed_at=CLOSED)]) is None


LIVES = [("a", "2026-01-01T00:00:00Z"), ("c", "2026-01-01T00:10:00Z"), ("b", "2026-01-01T00:20:00Z")]


@given(st.data())
def test_all_orders_of_arrival_end_with_the_latest_record(data: st.DataObject) -> None:
    records = [
        a_record(generation, replicas=generation, uid=uid, created=created)
        for uid, created in LIVES
        for generation in range(1, data.draw(st.integers(1, 4)) + 1)
    ]
    arrivals = data.draw(st.permutations(records + data.draw(st.lists(st.sampled_from(records), max_size=5))))
    latest: ReplicaRecord | None = None
    closed = set[str]()
    for record in arrivals:
        change = take_in(latest, record, is_closed=record.uid in closed)
        closed |= {change.closed_uid}
        assert change.latest is not None
        assert latest is None or (change.latest.created, change.latest.generation) >= (latest.created, 0)
        latest = change.latest
    assert latest is not None
    assert latest.uid == "b"
    assert latest.id == max((record for record in records if record.uid == "b"), key=order_of).id
