"""How many pods a workload had at once: those that neither stop nor have ended, for more than a passing moment.

Fed by recording.py. Two things would make that number one of luck on a real cluster, where controllers work side by
side, so both are left out:

- A ReplicaSet that was told to have fewer pods is about to delete some: from then on they do not count. So two
  ReplicaSets of a Deployment never have more than it asked for, whichever of them comes to act first.
- What lasts no longer than a passing moment is only how controllers get from one state to the next: a Deployment makes
  its new ReplicaSet, and shrinks the old one in its next breath. On virtual time controllers take none.

On a real cluster kinds come by watches of their own, so a pod may be heard of before what made it: it counts as soon as
that is known.
"""

from __future__ import annotations

from bisect import bisect_left
from math import inf

from wukong.api.meta import controller_of
from wukong.embedded.actors import pods as podlike
from wukong.embedded.world.objects import Pod, ReplicaSet
from wukong.state import Change


class PeakPods:
    def __init__(self, passing_seconds: float) -> None:
        self.passing_seconds = passing_seconds
        self.most: dict[str, int] = {}  # workload → the most pods it had at once
        self._active: dict[str, set[str]] = {}  # uid of what makes pods → uids of those it has
        self._limits: dict[str, dict[str, float]] = {}  # workload → uid of what makes its pods → how many it may have
        self._levels: dict[str, list[float]] = {}  # workload → since when it has had one pod, two, three…

    def hear_pod(self, pod: Pod, *, is_gone: bool) -> None:
        owner = controller_of(pod.metadata)
        held = self._active.setdefault(owner.uid if owner is not None else "", set())
        if is_gone or not podlike.is_active(pod):
            held.discard(pod.metadata.uid)
        else:
            held.add(pod.metadata.uid)

    def hear_maker(self, workload: str, change: Change) -> None:
        """Of a ReplicaSet, or of a workload that makes its pods itself."""
        found = change.new or change.old
        assert found is not None
        limits = self._limits.setdefault(workload, {})
        if change.new is None:
            limits.pop(found.metadata.uid, None)
            return
        limits[found.metadata.uid] = (found.spec.replicas or 0) if isinstance(found, ReplicaSet) else inf

    def count(self, workload: str, now: float) -> None:
        """Keep since when there have been how many."""
        limits, levels = self._limits.get(workload, {}), self._levels.setdefault(workload, [])
        number = int(sum(min(limit, len(self._active.get(uid, ()))) for uid, limit in limits.items()))
        if number < len(levels):
            self.keep(workload, now)
            del levels[number:]
        levels.extend([now] * (number - len(levels)))

    def keep(self, workload: str, now: float) -> int:
        """The most so far that lasted."""
        lasting = bisect_left(self._levels.get(workload, []), now - self.passing_seconds)  # they came one after another
        self.most[workload] = max(self.most.get(workload, 0), lasting)
        return self.most[workload]

    def forget(self, workload: str) -> None:
        for held in (self.most, self._levels):
            held.pop(workload, None)
