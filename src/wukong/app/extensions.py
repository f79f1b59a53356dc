"""Several extensions of a scheduler as one. Used by the components that are schedulers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from wukong.actions import Note
from wukong.api.core import Pod
from wukong.app.component import SchedulerExtension
from wukong.controllers.scheduler.choice import Extension
from wukong.engine import Scheduler as Engine
from wukong.engine.arrays import Ints
from wukong.engine.view import View

Notes = tuple[Note, ...]


def chain(extensions: Sequence[SchedulerExtension]) -> Extension:
    """All extensions as one: each extends what the one before it made, and the notes of all are told."""
    parts = [extension.extension for extension in extensions]

    def extend(engine: Engine, pod: Pod, now: float) -> tuple[Engine, Callable[[View], Notes]]:
        notes: list[Callable[[View], Notes]] = []
        for part in parts:
            engine, notes_of = part.extend(engine, pod, now)
            notes.append(notes_of)
        return engine, lambda view: tuple(note for notes_of in notes for note in notes_of(view))

    def find_points(view: View, pod: Pod, now: float) -> tuple[Ints, Notes] | None:
        total: Ints = np.zeros(len(view.snapshot.rows), dtype=np.int64)
        notes: list[Note] = []
        for part in parts:
            answer = part.find_points(view, pod, now)
            if answer is None:
                return None
            total += answer[0]
            notes += answer[1]
        return total, tuple(notes)

    def announce(pod: Pod) -> None:
        for part in parts:
            part.announce(pod)

    return Extension(extend, find_points, announce)
