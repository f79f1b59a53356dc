"""Faults of the ledger's store: it is down for a while, or it writes long after its client has given up.

Called by writes.py before each record is written. A store that writes and does not answer in time is struck there, as
every other write is (lost-answer).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from wukong.actions import Record
from wukong.api.kinds import WORKLOAD_RECORDS
from wukong.embedded.ledger import write_record
from wukong.errors import LedgerFailed, NotFound, OutcomeUnknown
from wukong.runtime.dispatch import Item

if TYPE_CHECKING:
    from wukong.embedded.faults.faults import Faults

LONGEST_DOWN, LATEST = 90.0, 45.0


class LedgerFaults:
    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.by_type: dict[str, Callable[[], None]] = {"ledger-down": self.stop_store}
        self._down_until = 0.0
        self._has_refused = False  # since it went down

    def stop_store(self) -> None:
        now = self.faults.world.clock.now()
        if now < self._down_until:
            return
        self.faults.counts.count_injected("ledger-down")
        self._down_until = now + 5.0 + LONGEST_DOWN * self.faults.draw_fraction("down")
        self._has_refused = False

    def strike(self, process: str, item: Item, action: Record) -> None:
        """Called before a record is written. Raises where its store does not answer."""
        now = self.faults.world.clock.now()
        if now < self._down_until:
            if not self._has_refused:
                self.faults.counts.count_effective("ledger-down")
                self._has_refused = True
            raise LedgerFailed("the ledger's store is down (injected)")
        if self.faults.draw_fault("record", lambda _: True) is None:
            return
        self.faults.counts.count_injected("ledger-late")
        seconds = 0.5 + LATEST * self.faults.draw_fraction("late")
        version = self._version_of(action)
        self.faults.world.timers.add(now + seconds, partial(self._write_late, action, version))
        raise OutcomeUnknown(f"no answer of the ledger's store (injected): {process} {item}")

    def _write_late(self, action: Record, version: str) -> None:
        if self._version_of(action) != version:
            self.faults.counts.count_effective("ledger-late")
        write_record(self.faults.world.server, action.record)

    def _version_of(self, action: Record) -> str:
        try:
            document = self.faults.world.server.get(WORKLOAD_RECORDS, action.key)
        except NotFound:
            return ""
        return str(document["metadata"]["resourceVersion"])
