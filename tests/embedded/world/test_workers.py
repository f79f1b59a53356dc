"""Who is busy, and what is written together."""

from __future__ import annotations

import pytest

from wukong.actions import Action, Create, Delete, Evict, Note, Outcome, Patch
from wukong.api.kinds import DEPLOYMENTS, PODS, REPLICA_SETS
from wukong.api.resources import Key
from wukong.embedded.world.timing import Timing
from wukong.embedded.world.workers import Decision, Freed, Workers, count_together
from wukong.ports import PatchBody
from wukong.runtime.dispatch import Item
from wukong.runtime.work_cycle import Work

WEB = Key("shop", "web")
CREATE, DELETE, EVICT = Create(PODS, {}), Delete(PODS, WEB), Evict(WEB)
STATUS = Patch(REPLICA_SETS, WEB, PatchBody("merge", {}), "status")
NOTE = Note(DEPLOYMENTS, WEB, "Scaled", "up")


def batches_of(actions: list[Action]) -> list[int]:
    """How many writes are performed at each moment."""
    position, batches = 0, []
    while position < len(actions):
        count = count_together(actions, position)
        batches.append(sum(not isinstance(action, Note) for action in actions[position : position + count]))
        position += count
    return batches


@pytest.mark.parametrize(
    ("actions", "batches"),
    [
        ([CREATE] * 20, [1, 2, 4, 8, 5]),
        ([CREATE, NOTE] * 4, [1, 2, 1]),
        ([DELETE] * 9, [9]),
        ([EVICT] * 3, [3]),
        ([STATUS, CREATE, CREATE, CREATE], [1, 1, 2]),
        ([STATUS, STATUS, NOTE, STATUS], [1, 1, 1]),
        ([NOTE, STATUS, NOTE], [1]),
        ([Create(REPLICA_SETS, {}), Create(REPLICA_SETS, {})], [1, 1]),
        ([STATUS, DELETE, DELETE], [1, 2]),
        ([NOTE], [0]),
    ],
)
def test_pods_are_created_in_batches_that_double_and_other_writes_follow_each_other(
    actions: list[Action], batches: list[int]
) -> None:
    assert batches_of(actions) == batches


def item(number: int, controller: str = "daemonset") -> Item:
    return Item(controller, Key("shop", f"web-{number}"))


def a_decision(number: int = 0, controller: str = "daemonset") -> Decision:
    return Decision(Work(item(number, controller), Outcome((STATUS, STATUS))), 0.0)


def test_no_more_decisions_are_carried_out_at_once_than_there_are_workers() -> None:
    workers = Workers(Timing(1))  # two for DaemonSets, as kube-controller-manager has
    assert [workers.occupy(item(number)) for number in range(4)] == [True, True, False, False]
    decision = a_decision(0)
    workers.begin(decision, 10.0)
    workers.end(decision, 10.02)
    assert [workers.pop_due(10.02) for _ in range(2)] == [decision, item(2)]  # it got the worker that was freed
    workers.release("daemonset", 10.03)
    assert workers.pop_due(10.03) == item(3)
    workers.release("daemonset", 10.04)
    assert workers.occupy(item(4))


def test_bindings_go_on_beside_the_next_decision() -> None:
    workers = Workers(Timing(1))
    decision = a_decision(controller="scheduler")
    assert workers.occupy(item(0, "scheduler"))
    assert not workers.occupy(item(1, "scheduler"))
    workers.begin(decision, 10.0)
    assert workers.next_due() == 10.001
    assert workers.pop_due(10.001) == Freed("scheduler")
    workers.release("scheduler", 10.001)
    assert workers.pop_due(10.001) == item(1, "scheduler")
    assert workers.next_due() is not None
    assert [busy for busy, _ in workers.list_due()] == [decision.work.item]


def test_a_copy_goes_on_by_itself() -> None:
    workers = Workers(Timing(1))
    for number in range(3):
        workers.occupy(item(number))
    workers.begin(a_decision(0), 10.0)
    copy = workers.fork()
    due = copy.next_due()
    assert due == workers.next_due()
    assert due is not None
    copied = copy.pop_due(due)
    assert isinstance(copied, Decision)
    copied.work.advance(None)
    copy.end(copied, due)
    assert copy.pop_due(due) == item(2)
    original = workers.pop_due(due)
    assert isinstance(original, Decision)
    assert (original.work.item, original.work.position, copied.work.position) == (copied.work.item, 0, 1)
    assert [list(program.list_under_way("daemonset")) for program in (workers, copy)] == [[original], []]


def test_a_decision_is_under_way_until_its_last_write() -> None:
    workers, decision = Workers(Timing(1)), a_decision()
    workers.occupy(decision.work.item)
    workers.begin(decision, 10.0)
    assert workers.pop_due(11.0) == decision
    assert not workers.is_idle
    workers.proceed(decision, 11.0)
    assert workers.pop_due(12.0) == decision
    assert list(workers.list_under_way("daemonset")) == [decision]
    workers.end(decision, 12.0)
    assert workers.is_idle


def test_a_fork_knows_what_is_under_way_in_the_order_in_which_it_was_decided() -> None:
    workers = Workers(Timing(1))
    for number in range(12):
        for controller in ("scheduler", "daemonset"):
            workers.begin(a_decision(number, controller), 10.0)
    for controller in ("scheduler", "daemonset"):
        expected = [decision.work.item for decision in workers.list_under_way(controller)]
        assert [decision.work.item for decision in workers.fork().list_under_way(controller)] == expected
