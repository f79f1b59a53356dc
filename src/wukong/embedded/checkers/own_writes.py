"""No key is decided on a mirror that lacks its own last write: until the watch shows it, or for as long as is patient.

Only processes with watches can break this. Their answers are what counts: a write whose answer got lost, or was made by
a process that is gone, is nobody's to wait for; nor is one from before its clock jumped, for patience is told by it.
"""

from __future__ import annotations

from wukong.embedded.checkers.findings import Findings
from wukong.embedded.world.process import Process
from wukong.embedded.world.watch_stream import WatchStream
from wukong.runtime.dispatch import Item
from wukong.runtime.pending_writes import PATIENCE, WrittenVersion


class OwnWrites:
    def __init__(self, desk: Findings) -> None:
        self.desk, self.world = desk, desk.world
        self._written: dict[tuple[Process, Item, float], list[tuple[float, WrittenVersion]]] = {}

    def wrote(self, process: Process, item: Item, written: WrittenVersion) -> None:
        self._written.setdefault((process, item, process.skew), []).append((process.now, written))

    def decided(self, process: Process, item: Item) -> None:
        written = self._written.pop((process, item, process.skew), None)
        if not written or process.now - written[-1][0] >= PATIENCE:
            return
        feeds = {feed.kind: feed for feed in self.world.streams_of(process)}
        for at, each in written:
            feed = feeds.get(each.group_kind)
            if feed is not None and process.now - at < PATIENCE and not self._has_shown(feed, each):
                told = f"decided again before its own write to {each.kind} {each.key} showed"
                self.desk.note(str(item), told)
                return

    def _has_shown(self, feed: WatchStream, written: WrittenVersion) -> bool:
        version = int(written.version or 0)
        held = feed.process.state.objects.get(written.group_kind, {}).get(written.key)
        if held is not None:
            return int(held.metadata.resource_version or 0) >= version
        is_gone = written.key not in self.world.state.objects.get(written.group_kind, {})
        return is_gone or feed.has_shown(version)
