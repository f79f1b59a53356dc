"""How often each type of fault was injected, and how often it made a difference. Kept by faults.py, shown by soaks."""

from __future__ import annotations

from collections import Counter as Tally

import msgspec


class FaultCounts(msgspec.Struct):
    injected: Tally[str] = msgspec.field(default_factory=Tally)
    effective: Tally[str] = msgspec.field(default_factory=Tally)
    _owed: dict[object, list[str]] = msgspec.field(default_factory=dict)  # what would show that a fault had an effect

    def inject(self, name: str) -> None:
        self.injected[name] += 1

    def confirm(self, name: str) -> None:
        self.effective[name] += 1

    def expect(self, sign: object, name: str) -> None:
        """The fault has had an effect once `saw` is told this sign."""
        self._owed.setdefault(sign, []).append(name)

    def saw(self, sign: object) -> None:
        for name in self._owed.pop(sign, ()):
            self.confirm(name)
