"""How many of each workload were available, and how many were wanted, whenever one of the two changed.

Attached by playing.py, beside the recorder. Reads the mirror's changes and never writes.
"""

from __future__ import annotations

from wukong.embedded.scenario.record import workload_status
from wukong.embedded.scenario.record.observed_cluster import ObservedCluster
from wukong.embedded.scenario.record.recorder import Recorder
from wukong.state import Change


class Availability:
    def __init__(self, scene: ObservedCluster, recorder: Recorder) -> None:
        self.scene, self.recorder = scene, recorder
        self.history: dict[str, list[tuple[float, int, int]]] = {}  # workload → when, available, wanted
        scene.listen(self.hear)

    def hear(self, change: Change) -> None:
        found = change.new
        if found is None or change.group_kind not in workload_status.KINDS or not workload_status.is_top(found):
            return
        if not self.recorder.is_told(found.kind, found.key):
            return
        known = self.history.setdefault(self.recorder.name_of(found), [])
        count = workload_status.counted(found)
        if not known or known[-1][1:] != (count.available, count.wanted):
            at = round(max(0.0, self.scene.clock.now() - self.recorder.begun), 3)
            known.append((at, count.available, count.wanted))
