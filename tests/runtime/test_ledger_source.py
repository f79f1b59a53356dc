"""What the ledger says reaches the mirror at the start and after each write, and its trouble is known."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from ledgers import a_record
from wukong.actions import Record
from wukong.api.kinds import WORKLOAD_RECORDS
from wukong.api.ledger import ReplicaRecord, WorkloadRecord
from wukong.api.meta import Object, ObjectMeta
from wukong.embedded.store import Store
from wukong.embedded.world.clock import VirtualClock
from wukong.errors import LedgerFailed
from wukong.runtime import ledger_source
from wukong.runtime.ledger_source import LedgerSource, WatchedLedger
from wukong.runtime.pending_writes import WrittenVersion
from wukong.runtime.performer import Performer


class MemoryLedger:
    """Holds the last record of each workload, and fails on demand."""

    def __init__(self) -> None:
        self.objects: dict[str, WorkloadRecord] = {}
        self.failure = ""

    async def write(self, record: ReplicaRecord) -> WorkloadRecord:
        self._fail()
        meta = ObjectMeta(name=record.object_name, resource_version=str(record.generation))
        self.objects[record.object_name] = WorkloadRecord(metadata=meta, record=record)
        return self.objects[record.object_name]

    async def list_latest(self) -> list[WorkloadRecord]:
        self._fail()
        return list(self.objects.values())

    async def list_history(self, object_name: str) -> list[ReplicaRecord]:
        return [self.objects[object_name].record]

    def _fail(self) -> None:
        if self.failure:
            raise LedgerFailed(self.failure)


def test_records_are_handed_over_at_the_start_and_after_each_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_source, "SETTLE_SECONDS", 0.0)

    async def story() -> None:
        ledger = WatchedLedger(MemoryLedger())
        handed: asyncio.Queue[Sequence[Object]] = asyncio.Queue()
        task = asyncio.create_task(LedgerSource(ledger).run(handed.put_nowait))
        assert await handed.get() == []
        answer = await ledger.write(a_record())
        assert await handed.get() == [answer]
        assert await ledger.list_history(answer.metadata.name) == [a_record()]
        task.cancel()

    asyncio.run(asyncio.wait_for(story(), 60))


def test_trouble_is_known_until_it_is_over_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_source, "ASK_SECONDS", 0.001)

    async def story() -> None:
        inner = MemoryLedger()
        ledger = WatchedLedger(inner)
        inner.failure = "ledger.db: its disk is full."
        with pytest.raises(LedgerFailed):
            await ledger.write(a_record())
        assert ledger.trouble == inner.failure
        handed: asyncio.Queue[Sequence[Object]] = asyncio.Queue()
        task = asyncio.create_task(LedgerSource(ledger).run(handed.put_nowait))
        await asyncio.sleep(0)
        inner.failure = ""
        assert await handed.get() == []
        assert ledger.trouble == ""
        task.cancel()

    asyncio.run(asyncio.wait_for(story(), 60))


def test_a_record_is_written_to_the_ledger_and_its_version_is_awaited() -> None:
    async def story() -> None:
        ledger = MemoryLedger()
        performer = Performer(Store(VirtualClock()), ledger=ledger)
        action = Record(a_record(4))
        written = await performer.perform(action, 0.0)
        assert written == WrittenVersion(WORKLOAD_RECORDS.group_kind, action.key, "4")
        assert await performer.look_again(action) is None  # to write it again is as good as to look

    asyncio.run(story())
