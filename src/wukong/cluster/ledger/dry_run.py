"""A ledger that is read and never written: what would be recorded is said once. For `wukong run --dry-run`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import msgspec

from wukong.actions import Action, Record
from wukong.api.ledger import ReplicaRecord, WorkloadRecord
from wukong.api.meta import ObjectMeta
from wukong.ports import Ledger

_KEPT = 10_000  # records that were said already


class DryRunLedger:
    def __init__(self, ledger: Ledger | None, say: Callable[[Action], None]) -> None:
        """`ledger` is None where there is none yet."""
        self._ledger, self._say = ledger, say
        self._said: OrderedDict[ReplicaRecord, None] = OrderedDict()

    async def write(self, record: ReplicaRecord) -> WorkloadRecord:
        identity = msgspec.structs.replace(record, at="", closed_at="closed" if record.closed_at else "")
        if identity not in self._said:
            self._say(Record(record))
        self._said[identity] = None
        if len(self._said) > _KEPT:
            self._said.popitem(last=False)
        return WorkloadRecord(metadata=ObjectMeta(name=record.object_name), record=record)

    async def list_latest(self) -> list[WorkloadRecord]:
        return await self._ledger.list_latest() if self._ledger is not None else []

    async def list_history(self, object_name: str) -> list[ReplicaRecord]:
        return await self._ledger.list_history(object_name) if self._ledger is not None else []
