"""Faults of watches: they lag, break and list again, deliver an event twice, or out of order.

Called by world/watch_stream.py for every event.
"""

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
    """Watches of one process lag by so many seconds until a moment. `is_counted`: it has counted as effective."""

    def __init__(self, seconds: float, until: float) -> None:
        self.seconds, self.until, self.is_counted = seconds, until, False


class WatchFaults:
    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self._lags: dict[Process, dict[WatchStream, Lag]] = {}
        self._newest: dict[WatchStream, int] = {}  # the newest version that has arrived
        self._detours: dict[tuple[WatchStream, int], None] = {}  # versions that others may overtake

    def attach(self, streams: list[WatchStream]) -> None:
        for stream in streams:
            stream.route, stream.on_arrival = self.route, self.observe_arrival

    def observe_decision(self, process: Process) -> None:
        """A decision on a mirror that lags behind makes the lag effective."""
        lags, now = self._lags.get(process, {}), self.faults.world.clock.now()
        for stream, lag in list(lags.items()):
            if stream.is_behind and not lag.is_counted:
                lag.is_counted = True
                self.faults.counts.count_effective("stale")
            elif lag.until < now:
                del lags[stream]

    def route(self, stream: WatchStream, event: StreamEvent) -> Arrival | None:
        """How this event arrives; None if the watch breaks and the event is lost with it."""
        fault = self.faults.draw_fault("event", lambda _: True)
        if fault is not None:
            self.faults.counts.count_injected(fault)
        if fault in _BREAKS:
            self._break(stream, fault)
            return None
        if fault == "stale":
            self._begin_lag(stream)
        if fault == "reordered":
            self._detours[stream, event.version] = None
            return Arrival(delay=LONGEST_DETOUR * self.faults.draw_fraction("detour"), may_be_overtaken=True)
        lag, now = self._lags.get(stream.process, {}).get(stream), self.faults.world.clock.now()
        copies = 2 if fault == "duplicated" else 1
        if lag is not None and lag.until > now:
            return Arrival(delay=lag.seconds, copies=copies)
        return AT_ONCE if copies == 1 else Arrival(copies=copies)

    def observe_arrival(self, stream: WatchStream, event: StreamEvent, changes: list[Change], copy: int) -> None:
        if copy and not changes:
            self.faults.counts.count_effective("duplicated")
        if (stream, event.version) in self._detours:
            del self._detours[stream, event.version]
            if self._newest.get(stream, 0) > event.version:
                self.faults.counts.count_effective("reordered")
        self._newest[stream] = max(self._newest.get(stream, 0), event.version)

    def _begin_lag(self, stream: WatchStream) -> None:
        """Of this watch, or of all of its process: a busy process is late with everything."""
        lag = self._draw_lag(LONGEST_LAGGING * self.faults.draw_fraction("lagging"))
        is_whole_process = self.faults.draw_fraction("whole") < 0.5
        streams = self.faults.world.streams_of(stream.process) if is_whole_process else [stream]
        self._lags.setdefault(stream.process, {}).update(dict.fromkeys(streams, lag))

    def slow_down(self, process: Process, seconds: float) -> None:
        """All its watches lag for so long, each by its own delay. This is not counted as a fault of its own."""
        self._lags[process] = {stream: self._draw_lag(seconds) for stream in self.faults.world.streams_of(process)}
        for lag in self._lags[process].values():
            lag.is_counted = True

    def _draw_lag(self, seconds: float) -> Lag:
        return Lag(LONGEST_LAG * self.faults.draw_fraction("lag"), self.faults.world.clock.now() + seconds)

    def _break(self, stream: WatchStream, fault: str) -> None:
        stream.disconnect()
        until = self.faults.world.clock.now() + 0.1 + LONGEST_BREAK * self.faults.draw_fraction("break")
        self.faults.world.timers.add(until, partial(self._reconnect, stream, fault))

    def _reconnect(self, stream: WatchStream, fault: str) -> None:
        world = self.faults.world
        if stream.process not in world.processes or stream.is_connected:
            return
        if fault == "gone":
            world.compact()
        try:
            changes = stream.relist() if fault == "missed" else stream.resume()
        except Gone:
            if fault == "gone":
                self.faults.counts.count_effective("gone")
            stream.relist()
            return
        if changes:
            self.faults.counts.count_effective(fault)
