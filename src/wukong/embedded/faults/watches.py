"""Watches with faults in them: they lag, break and list again, tell twice, or tell out of order.

Called by feeding.py, for every event.."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from wukong.embedded.world.process import Process
from wukong.embedded.world.watch_stream import AT_ONCE, Arrival, StreamEvent, WatchStream
from wukong.errors import Gone
from wukong.state import Change

if TYPE_CHECKING:
    from wukong.embedded.faults.faults import Faults

LONGEST_LAG, LONGEST_LAGGING, LONGEST_BREAK, LONGEST_DETOUR = 12.0, 40.0, 20.0, 4.0
_BREAKS = ("missed", "gone", "cut")


class Lag:
    """Watches of one process that lag by so many seconds, for a while."""

    def __init__(self, seconds: float, until: float) -> None:
        self.seconds, self.until, self.has_counted = seconds, until, False


class Watches:
    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self._lags: dict[Process, dict[WatchStream, Lag]] = {}
        self._newest: dict[WatchStream, int] = {}  # the newest version that has arrived
        self._late: dict[tuple[WatchStream, int], None] = {}  # what was sent on a detour

    def join(self, process: Process, feeds: list[WatchStream]) -> None:
        for feed in feeds:
            feed.route, feed.told = self.route, self.arrived

    def decided(self, process: Process) -> None:
        """A decision on a mirror that lags behind."""
        lags, now = self._lags.get(process, {}), self.faults.world.clock.now()
        for feed, lag in list(lags.items()):
            if feed.is_behind and not lag.has_counted:
                lag.has_counted = True
                self.faults.ledger.confirm("stale")
            elif lag.until < now:
                del lags[feed]

    def route(self, feed: WatchStream, news: StreamEvent) -> Arrival | None:
        """None: the watch broke, and this is lost with it."""
        name = self.faults.drawn("event", lambda _: True)
        if name is not None:
            self.faults.ledger.inject(name)
        if name in _BREAKS:
            self._break(feed, name)
            return None
        if name == "stale":
            self._begin_to_lag(feed)
        if name == "reordered":
            self._late[feed, news.version] = None
            return Arrival(delay=LONGEST_DETOUR * self.faults.share("detour"), may_be_overtaken=True)
        lag, now = self._lags.get(feed.process, {}).get(feed), self.faults.world.clock.now()
        copies = 2 if name == "duplicated" else 1
        if lag is not None and lag.until > now:
            return Arrival(delay=lag.seconds, copies=copies)
        return AT_ONCE if copies == 1 else Arrival(copies=copies)

    def arrived(self, feed: WatchStream, news: StreamEvent, changes: list[Change], copy: int) -> None:
        if copy and not changes:
            self.faults.ledger.confirm("duplicated")
        if (feed, news.version) in self._late:
            del self._late[feed, news.version]
            if self._newest.get(feed, 0) > news.version:
                self.faults.ledger.confirm("reordered")
        self._newest[feed] = max(self._newest.get(feed, 0), news.version)

    def _begin_to_lag(self, feed: WatchStream) -> None:
        """This watch, or all of its process: a busy process is late with everything."""
        lag = self._lag(LONGEST_LAGGING * self.faults.share("lagging"))
        is_whole = self.faults.share("whole") < 0.5
        for each in self.faults.world.streams_of(feed.process) if is_whole else [feed]:
            self._lags.setdefault(feed.process, {})[each] = lag

    def slow_down(self, process: Process, seconds: float) -> None:
        """All its watches lag for so long, each as it likes, and that is not counted as a fault of its own."""
        self._lags[process] = {feed: self._lag(seconds) for feed in self.faults.world.streams_of(process)}
        for lag in self._lags[process].values():
            lag.has_counted = True

    def _lag(self, seconds: float) -> Lag:
        return Lag(LONGEST_LAG * self.faults.share("lag"), self.faults.world.clock.now() + seconds)

    def _break(self, feed: WatchStream, name: str) -> None:
        feed.disconnect()
        until = self.faults.world.clock.now() + 0.1 + LONGEST_BREAK * self.faults.share("break")
        self.faults.world.agenda.at(until, partial(self._mend, feed, name))

    def _mend(self, feed: WatchStream, name: str) -> None:
        world = self.faults.world
        if feed.process not in world.processes or feed.is_connected:
            return
        if name == "gone":
            world.compact()
        try:
            changes = feed.relist() if name == "missed" else feed.resume()
        except Gone:
            if name == "gone":
                self.faults.ledger.confirm("gone")
            feed.relist()
            return
        if changes:
            self.faults.ledger.confirm(name)
