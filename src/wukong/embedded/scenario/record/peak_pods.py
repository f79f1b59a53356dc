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
from wukong.engine.copy_on_write import CopyOnWriteDicts
from wukong.state import Change


class PeakPods:
    def __init__(self, passing_seconds: float) -> None:
        self.passing_seconds = passing_seconds
        self.peaks: dict[str, int] = {}  # workload → the most pods it had at once
        self._active_pods: CopyOnWriteDicts[str, str, None] = CopyOnWriteDicts()  # uid of an owner → uids of its pods
        # workload → uid of an owner of its pods → how many it may have
        self._limits: CopyOnWriteDicts[str, str, float] = CopyOnWriteDicts()
        self._levels: dict[str, list[float]] = {}  # workload → since when it has had one pod, two, three…

    def fork(self) -> PeakPods:
        copy = PeakPods(self.passing_seconds)
        copy.peaks, copy._active_pods, copy._limits = dict(self.peaks), self._active_pods.fork(), self._limits.fork()
        copy._levels = {workload: list(levels) for workload, levels in self._levels.items()}
        return copy

    def hear_pod(self, pod: Pod, *, is_gone: bool) -> None:
        owner = controller_of(pod.metadata)
        owner_uid, uid = owner.uid if owner is not None else "", pod.metadata.uid
        is_active = not is_gone and podlike.is_active(pod)
        if is_active == (uid in self._active_pods.get(owner_uid, ())):
            return
        if is_active:
            self._active_pods.own(owner_uid)[uid] = None
        else:
            del self._active_pods.own(owner_uid)[uid]
            self._active_pods.drop_if_empty(owner_uid)

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
        limits, levels = self._limits.get(workload, {}), self._levels.setdefault(workload, [])
        number = int(sum(min(limit, len(self._active_pods.get(uid, ()))) for uid, limit in limits.items()))
        if number < len(levels):
            self.update_peak(workload, now)
            del levels[number:]
        levels.extend([now] * (number - len(levels)))

    def update_peak(self, workload: str, now: float) -> int:
        """Give the most pods so far that lasted."""
        lasting = bisect_left(self._levels.get(workload, []), now - self.passing_seconds)  # they came one after another
        self.peaks[workload] = max(self.peaks.get(workload, 0), lasting)
        return self.peaks[workload]

    def forget(self, workload: str) -> None:
        self.peaks.pop(workload, None)
        self._levels.pop(workload, None)
