"""Who moved: a pod that had to leave its node, and the one that its controller made in its place, ready elsewhere.

Attached by playing.py, beside the recorder. A pod that leaves because fewer are wanted, as in a rollout or when scaled
down, is not replaced and so has not moved. Reads the mirror's changes and never writes.
"""

from __future__ import annotations

from collections import Counter as Tally
from typing import NamedTuple

from wukong.api.meta import OwnerReference, controller_of
from wukong.embedded.actors import pods as podlike
from wukong.embedded.scenario.record.observed_cluster import ObservedCluster
from wukong.embedded.scenario.record.recorder import Recorder
from wukong.embedded.scenario.record.story import Move
from wukong.embedded.world.objects import Pod
from wukong.state import Change


class _Left(NamedTuple):
    pod: str
    node: str
    at: float


class Moves:
    def __init__(self, scene: ObservedCluster, recorder: Recorder) -> None:
        self.scene, self.recorder = scene, recorder
        self.made: list[Move] = []
        self._active: Tally[str] = Tally()  # uid of a controller → its pods that are neither stopping nor finished
        self._missing: dict[str, list[_Left]] = {}  # the same → who left and is not replaced yet
        self._instead: dict[str, _Left] = {}  # uid of a pod → whom it replaces
        scene.listen(self.hear)

    def hear(self, change: Change) -> None:
        if change.kind != "Pod":
            return
        old, new = change.old, change.new
        found = new or old
        owner = controller_of(found.metadata) if found is not None else None
        if owner is None:
            return
        was = isinstance(old, Pod) and podlike.is_active(old)
        if isinstance(new, Pod) and podlike.is_active(new):
            if not was:
                self._come(new, owner)
            if new.metadata.uid in self._instead and podlike.is_ready(new):
                self._arrived(new, self._instead.pop(new.metadata.uid))
        elif was:
            assert isinstance(old, Pod)
            self._gone(old, owner)

    def _come(self, pod: Pod, owner: OwnerReference) -> None:
        self._active[owner.uid] += 1
        missing = self._missing.get(owner.uid, [])
        same = [each for each in missing if each.pod == pod.metadata.name]  # of a StatefulSet
        if missing:
            whom = same[0] if same else missing[0]
            missing.remove(whom)
            self._instead[pod.metadata.uid] = whom

    def _gone(self, pod: Pod, owner: OwnerReference) -> None:
        self._active[owner.uid] -= 1
        before = self._instead.pop(pod.metadata.uid, None)
        left = before or _Left(pod.metadata.name, pod.spec.node_name, self._now())
        if left.node and self._active[owner.uid] < self._wanted(pod.metadata.namespace, owner):
            self._missing.setdefault(owner.uid, []).append(left)

    def _wanted(self, namespace: str, owner: OwnerReference) -> int:
        """0 where nobody says how many: a DaemonSet's pods never move, nor does what runs only once."""
        found = self.scene.state.owner(namespace, owner)
        replicas = getattr(getattr(found, "spec", None), "replicas", 0)
        return 1 if replicas is None and owner.kind != "DaemonSet" else replicas or 0

    def _arrived(self, pod: Pod, left: _Left) -> None:
        if pod.spec.node_name != left.node:
            self.made.append(
                Move(
                    workload=self.recorder.workload_of(pod.metadata.uid),
                    pod=left.pod,
                    replacement=pod.metadata.name,
                    start=left.node,
                    end=pod.spec.node_name,
                    left=left.at,
                    ready=self._now(),
                )
            )

    def _now(self) -> float:
        return round(max(0.0, self.scene.clock.now() - self.recorder.begun), 3)
