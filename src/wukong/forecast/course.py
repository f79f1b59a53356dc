"""The course of the workloads that a change is about: pods of the old and the new version, available, without a node.

Listens to a world while a change is played on it (play.py), and never writes. Which version is the new one shows only
in the end: it is that of the pod that was created last, or of all of them where none was.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from wukong.api.kinds import PODS, REPLICA_SETS, group_kind_of
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.embedded.actors import pods as podlike
from wukong.embedded.scenario.record import workload_status
from wukong.embedded.scenario.record.recorder import Recorder
from wukong.embedded.world.objects import Pod
from wukong.embedded.world.world import World
from wukong.forecast.fields import CoursePoint
from wukong.state import Change, State

Place = tuple[str, Key]  # group kind and key of a workload
_VERSION_LABELS = ("pod-template-hash", "controller-revision-hash")


class _PodState(NamedTuple):
    version: str
    has_node: bool


class _Count(NamedTuple):
    at: float
    by_version: dict[str, int]
    available: int
    pending: int


class _WorkloadCourse:
    """The active pods of one workload, and how many there were whenever that changed."""

    def __init__(self, pods: Iterable[Pod], available: int) -> None:
        self.available, self.latest_version = available, ""
        self.counts: list[_Count] = []
        self._pods: dict[str, _PodState] = {}  # by uid
        self._by_version: Tally[str] = Tally()
        self._pending = 0
        for pod in pods:
            self._set(pod.metadata.uid, _state_of(pod))

    def put(self, pod: Pod, *, is_gone: bool) -> None:
        uid = pod.metadata.uid
        if is_gone or not podlike.is_active(pod):
            self._set(uid, None)
            return
        if uid not in self._pods:
            self.latest_version = _state_of(pod).version
        self._set(uid, _state_of(pod))

    def _set(self, uid: str, pod: _PodState | None) -> None:
        before = self._pods.pop(uid, None)
        for state, sign in ((before, -1), (pod, 1)):
            if state is not None:
                self._by_version[state.version] += sign
                self._pending += sign * (not state.has_node)
        if pod is not None:
            self._pods[uid] = pod

    def count(self, at: float) -> None:
        """Take down how many there are now, unless nothing has changed."""
        count = _Count(at, dict(self._by_version), self.available, self._pending)
        if self.counts and self.counts[-1][1:] == count[1:]:
            return
        if self.counts and self.counts[-1].at == at and len(self.counts) > 1:
            self.counts.pop()  # the first point is how it was before
        self.counts.append(count)

    def points(self) -> Iterator[CoursePoint]:
        newest = self.latest_version or next(iter(self.counts[0].by_version), "") if self.counts else ""
        for count in self.counts:
            new = count.by_version.get(newest, 0)
            old = sum(count.by_version.values()) - new
            yield CoursePoint(at=count.at, old=old, new=new, available=count.available, pending=count.pending)


class Courses:
    def __init__(self, world: World, recorder: Recorder, places: Iterable[Place]) -> None:
        """Of the workloads at these places, whether they are there already or come with the change."""
        self._state, self._recorder, self._places = world.state, recorder, frozenset(places)
        self._courses: dict[str, _WorkloadCourse] = {}
        for group_kind, key in sorted(self._places):
            workload = world.state.objects.get(group_kind, {}).get(key)
            if workload is not None:
                self._add(workload)
        world.listen(self.hear)

    def hear(self, change: Change) -> None:
        now = self._recorder.seconds_since_start()
        if change.group_kind == PODS.group_kind:
            pod = change.new or change.old
            assert isinstance(pod, Pod)
            course = self._courses.get(self._recorder.workload_of(pod.metadata.uid))
            if course is not None:
                course.put(pod, is_gone=change.new is None)
                course.count(now)
        elif (change.group_kind, change.key) in self._places and change.new is not None:
            course = self._courses.get(self._recorder.name_of(change.new)) or self._add(change.new)
            course.available = workload_status.count_replicas(change.new).available
            course.count(now)

    def _add(self, workload: Object) -> _WorkloadCourse:
        available = workload_status.count_replicas(workload).available
        course = _WorkloadCourse(list_active_pods(workload, self._state), available)
        course.count(self._recorder.seconds_since_start())
        self._courses[self._recorder.name_of(workload)] = course
        return course

    def finish(self) -> dict[str, list[CoursePoint]]:
        """The points of every workload, by name."""
        return {name: list(course.points()) for name, course in self._courses.items()}


def list_active_pods(workload: Object, state: State) -> Iterator[Pod]:
    """The active pods of a workload, those of a Deployment's ReplicaSets too."""
    uid = workload.metadata.uid
    for key in state.owners.owned_by(uid, REPLICA_SETS):
        replica_set = state.objects.get(REPLICA_SETS.group_kind, {}).get(key)
        if replica_set is not None and group_kind_of(workload) != REPLICA_SETS.group_kind:
            yield from list_active_pods(replica_set, state)
    yield from filter(podlike.is_active, podlike.list_owned(state, workload))


def version_of(pod: Pod) -> str:
    """The label by which pods of different versions of a workload differ."""
    return next((pod.metadata.labels[label] for label in _VERSION_LABELS if label in pod.metadata.labels), "")


def _state_of(pod: Pod) -> _PodState:
    return _PodState(version_of(pod), bool(pod.spec.node_name))
