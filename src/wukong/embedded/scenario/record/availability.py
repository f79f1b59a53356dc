"""How many of each workload were available, and how many were wanted, whenever one of the two changed.

Built by recording.py, beside the recorder. Reads the mirror's changes and never writes.
"""

from __future__ import annotations

from wukong.api.kinds import PODS
from wukong.embedded.scenario.record import workload_status
from wukong.embedded.scenario.record.observed_cluster import ObservedCluster
from wukong.embedded.scenario.record.recorder import Recorder
from wukong.engine.copy_on_write import CopiedList, CopyOnWriteEntries
from wukong.state import Change


class Availability:
    def __init__(self, cluster: ObservedCluster, recorder: Recorder) -> None:
        self.recorder = recorder
        # workload → when, available, wanted
        self.history: CopyOnWriteEntries[str, CopiedList[tuple[float, int, int]]] = CopyOnWriteEntries()
        cluster.listen(self.hear)

    def fork(self, cluster: ObservedCluster, recorder: Recorder) -> Availability:
        """The same for a copy of the cluster, to which it listens."""
        copy = Availability(cluster, recorder)
        copy.history = self.history.fork()
        return copy

    def hear(self, change: Change) -> None:
        workload = change.new
        if (
            workload is None
            or change.group_kind == PODS.group_kind
            or not workload_status.is_workload_kind(change.group_kind)
            or not workload_status.is_top_level(workload)
        ):
            return
        if not self.recorder.covers(workload.kind, workload.key):
            return
        name, count = self.recorder.name_of(workload), workload_status.count_replicas(workload)
        if name not in self.history:
            self.history[name] = CopiedList()
        history = self.history[name]
        if not history or history[-1][1:] != (count.available, count.wanted):
            self.history.own(name).append((self.recorder.seconds_since_start(), count.available, count.wanted))
