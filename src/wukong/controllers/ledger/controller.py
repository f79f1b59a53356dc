"""The ledger controller: records what becomes true of Deployments and StatefulSets, and closes those that are gone.

    workload changes ─► settled? ─► noted ─► Record ─► the ledger ─► WorkloadRecord in the mirror
    workload gone for CERTAIN_SECONDS, and not closed in the ledger ─► Record with closed_at

What is noted is kept until the ledger has it, or something later of the same workload: a store that is down or slow
loses nothing, for every change of a workload passes here, also while a record of it is under way. An instance that
stands by notes the same. After a restart what is true now is recorded again, which changes nothing if it is there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, NamedTuple

import msgspec

from wukong.actions import DONE, Outcome, Record
from wukong.api.apps import Deployment, StatefulSet
from wukong.api.kinds import DEPLOYMENTS, STATEFUL_SETS, WORKLOAD_RECORDS
from wukong.api.ledger import ReplicaRecord, WorkloadRecord, object_name_of
from wukong.api.resources import Key
from wukong.api.times import format_time, parse_time
from wukong.controllers.ledger.settled import RecordedWorkload, find_record
from wukong.semantics.record_order import order_of
from wukong.state import Change, State
from wukong.state.controller import Watch

# A mirror may be behind, after a change of the leader above all: a workload that another instance has recorded may
# not have come to it yet. What is missing for so long is gone.
CERTAIN_SECONDS = 60.0
MOST_UNWRITTEN = 64  # records of one workload that wait for their store; the oldest are given up
_STRUCTS: dict[str, type[Deployment] | type[StatefulSet]] = {"deployment": Deployment, "statefulset": StatefulSet}


class Absence(NamedTuple):
    """A workload that the ledger has open and the mirror does not show."""

    uid: str
    since: float


class Ledger:
    name = "ledger"
    keeps_ledger: ClassVar[bool] = True  # checkers then hold the ledger to its promise

    def __init__(self, cluster: str = "", backoff: object = None) -> None:
        """`cluster` is its name in the ledger, which may hold several. `backoff` is handed to the runtime's queue."""
        self.cluster, self.backoff = cluster, backoff
        self._unwritten: dict[Key, dict[str, ReplicaRecord]] = {}  # what is true and not known to be in the ledger
        self._absences: dict[Key, Absence] = {}
        self.watches = (
            Watch(DEPLOYMENTS, self._note_workload),
            Watch(STATEFUL_SETS, self._note_workload),
            Watch(WORKLOAD_RECORDS, self._note_record),
        )

    def copy_memory(self, source: Ledger, _: State) -> None:
        self._unwritten = {key: dict(records) for key, records in source._unwritten.items()}
        self._absences = dict(source._absences)

    # ---- every change passes here

    def _note_workload(self, change: Change, _: State) -> Iterable[Key]:
        subject = change.new or change.old
        if not isinstance(subject, Deployment | StatefulSet):
            return ()
        key = _key_of(change.kind, change.key)
        record = find_record(subject, self.cluster) if change.new is not None else None
        if record is not None:
            records = self._unwritten.setdefault(key, {})
            records.setdefault(record.id, record)
            if len(records) > MOST_UNWRITTEN:
                del records[next(iter(records))]
        return (key,)

    def _note_record(self, change: Change, _: State) -> Iterable[Key]:
        if isinstance(change.new, WorkloadRecord):
            self._forget_written(change.key, change.new.record)
        return (change.key,)

    def _forget_written(self, key: Key, latest: ReplicaRecord) -> None:
        records = self._unwritten.get(key, {})
        for name in [name for name, record in records.items() if _is_written(record, latest)]:
            del records[name]
        if not records:
            self._unwritten.pop(key, None)

    # ---- decisions

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        kind, _, rest = key.name.partition(".")
        namespace, _, name = rest.partition(".")
        struct = _STRUCTS.get(kind)
        if struct is None:  # of a version of ours that records more
            return DONE
        place = Key(namespace, name)
        workload: RecordedWorkload | None = state.get(struct, place)
        known = state.get(WorkloadRecord, key)
        latest = known.record if known is not None else None
        if latest is not None:
            self._forget_written(key, latest)
        records = self._stamp(key, now)
        if workload is None and state.get_unreadable(struct, place) is not None:  # it is there, and nobody knows how
            self._absences.pop(key, None)
            return Outcome(tuple(map(Record, records)))
        if latest is not None and workload is not None and latest.closed_at and workload.metadata.uid == latest.uid:
            return self._open_again(latest, workload, records, now)
        closure, wait = self._close(key, latest, records, workload, now)
        return Outcome(tuple(map(Record, [*records, *closure])), requeue_after=wait)

    def _stamp(self, key: Key, now: float) -> list[ReplicaRecord]:
        """What is to be written of this workload, in order. It became true when it was first decided about."""
        records = self._unwritten.get(key, {})
        for name, record in records.items():
            if not record.at:
                records[name] = msgspec.structs.replace(record, at=format_time(now))
        return sorted(records.values(), key=order_of)

    def _open_again(
        self, latest: ReplicaRecord, workload: RecordedWorkload, records: list[ReplicaRecord], now: float
    ) -> Outcome:
        """The ledger has closed a workload that is there: by a mirror that was far behind, or before a restored backup.

        What is true of it now is recorded with the time of now, which tells the ledger.
        """
        record = find_record(workload, self.cluster)
        if record is None:
            return Outcome(tuple(map(Record, records)))
        closed_at = parse_time(latest.closed_at) or 0.0
        if now < closed_at + 1.0:  # times are in whole seconds
            return Outcome(tuple(map(Record, records)), requeue_after=closed_at + 1.0 - now)
        others = [other for other in records if other.id != record.id]
        return Outcome(tuple(map(Record, [*others, msgspec.structs.replace(record, at=format_time(now))])))

    def _close(
        self,
        key: Key,
        latest: ReplicaRecord | None,
        records: list[ReplicaRecord],
        workload: RecordedWorkload | None,
        now: float,
    ) -> tuple[list[ReplicaRecord], float | None]:
        """The workload of the ledger's latest record, closed if it is certainly gone; or the seconds until it is."""
        last = next((record for record in reversed(records) if latest is None or record.uid == latest.uid), latest)
        is_there = workload is not None and last is not None and workload.metadata.uid == last.uid
        if last is None or is_there or (latest is not None and latest.closed_at):
            self._absences.pop(key, None)
            return [], None
        absence = self._absences.get(key)
        if absence is None or absence.uid != last.uid:
            absence = self._absences[key] = Absence(last.uid, now)
        certain_at = absence.since + CERTAIN_SECONDS
        if now < certain_at:
            return [], certain_at - now
        return [msgspec.structs.replace(last, closed_at=format_time(absence.since))], None


def _key_of(kind: str, key: Key) -> Key:
    return Key("", object_name_of(kind, key.namespace, key.name))


def _is_written(record: ReplicaRecord, latest: ReplicaRecord) -> bool:
    return record.uid == latest.uid and record.generation <= latest.generation
