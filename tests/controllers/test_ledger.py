"""What is recorded of a workload, and when; and that nothing noted is lost while the store is away."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ledgers import a_deployment, a_record, a_stateful_set
from wukong.actions import Outcome, Record
from wukong.api.apps import Deployment
from wukong.api.kinds import DEPLOYMENTS, STATEFUL_SETS, WORKLOAD_RECORDS
from wukong.api.ledger import ReplicaRecord, WorkloadRecord
from wukong.api.meta import Object, ObjectMeta
from wukong.api.resources import Key
from wukong.api.unreadable import Unreadable
from wukong.controllers.ledger.controller import CERTAIN_SECONDS, MOST_UNWRITTEN, Ledger
from wukong.controllers.ledger.settled import find_record
from wukong.state import State

KEY = Key("", "deployment.shop.web")
NOW = 1_767_225_660.0  # 2026-01-01T00:01:00Z


class Scene:
    """A controller that hears of every change of a mirror."""

    def __init__(self) -> None:
        self.controller, self.state, self.version = Ledger("default"), State(), 0

    def show(self, subject: Object, type_: str = "MODIFIED") -> None:
        self.version += 1
        subject = replace(subject, metadata=replace(subject.metadata, resource_version=str(self.version)))
        for change in self.state.apply(type_, subject):  # type: ignore[arg-type]
            for watch in self.controller.watches:
                if watch.resource.group_kind == change.group_kind:
                    list(watch.keys(change, self.state))

    def say(self, record: ReplicaRecord) -> None:
        """The ledger says this."""
        self.show(WorkloadRecord(metadata=ObjectMeta(name=record.object_name), record=record))

    def decide(self, after: float = 0.0) -> Outcome:
        return self.controller.reconcile(KEY, self.state, NOW + after)

    def records(self, after: float = 0.0) -> list[ReplicaRecord]:
        actions = self.decide(after).actions
        assert all(isinstance(action, Record) for action in actions)
        return [action.record for action in actions if isinstance(action, Record)]


def test_what_is_complete_is_recorded_once() -> None:
    scene = Scene()
    scene.show(a_deployment())
    assert scene.records() == [a_record()]
    scene.say(a_record())
    assert scene.decide() == Outcome()


@pytest.mark.parametrize(
    "status",
    [
        {"observed_generation": 0},
        {"replicas": 4},  # a surge
        {"updated_replicas": 2},
        {"available_replicas": 2},  # Pending, or crashing
        {"available_replicas": 4},
        {"replicas": 2, "updated_replicas": 2, "available_replicas": 2},  # a dip
    ],
    ids=str,
)
def test_what_is_on_its_way_is_never_recorded(status: dict[str, int]) -> None:
    whole = a_deployment()
    assert find_record(replace(whole, status=replace(whole.status, **status)), "default") is None


@pytest.mark.parametrize(
    "metadata",
    [
        {"uid": ""},
        {"generation": 0},
        {"generation": 1 << 63},
        {"creation_timestamp": "soon"},
        {"deletion_timestamp": "x"},
    ],
    ids=str,
)
def test_what_makes_no_sense_is_never_recorded(metadata: dict[str, object]) -> None:
    whole = a_deployment()
    generation = metadata.get("generation", 1)
    status = replace(whole.status, observed_generation=generation)
    assert find_record(replace(whole, metadata=replace(whole.metadata, **metadata), status=status), "") is None


@pytest.mark.parametrize("replicas", [-1, 1 << 31])
def test_numbers_that_no_api_server_lets_through_are_never_recorded(replicas: int) -> None:
    assert find_record(a_deployment(replicas), "") is None


def test_no_number_of_replicas_means_one_and_zero_is_a_number() -> None:
    assert [find_record(a_deployment(number), "").replicas for number in (None, 0)] == [1, 0]  # type: ignore[union-attr]


@pytest.mark.parametrize(("revision", "recorded"), [("12", "12"), ("latest", ""), ("9" * 300, "")])
def test_a_revision_is_a_number(revision: str, recorded: str) -> None:
    workload = a_deployment()
    workload.metadata.annotations = {"deployment.kubernetes.io/revision": revision}
    record = find_record(workload, "")
    assert record is not None
    assert record.revision == recorded


def test_a_stateful_set_has_the_name_of_its_revision() -> None:
    record = find_record(a_stateful_set(update_revision="db-5f"), "default")
    assert record is not None
    assert (record.kind, record.revision, record.replicas) == ("StatefulSet", "db-5f", 2)
    assert find_record(a_stateful_set(updated_replicas=1), "") is None  # held by its partition


def test_what_became_true_while_the_store_was_down_is_written_in_order() -> None:
    scene = Scene()
    for generation, replicas in ((1, 3), (2, 5), (3, 4)):
        scene.show(a_deployment(replicas, generation))
        scene.decide(after=generation)
    records = scene.records(after=60)
    assert [(record.generation, record.replicas, record.at[-3:]) for record in records] == [
        (1, 3, "01Z"),
        (2, 5, "02Z"),
        (3, 4, "03Z"),
    ]
    scene.say(records[1])
    assert [record.generation for record in scene.records(after=60)] == [3]


def test_what_became_true_between_two_decisions_is_not_lost() -> None:
    scene = Scene()
    scene.show(a_deployment(3, 1))
    scene.show(a_deployment(5, 2))
    scene.show(a_deployment(5, 3, available=2))
    assert [record.generation for record in scene.records()] == [1, 2]


def test_of_very_many_that_wait_the_oldest_are_given_up() -> None:
    scene = Scene()
    for generation in range(1, MOST_UNWRITTEN + 3):
        scene.show(a_deployment(3, generation))
    assert [record.generation for record in scene.records()] == list(range(3, MOST_UNWRITTEN + 3))


def test_who_starts_again_records_nothing_that_the_ledger_has() -> None:
    scene = Scene()
    scene.say(a_record(4, at="2025-01-01T00:00:00Z"))
    scene.show(a_deployment(3, 4))
    assert scene.records() == []


def test_what_is_gone_is_closed_when_that_is_certain() -> None:
    scene = Scene()
    scene.show(a_deployment())
    scene.say(a_record())
    scene.show(a_deployment(), "DELETED")
    assert scene.decide() == Outcome(requeue_after=CERTAIN_SECONDS)
    assert scene.decide(after=20) == Outcome(requeue_after=CERTAIN_SECONDS - 20)
    (closing,) = scene.records(after=CERTAIN_SECONDS)
    assert closing == a_record(closed_at="2026-01-01T00:01:00Z")
    scene.say(closing)
    assert scene.decide(after=CERTAIN_SECONDS) == Outcome()


def test_a_workload_that_comes_late_to_a_mirror_is_not_closed() -> None:
    scene = Scene()
    scene.say(a_record())  # another instance has recorded it
    assert scene.records() == []
    scene.show(a_deployment())
    assert scene.decide(after=2 * CERTAIN_SECONDS) == Outcome()


def test_what_was_gone_for_a_moment_waits_anew() -> None:
    scene = Scene()
    scene.say(a_record())
    scene.decide()
    scene.show(a_deployment())
    scene.decide(after=30)
    scene.show(a_deployment(), "DELETED")
    assert scene.decide(after=CERTAIN_SECONDS).requeue_after == CERTAIN_SECONDS


def test_an_unreadable_workload_is_there() -> None:
    scene = Scene()
    scene.say(a_record())
    broken = Unreadable(metadata=ObjectMeta(namespace="shop", name="web", uid="a"), problem="nobody can read it")
    scene.state.apply("MODIFIED", broken, DEPLOYMENTS.group_kind)
    scene.decide()
    assert scene.decide(after=2 * CERTAIN_SECONDS) == Outcome()


def test_a_workload_that_is_being_deleted_is_neither_recorded_nor_closed() -> None:
    scene = Scene()
    scene.say(a_record())
    leaving = a_deployment(3, 2)
    leaving.metadata.deletion_timestamp = "2026-01-01T00:00:59Z"
    scene.show(leaving)
    scene.decide()
    assert scene.decide(after=2 * CERTAIN_SECONDS) == Outcome()


def test_a_workload_that_was_made_again_is_recorded_without_waiting() -> None:
    scene = Scene()
    scene.say(a_record(9))
    again = a_deployment(2, 1, uid="b")
    again.metadata.creation_timestamp = "2026-01-01T00:00:30Z"
    scene.show(again)
    (record,) = scene.records()
    assert (record.uid, record.generation, record.replicas) == ("b", 1, 2)


def test_what_was_closed_by_mistake_is_recorded_anew() -> None:
    scene = Scene()
    scene.say(a_record(closed_at="2026-01-01T00:01:00Z"))
    scene.show(a_deployment())
    assert scene.decide() == Outcome(requeue_after=1.0)
    assert scene.records(after=1) == [a_record(at="2026-01-01T00:01:01Z")]


def test_the_copy_of_a_controller_remembers_what_waits() -> None:
    scene = Scene()
    scene.show(a_deployment())
    scene.decide()
    copy = Ledger("default")
    copy.copy_memory(scene.controller, scene.state)
    assert copy.reconcile(KEY, scene.state, NOW + 60) == scene.decide()


def test_records_of_kinds_of_another_version_are_left_alone() -> None:
    assert Ledger().reconcile(Key("", "cronjob.shop.web"), State(), NOW) == Outcome()


def test_it_watches_what_it_records_and_what_is_recorded() -> None:
    assert [watch.resource for watch in Ledger().watches] == [DEPLOYMENTS, STATEFUL_SETS, WORKLOAD_RECORDS]
    assert isinstance(a_deployment(), Deployment)
