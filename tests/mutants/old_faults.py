"""Faults of the past as mutants of today's code (old_faults.toml). Read by __main__.py, checked by test_mutants.py."""

from __future__ import annotations

from pathlib import Path

import msgspec

from mutants.mutations import Mutant

FILE = Path(__file__).with_name("old_faults.toml")


class OldFault(msgspec.Struct, forbid_unknown_fields=True):
    was: str
    file: str
    before: str
    after: str

    def plant(self, source: bytes) -> Mutant:
        """The fault as a change of its file. Raises ValueError where `before` is not there exactly once."""
        before = self.before.encode()
        if source.count(before) != 1:
            raise ValueError(f"{self.file}: expected once, found {source.count(before)} times: {self.before!r}")
        start = source.index(before)
        line = source[:start].count(b"\n") + 1
        return Mutant(self.file, line, self.was, start, start + len(before), self.after)


def read_old_faults(file: Path = FILE) -> list[OldFault]:
    return msgspec.toml.decode(file.read_bytes(), type=dict[str, list[OldFault]])["fault"]
