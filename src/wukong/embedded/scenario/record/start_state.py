"""What was wrong already when a story began: of what is stuck in the end, that does not count if it is no worse.

Kept by recording.py for stories that begin with a snapshot. A real cluster always has a node that is not ready, or a
pod that waits; a change is to be judged by what it does. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from wukong.embedded.scenario.record.recorder import Recorder


class StuckWorkload(NamedTuple):
    """A workload, a pod or a node of which something was stuck when the story began."""

    available: int
    generation: int


class StartState(NamedTuple):
    """Of a story that begins with nothing, by default: then everything counts. Forks share it."""

    stuck: Mapping[str, StuckWorkload] = MappingProxyType({})  # by the subject of the reasons
    was_at_rest: bool = True

    @classmethod
    def of(cls, reasons: Iterable[str], recorder: Recorder, *, was_at_rest: bool) -> StartState:
        names = {_subject_of(reason) for reason in reasons}
        stuck = {name: _read_workload(name, recorder) for name in sorted(names)}
        return cls(MappingProxyType(stuck), was_at_rest)

    def split_stuck(self, reasons: Iterable[str], recorder: Recorder) -> tuple[list[str], list[str]]:
        """Those that count, and those of what was stuck before, too, and is no worse."""
        new: list[str] = []
        old: list[str] = []
        for reason in reasons:
            (old if self._is_no_worse(_subject_of(reason), recorder) else new).append(reason)
        return new, old

    def _is_no_worse(self, name: str, recorder: Recorder) -> bool:
        """Not if somebody wants something else of the workload by now: whether that comes to be is what is asked."""
        before = self.stuck.get(name)
        if before is None:
            return False
        now = _read_workload(name, recorder)
        return now.generation == before.generation and now.available >= before.available


def _read_workload(name: str, recorder: Recorder) -> StuckWorkload:
    summary = recorder.workloads.get(name)
    return StuckWorkload(summary.available if summary is not None else 0, recorder.generation_of(name))


def _subject_of(reason: str) -> str:
    return reason.partition(": ")[0]
