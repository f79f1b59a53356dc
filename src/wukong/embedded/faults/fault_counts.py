"""How often each type of fault was injected, and how often it made a difference. Kept by faults.py, shown by soaks."""

from __future__ import annotations

from collections import Counter as Tally

import msgspec


class FaultCounts(msgspec.Struct):
    injected: Tally[str] = msgspec.field(default_factory=Tally)
    effective: Tally[str] = msgspec.field(default_factory=Tally)
    # Sign that a fault had an effect → the faults that wait for it.
    _awaited: dict[object, list[str]] = msgspec.field(default_factory=dict)

    def count_injected(self, fault: str) -> None:
        self.injected[fault] += 1

    def count_effective(self, fault: str) -> None:
        self.effective[fault] += 1

    def expect(self, sign: object, fault: str) -> None:
        """Count the fault as effective once `observe` is called with this sign."""
        self._awaited.setdefault(sign, []).append(fault)

    def observe(self, sign: object) -> None:
        for fault in self._awaited.pop(sign, ()):
            self.count_effective(fault)
