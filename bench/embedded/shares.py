"""Which part of the program the processor is in, looked at a few hundred times a second while it works.

A sample belongs to the innermost frame of a part that has a name here; what all parts use (rules, engine, structs, the
C functions they call) counts for whoever called it. Cheaper and truer than a tracing profiler, which makes small
functions look slow.
"""

from __future__ import annotations

import signal
from collections import Counter as Tally
from types import FrameType, TracebackType
from typing import Self

SECONDS = 0.004
PARTS = {
    "embedded/store/": "store",
    "wukong/state/": "mirror",
    "embedded/world/objects.py": "mirror",
    "embedded/actors/": "controllers and kubelets",
    "wukong/controllers/": "scheduler",
    "embedded/scenario/": "recorder and trace",
    "embedded/checkers/": "checkers",
    "wukong/runtime/": "queue and dispatch",
    "embedded/": "queue and dispatch",
}


class Shares:
    """`with Shares() as shares: …`, then `shares.found` has the share of each part. Only in the main thread."""

    def __init__(self) -> None:
        self.samples: Tally[str] = Tally()
        self._parts: dict[str, str] = {}

    def __enter__(self) -> Self:
        signal.signal(signal.SIGPROF, self._look)
        signal.setitimer(signal.ITIMER_PROF, SECONDS, SECONDS)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)

    @property
    def found(self) -> dict[str, float]:
        """The largest first."""
        total = max(1, self.samples.total())
        return {part: count / total for part, count in self.samples.most_common()}

    def _look(self, _: int, frame: FrameType | None) -> None:
        while frame is not None:
            part = self._part(frame.f_code.co_filename)
            if part:
                self.samples[part] += 1
                return
            frame = frame.f_back
        self.samples["other"] += 1

    def _part(self, file: str) -> str:
        known = self._parts.get(file)
        if known is None:
            known = self._parts[file] = next((part for place, part in PARTS.items() if place in file), "")
        return known
