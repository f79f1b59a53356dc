"""How many of each workload were available, and how many were wanted, whenever one of the two changed.

Attached by playing.py, beside the recorder. Reads the mirror's changes and never writes.
"""

from __future__ import annotations

from wukong.embedded.scenario import workloads
from wukong.embedded.scenario.recording import Recorder
from wukong.embedded.scenario.scene import Scene
from wukong.state import Change


class Availability:
    def __init__(self, scene: Scene, recorder: Recorder) -> None:
        self.scene, self.recorder = scene, recorder
        self.history: dict[str, list[tuple[float, int, int]]] = {}  # workload → when, available, wanted
        scene.listen(self.hear)

    def hear(self, change: Change) -> None:
        found = change.new
        if found is None or change.kind not in workloads.KINDS or not workloads.is_top(found):
            return
        if not self.recorder.is_told(found.kind, found.key):
            return
        known = self.history.setdefault(self.recorder.name_of(found), [])
        count = workloads.counted(found)
        if not known or known[-1][1:] != (count.available, count.wanted):
            at = round(max(0.0, self.scene.clock.now() - self.recorder.begun), 3)
            known.append((at, count.available, count.wanted))
