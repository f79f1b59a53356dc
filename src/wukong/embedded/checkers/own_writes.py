"""No key is decided on a mirror that lacks its own last write: until the watch shows it, or for PATIENCE seconds.

Only processes with watches can break this. Only writes that were answered count: a write whose answer got lost, or that
was made by a process that is gone, is not waited for; nor is one from before its clock jumped, for PATIENCE is measured
by that clock.
"""

from __future__ import annotations

from typing import NamedTuple

from wukong.embedded.checkers.findings import Findings
from wukong.embedded.world.process import Process
from wukong.embedded.world.watch_stream import WatchStream
from wukong.runtime.dispatch import Item
from wukong.runtime.pending_writes import PATIENCE, WrittenVersion


class OwnWrite(NamedTuple):
    at: float
    written: WrittenVersion
    was_mirrored: bool  # the process knew the object: where its mirror lacks it now, it has seen the object go


class OwnWrites:
    def __init__(self, findings: Findings) -> None:
        self.findings, self.world = findings, findings.world
        self._writes: dict[tuple[Process, Item, float], list[OwnWrite]] = {}

    def observe_write(self, process: Process, item: Item, written: WrittenVersion) -> None:
        was_mirrored = written.key in process.state.objects.get(written.group_kind, {})
        write = OwnWrite(process.now, written, was_mirrored)
        self._writes.setdefault((process, item, process.skew), []).append(write)

    def observe_decision(self, process: Process, item: Item) -> None:
        writes = self._writes.pop((process, item, process.skew), None)
        if not writes or process.now - writes[-1].at >= PATIENCE:
            return
        streams = {stream.kind: stream for stream in self.world.streams_of(process)}
        for write in writes:
            written = write.written
            stream = streams.get(written.group_kind)
            if stream is not None and process.now - write.at < PATIENCE and not self._has_shown(stream, write):
                text = f"decided again before its own write to {written.kind} {written.key} showed"
                self.findings.report(str(item), text)
                return

    def _has_shown(self, stream: WatchStream, write: OwnWrite) -> bool:
        written, version = write.written, int(write.written.version or 0)
        mirrored = stream.process.state.objects.get(written.group_kind, {}).get(written.key)
        if mirrored is not None:
            return int(mirrored.metadata.resource_version or 0) >= version
        if write.was_mirrored:  # though another of its name may have come since, of which nothing was heard yet
            return True
        is_gone = written.key not in self.world.state.objects.get(written.group_kind, {})
        return is_gone or stream.has_shown(version)
