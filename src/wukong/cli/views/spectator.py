"""Looks on while a scenario is played: keeps the pace, draws the live view, and ends the play when the user does.

    a clock's jump ─► draw, wait until the person's clock is there, too        a change ─► draw, if it is time again

Made by sim_run.py. The world knows nothing of it: it waits between the moments of a world, never within a decision.
Ctrl-C ends the play with the story so far; a second one at once.
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

import click
from rich.console import Console
from rich.live import Live

from wukong.cli.views.live_state import look
from wukong.cli.views.live_view import LiveView
from wukong.cli.views.story import clock, rows_of
from wukong.embedded.actors import pods as podlike
from wukong.embedded.scenario.play.player import Interrupted
from wukong.embedded.world.objects import Pod
from wukong.errors import InputError

if TYPE_CHECKING:
    from wukong.embedded.scenario.play.player import Play
    from wukong.state import Change

_FRAME_SECONDS = 0.1
_PATIENCE_SECONDS = 0.3  # who is done sooner needs no picture
_LEAST_SHARE = 30  # drawing takes at most one part in so many of the time
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
    """A Spectator (scenario/playing.py). Use it within `attentive()`."""

    def __init__(self, speed: float | None = None, *, is_live: bool = False) -> None:
        self.speed, self.is_interrupted = speed, False
        console = Console(stderr=not sys.stdout.isatty())
        self._view = LiveView(console, f"  at {speed:g}x" if speed else "") if is_live else None
        self._live = Live(console=console, auto_refresh=False, transient=True) if is_live else None
        self._waiting: dict[str, tuple[str, str]] = {}  # uid of a pending pod → its workload, the scheduler's message
        self._begun = self._next = 0.0
        self._told = 0  # events told in plain lines

    def begin(self, play: Play) -> None:
        self.play = play
        self._begun = time.monotonic()
        self._next = self._begun + (0.0 if self.speed else _PATIENCE_SECONDS)
        for pod in play.world.state.all(Pod):
            self._note(pod, pod.metadata.uid)
        play.world.clock.on_jump = self._jumping
        play.world.listen(self._heard)

    @contextmanager
    def attentive(self) -> Iterator[None]:
        """Ctrl-C is heard, and the picture is taken away in the end."""
        try:
            before = signal.signal(signal.SIGINT, self._interrupt)
        except ValueError:  # not the main thread: nobody interrupts us
            before = None
        try:
            yield
        finally:
            if before is not None:
                signal.signal(signal.SIGINT, before)
            if self._live is not None:
                self._live.stop()

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.is_interrupted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    # ---- while it is played

    def _heard(self, change: Change) -> None:
        self._check()
        found = change.new or change.old
        if isinstance(found, Pod):
            self._note(change.new if isinstance(change.new, Pod) else None, found.metadata.uid)
        if self._view is not None and time.monotonic() >= self._next:
            self._draw(self.play.world.clock.now())

    def _note(self, pod: Pod | None, uid: str) -> None:
        scheduled = podlike.condition(pod, "PodScheduled") if pod is not None and podlike.is_active(pod) else None
        if scheduled is not None and scheduled.status == "False":
            self._waiting[uid] = (self.play.recorder.workload_of(uid), scheduled.message)
        else:
            self._waiting.pop(uid, None)

    def _jumping(self, moment: float) -> None:
        self._check()
        if self.speed is None:
            return
        now, play = self.play.world.clock.now(), self.play
        self._tell()
        if play.is_resting and moment > play.last_plan():
            return  # nobody means to do anything any more
        until = self._begun + (moment - play.begun) / self.speed
        if self._view is not None and (moment - now) / self.speed > _FRAME_SECONDS / 2:
            self._draw(now)  # also by who is late: what lasts long enough to be seen is shown
        while (left := until - time.monotonic()) > 0:
            shown = max(now, moment - left * self.speed)
            if self.is_interrupted:
                play.world.clock.on_jump = None
                play.world.clock.move_to(shown)  # the story ends where the person saw it end
            self._check()
            if self._view is not None:
                self._draw(shown)
            time.sleep(min(_FRAME_SECONDS, left))

    def _check(self) -> None:
        if self.is_interrupted:
            raise Interrupted

    # ---- what is shown

    def _draw(self, now: float) -> None:
        assert self._view is not None
        assert self._live is not None
        started = time.monotonic()
        if not self._live.is_started:
            self._live.start()
        seen = look(self.play, self._waiting, now - self.play.begun, self._view.most)
        rows = rows_of(self.play.recorder.events[-_LAST_EVENTS:])
        self._live.update(self._view.picture(seen, rows), refresh=True)
        spent = time.monotonic() - started
        self._next = started + max(_FRAME_SECONDS, spent * _LEAST_SHARE)

    def _tell(self) -> None:
        """Without a picture, a person who waits is told what happens, line by line."""
        if self._view is not None:
            return
        events = self.play.recorder.events[self._told :]
        self._told += len(events)
        for second, subject, text in rows_of(events):
            click.echo(f"{clock(second)}  {subject}: {text}", err=True)
