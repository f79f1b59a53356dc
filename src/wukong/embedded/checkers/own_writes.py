"""No key is decided on a mirror that lacks its own last write: until the watch shows it, or for PATIENCE seconds.

Only processes with watches can break this. Only writes that were answered count: a write whose answer got lost, or that
was made by a process that is gone, is not waited for; nor is one from before its clock jumped, for PATIENCE is measured
by that clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wukong.actions import Action
from wukong.embedded.checkers.findings import Findings
from wukong.embedded.world.process import Process
from wukong.runtime.dispatch import Item
from wukong.runtime.pending_writes import PATIENCE, WrittenVersion


class OwnWrite(NamedTuple):
    at: float
    written: WrittenVersion


class OwnWrites:
    def __init__(self, findings: Findings) -> None:
        self.findings, self.world = findings, findings.world
        self._writes: dict[tuple[Process, Item, float], list[OwnWrite]] = {}

    def observe_write(self, process: Process, item: Item, written: WrittenVersion) -> None:
        self._writes.setdefault((process, item, process.skew), []).append(OwnWrite(process.now, written))

    def observe_decision(self, process: Process, item: Item, _: Sequence[Action] = ()) -> None:
        writes = self._writes.pop((process, item, process.skew), ())
        recent = [write.written for write in writes if process.now - write.at < PATIENCE]
        if not recent:
            return
        streams = {stream.kind: stream for stream in self.world.streams_of(process)}
        for written in recent:
            stream = streams.get(written.group_kind)
            if stream is not None and not stream.has_shown(written.key, int(written.version or 0)):
                text = f"decided again before its own write to {written.kind} {written.key} showed"
                self.findings.report(str(item), text)
                return
