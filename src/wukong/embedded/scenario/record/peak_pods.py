"""How many pods a workload had at once: those that neither stop nor have ended, for more than a passing moment.

Called by the recorder. Two things would make that number one of luck, for controllers work side by side, so both are
left out:

- A ReplicaSet that was scaled down is about to delete some of its pods: from then on they do not count. So two
  ReplicaSets of a Deployment never have more than it asked for, whichever of them comes to act first.
- What lasts no longer than a passing moment is only how controllers get from one state to the next: a Deployment makes
  its new ReplicaSet, and shrinks the old one right afterwards. How long a moment is depends on how long they take.

On a real cluster each kind comes by a watch of its own, so a pod may be heard of before its owner: it counts as soon as
the owner is known.
"""

from __future__ import annotations

from bisect import bisect_left
from math import inf

from wukong.api.meta import controller_of
from wukong.embedded.actors import pods as podlike
from wukong.embedded.world.objects import Pod, ReplicaSet
from wukong.engine.copy_on_write import CopiedList, CopyOnWriteDicts, CopyOnWriteEntries
from wukong.engine.layered_dict import LayeredDict
from wukong.state import Change


class PeakPods:
    def __init__(self, passing_seconds: float) -> None:
        self.passing_seconds = passing_seconds
        self.peaks: LayeredDict[str, int] = LayeredDict()  # workload → the most pods it had at once
        self._active_pods: CopyOnWriteDicts[str, str, None] = CopyOnWriteDicts()  # uid of an owner → uids of its pods
        # workload → uid of an owner of its pods → how many it may have
        self._limits: CopyOnWriteDicts[str, str, float] = CopyOnWriteDicts()
        # workload → since when it has had one pod, two, three…
        self._levels: CopyOnWriteEntries[str, CopiedList[float]] = CopyOnWriteEntries()
        self._rising: dict[str, None] = {}  # workloads that have more pods than their peak, until that has lasted

    def fork(self) -> PeakPods:
        copy = PeakPods(self.passing_seconds)
        copy.peaks, copy._active_pods, copy._limits = self.peaks.fork(), self._active_pods.fork(), self._limits.fork()
        copy._levels, copy._rising = self._levels.fork(), dict(self._rising)
        return copy

    def hear_pod(self, pod: Pod, *, is_gone: bool) -> bool:
        """Returns whether one pod more or less is active: else nothing is to be counted again."""
        owner = controller_of(pod.metadata)
        owner_uid, uid = owner.uid if owner is not None else "", pod.metadata.uid
        is_active = not is_gone and podlike.is_active(pod)
        if is_active == (uid in self._active_pods.get(owner_uid, ())):
            return False
        if is_active:
            self._active_pods.own(owner_uid)[uid] = None
        else:
            del self._active_pods.own(owner_uid)[uid]
            self._active_pods.drop_if_empty(owner_uid)
        return True

    def hear_owner(self, workload: str, change: Change) -> None:
        """A ReplicaSet changed, or a workload that makes its pods itself."""
        owner = change.new or change.old
        assert owner is not None
        limits = self._limits.own(workload)
        if change.new is None:
            limits.pop(owner.metadata.uid, None)
            self._limits.drop_if_empty(workload)
            return
        limits[owner.metadata.uid] = (owner.spec.replicas or 0) if isinstance(owner, ReplicaSet) else inf

    def count_pods(self, workload: str, now: float) -> None:
        """Note since when there have been how many."""
        limits = self._limits.get(workload, {})
        number = int(sum(min(limit, len(self._active_pods.get(uid, ()))) for uid, limit in limits.items()))
        before = len(self._levels.get(workload, ()))
        if number < before:
            self._update_peak(workload, now)
            del self._levels.own(workload)[number:]
        elif number > before:
            if workload not in self._levels:
                self._levels[workload] = CopiedList()
            self._levels.own(workload).extend([now] * (number - before))
            self._rising[workload] = None

    def update_peaks(self, now: float) -> list[str]:
        """Return the workloads whose peaks may have changed because what they have has lasted."""
        rising = list(self._rising)
        for workload in rising:
            self._update_peak(workload, now)
        return rising

    def _update_peak(self, workload: str, now: float) -> None:
        levels, peak = self._levels.get(workload, ()), self.peaks.get(workload, 0)
        lasting = bisect_left(levels, now - self.passing_seconds)  # they came one after another
        if lasting > peak:
            self.peaks[workload] = peak = lasting
        if peak >= len(levels):
            self._rising.pop(workload, None)

    def forget(self, workload: str) -> None:
        self.peaks.pop(workload, None)
        self._levels.pop(workload, None)
        self._rising.pop(workload, None)
