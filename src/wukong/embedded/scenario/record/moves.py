"""Which pods moved: one had to leave its node, and its controller made another in its place, ready elsewhere.

Built by recording.py, beside the recorder. A pod that leaves because fewer are wanted, as in a rollout or when scaled
down, is not replaced and so has not moved. Reads the mirror's changes and never writes.
"""

from __future__ import annotations

from typing import NamedTuple

from wukong.api.kinds import PODS
from wukong.api.meta import OwnerReference, controller_of
from wukong.embedded.actors import pods as podlike
from wukong.embedded.scenario.record.observed_cluster import ObservedCluster
from wukong.embedded.scenario.record.recorder import Recorder
from wukong.embedded.scenario.record.story import Move
from wukong.embedded.world.objects import Pod
from wukong.engine.layered_dict import LayeredDict
from wukong.state import Change


class _Departure(NamedTuple):
    """A pod that left its node."""

    pod: str
    node: str
    at: float


class Moves:
    def __init__(self, cluster: ObservedCluster, recorder: Recorder) -> None:
        self.cluster, self.recorder = cluster, recorder
        self.completed: list[Move] = []
        # uid of a controller → how many of its pods neither stop nor have finished
        self._active_pods: LayeredDict[str, int] = LayeredDict()
        self._unreplaced: dict[str, list[_Departure]] = {}  # the same → which pods left and are not replaced yet
        self._replaces: dict[str, _Departure] = {}  # uid of a pod → which one it replaces
        cluster.listen(self.hear)

    def fork(self, cluster: ObservedCluster, recorder: Recorder) -> Moves:
        """The same for a copy of the cluster, to which it listens."""
        copy = Moves(cluster, recorder)
        copy.completed, copy._active_pods = list(self.completed), self._active_pods.fork()
        copy._unreplaced = {uid: list(departures) for uid, departures in self._unreplaced.items()}
        copy._replaces = dict(self._replaces)
        return copy

    def include(self, pod: Pod) -> None:
        """Count a pod that was there before the story began."""
        owner = controller_of(pod.metadata)
        if owner is not None and podlike.is_active(pod):
            self._count(owner, 1)

    def hear(self, change: Change) -> None:
        if change.group_kind != PODS.group_kind:
            return
        old, new = change.old, change.new
        pod = new or old
        owner = controller_of(pod.metadata) if pod is not None else None
        if owner is None:
            return
        was_active = isinstance(old, Pod) and podlike.is_active(old)
        if isinstance(new, Pod) and podlike.is_active(new):
            if not was_active:
                self._add_pod(new, owner)
            if new.metadata.uid in self._replaces and podlike.is_ready(new):
                self._complete_move(new, self._replaces.pop(new.metadata.uid))
        elif was_active:
            assert isinstance(old, Pod)
            self._remove_pod(old, owner)

    def _count(self, owner: OwnerReference, change: int) -> int:
        """Return how many active pods the owner has now."""
        count = self._active_pods[owner.uid] = self._active_pods.get(owner.uid, 0) + change
        return count

    def _add_pod(self, pod: Pod, owner: OwnerReference) -> None:
        self._count(owner, 1)
        departures = self._unreplaced.get(owner.uid, [])
        of_this_name = [departure for departure in departures if departure.pod == pod.metadata.name]  # a StatefulSet's
        if departures:
            replaced = of_this_name[0] if of_this_name else departures[0]
            departures.remove(replaced)
            self._replaces[pod.metadata.uid] = replaced

    def _remove_pod(self, pod: Pod, owner: OwnerReference) -> None:
        active = self._count(owner, -1)
        replaced = self._replaces.pop(pod.metadata.uid, None)
        departure = replaced or _Departure(pod.metadata.name, pod.spec.node_name, self.recorder.seconds_since_start())
        if departure.node and active < self._wanted_pods(pod.metadata.namespace, owner):
            self._unreplaced.setdefault(owner.uid, []).append(departure)

    def _wanted_pods(self, namespace: str, owner: OwnerReference) -> int:
        """0 where nobody says how many: a DaemonSet's pods never move, nor does what runs only once."""
        controller = self.cluster.state.owner(namespace, owner)
        replicas = getattr(getattr(controller, "spec", None), "replicas", 0)
        return 1 if replicas is None and owner.kind != "DaemonSet" else replicas or 0

    def _complete_move(self, pod: Pod, departure: _Departure) -> None:
        if pod.spec.node_name == departure.node or not self.recorder.is_about(pod):
            return
        self.completed.append(
            Move(
                workload=self.recorder.workload_of(pod.metadata.uid),
                pod=departure.pod,
                replacement=pod.metadata.name,
                start=departure.node,
                end=pod.spec.node_name,
                left=departure.at,
                ready=self.recorder.seconds_since_start(),
            )
        )
