"""Hands over what the ledger says, at the start, after every write of this process, and now and then for others'.

The source of the component ledger: controllers watch WorkloadRecords like any object. A ledger that cannot be read
changes nothing: what it said last stands, it is asked again, and whoever probes the process is told.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from wukong.api.kinds import WORKLOAD_RECORDS
from wukong.api.ledger import ReplicaRecord, WorkloadRecord
from wukong.errors import ClusterError
from wukong.ports import Ledger
from wukong.runtime.source import HandOver

log = logging.getLogger(__name__)
SETTLE_SECONDS = 0.2  # after a write others are waited for: all records are handed over at once
ASK_SECONDS = 10.0


class WatchedLedger:
    """A ledger whose writes are heard of, and whose trouble is known. What the process writes through."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.written = asyncio.Event()
        self.trouble = ""  # why it could not be read or written last; "" if it could

    async def write(self, record: ReplicaRecord) -> WorkloadRecord:
        try:
            answer = await self.ledger.write(record)
        except ClusterError as error:
            self._note(str(error))
            raise
        self._note("")
        self.written.set()
        return answer

    async def list_latest(self) -> list[WorkloadRecord]:
        try:
            answer = await self.ledger.list_latest()
        except ClusterError as error:
            self._note(str(error))
            raise
        self._note("")
        return answer

    async def list_history(self, object_name: str) -> list[ReplicaRecord]:
        return await self.ledger.list_history(object_name)

    def _note(self, trouble: str) -> None:
        if trouble and trouble != self.trouble:
            log.warning("the ledger fails", extra={"error": trouble})
        self.trouble = trouble


class LedgerSource:
    resource = WORKLOAD_RECORDS

    def __init__(self, ledger: WatchedLedger) -> None:
        self.ledger = ledger

    async def run(self, hand_over: HandOver) -> None:
        """For ever."""
        while True:
            self.ledger.written.clear()
            with suppress(ClusterError):  # noted, and asked again
                hand_over(await self.ledger.list_latest())
            with suppress(TimeoutError):
                await asyncio.wait_for(self.ledger.written.wait(), ASK_SECONDS)
                await asyncio.sleep(SETTLE_SECONDS)
