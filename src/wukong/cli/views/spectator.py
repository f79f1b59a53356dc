"""Looks on while a scenario is played: keeps the pace, draws the live view, and ends the play when the user does.

    a clock's jump ─► draw, wait until the person's clock is there, too        a change ─► draw, if it is time again

Made by sim_run.py. The world knows nothing of it: it waits when the virtual clock jumps, never within a decision.
Ctrl-C ends the play with the story so far; a second one ends the program at once.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from types import FrameType
from typing import TYPE_CHECKING

from wukong.cli.views.console import SafeConsole, say
from wukong.cli.views.live_state import read_live_state
from wukong.cli.views.live_view import LiveView
from wukong.cli.views.recent_changes import RecentChanges
from wukong.cli.views.story import format_clock, rows_of
from wukong.embedded.actors import pods as podlike
from wukong.embedded.scenario.play.player import Interrupted
from wukong.embedded.world.objects import Pod
from wukong.errors import InputError

if TYPE_CHECKING:
    from rich.live import Live

    from wukong.embedded.scenario.play.player import WorldPlayer
    from wukong.state import Change

_FRAME_SECONDS = 0.1
_FIRST_FRAME_SECONDS = 0.3  # a play that is over sooner needs no picture
_DRAWING_SHARE = 30  # drawing takes at most one part in so many of the time
_LAST_EVENTS = 300


def read_speed(text: str | None) -> float | None:
    """`10x`, `10`, `0.5x`: how many times faster than real time; None is as fast as it goes."""
    if text is None:
        return None
    try:
        speed = float(text.strip().lower().removesuffix("x"))
    except ValueError:
        speed = 0.0
    if not isfinite(speed) or speed <= 0:
        raise InputError(f"--speed: expected how many times faster than real time, such as 10x or 0.5x, got {text!r}.")
    return speed


class LiveSpectator:
    """A Spectator (scenario/play/player.py). Use it within `handle_interrupts()`."""

    def __init__(self, speed: float | None = None, *, is_live: bool = False) -> None:
        self.speed, self.is_interrupted = speed, False
        console = SafeConsole(stderr=not sys.stdout.isatty())
        self._view = LiveView(console, f"  at {speed:g}x" if speed else "") if is_live else None
        self._live = _make_live(console) if is_live else None
        # uid of a pending pod → its workload, the scheduler's message
        self._pending_pods: dict[str, tuple[str, str]] = {}
        self._changes = RecentChanges()
        self._started_at = self._next_frame_at = 0.0
        self._printed_events = 0

    def begin(self, player: WorldPlayer) -> None:
        self.player = player
        self._started_at = time.monotonic()
        self._next_frame_at = self._started_at + (0.0 if self.speed else _FIRST_FRAME_SECONDS)
        for pod in player.world.state.all(Pod):
            self._note_pending(pod, pod.metadata.uid)
        player.world.clock.on_jump = self._wait_for_jump
        player.world.listen(self._hear)

    @contextmanager
    def handle_interrupts(self) -> Iterator[None]:
        """Ctrl-C is heard while this lasts, and the picture is taken away in the end."""
        try:
            previous_handler = signal.signal(signal.SIGINT, self._interrupt)
        except ValueError:  # not the main thread: nobody interrupts us
            previous_handler = None
        try:
            yield
        finally:
            if previous_handler is not None:
                signal.signal(signal.SIGINT, previous_handler)
            if self._live is not None:
                self._live.stop()

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.is_interrupted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    # ---- while it is played

    def _hear(self, change: Change) -> None:
        self._raise_if_interrupted()
        changed = change.new or change.old
        if self._view is not None:
            workload = self.player.recorder.workload_of(changed.metadata.uid) if isinstance(changed, Pod) else ""
            self._changes.note(change.old, change.new, workload)
        if isinstance(changed, Pod):
            self._note_pending(change.new if isinstance(change.new, Pod) else None, changed.metadata.uid)
        if self._view is not None and time.monotonic() >= self._next_frame_at:
            self._draw(self.player.world.clock.now())

    def _note_pending(self, pod: Pod | None, uid: str) -> None:
        scheduled = podlike.condition(pod, "PodScheduled") if pod is not None and podlike.is_active(pod) else None
        if scheduled is not None and scheduled.status == "False":
            self._pending_pods[uid] = (self.player.recorder.workload_of(uid), scheduled.message)
        else:
            self._pending_pods.pop(uid, None)

    def _wait_for_jump(self, target: float) -> None:
        """The virtual clock is about to jump to this time: wait until as much real time has passed, by the speed."""
        self._raise_if_interrupted()
        if self.speed is None:
            return
        now, player = self.player.world.clock.now(), self.player
        self._print_events()
        if player.is_resting and target > player.last_plan():
            return  # nobody means to do anything any more
        until = self._started_at + (target - player.started_at) / self.speed
        if self._view is not None and (target - now) / self.speed > _FRAME_SECONDS / 2:
            self._draw(now)  # also if it is late: what lasts long enough to be seen is shown
        while (left := until - time.monotonic()) > 0:
            shown_time = max(now, target - left * self.speed)
            if self.is_interrupted:
                player.world.clock.on_jump = None
                player.world.clock.move_to(shown_time)  # the story ends where the person saw it end
            self._raise_if_interrupted()
            if self._view is not None:
                self._draw(shown_time)
            time.sleep(min(_FRAME_SECONDS, left))

    def _raise_if_interrupted(self) -> None:
        if self.is_interrupted:
            raise Interrupted

    # ---- what is shown

    def _draw(self, now: float) -> None:
        assert self._view is not None
        assert self._live is not None
        started = time.monotonic()
        if not self._live.is_started:
            self._live.start()
        live_state = read_live_state(
            self.player, self._pending_pods, now - self.player.started_at, self._view.most_rows, self._changes
        )
        rows = rows_of(self.player.recorder.events[-_LAST_EVENTS:])
        self._live.update(self._view.render(live_state, rows), refresh=True)
        spent = time.monotonic() - started
        self._next_frame_at = started + max(_FRAME_SECONDS, spent * _DRAWING_SHARE)

    def _print_events(self) -> None:
        """Without a picture, a person who waits reads what happens, line by line."""
        if self._view is not None:
            return
        events = self.player.recorder.events[self._printed_events :]
        self._printed_events += len(events)
        for second, subject, text in rows_of(events):
            say(f"{format_clock(second)}  {subject}: {text}")


def _make_live(console: SafeConsole) -> Live:
    from rich.live import Live

    return Live(console=console, auto_refresh=False, transient=True)
