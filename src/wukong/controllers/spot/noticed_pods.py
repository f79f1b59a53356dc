"""Which pods had to leave a node because of a notice, and how and when each of them went. A memory that may be lost.

Used by history.py. Pods may go within milliseconds of the notice, before anything about it is written: so they are
noted from the first moment on. Who comes after a crash goes on from what was written.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from wukong.api.core import Pod
from wukong.api.node_notices import MOST_PODS, NoticedPod
from wukong.api.times import format_time
from wukong.controllers.spot.evictions import must_leave
from wukong.controllers.spot.shortages import WorkloadName, name_workload
from wukong.controllers.spot.ways import LEFT, STAYED, way_of
from wukong.state import State


class NoticedPods:
    def __init__(self) -> None:
        self._by_notice: dict[str, dict[str, NoticedPod]] = {}  # and by uid
        self._last_ways: dict[str, str] = {}  # by uid: how a pod that is still there would go

    def copy(self) -> NoticedPods:
        copy = NoticedPods()
        copy._by_notice = {notice: dict(pods) for notice, pods in self._by_notice.items()}
        copy._last_ways = dict(self._last_ways)
        return copy

    def adopt(self, notice: str, written: Iterable[NoticedPod]) -> None:
        """Take over what is written, where nothing is known."""
        pods = self._by_notice.setdefault(notice, {})
        for pod in written:
            pods.setdefault(pod.uid, pod)

    def add_present(self, notice: str, node: str, state: State) -> None:
        """Those on the node that have to leave it."""
        pods = self._by_notice.setdefault(notice, {})
        for pod in sorted(state.pods_on(node), key=lambda pod: pod.metadata.uid):
            if must_leave(pod) and pod.metadata.uid not in pods and len(pods) < MOST_PODS:
                pods[pod.metadata.uid] = _list_pod(pod, state)

    def note_ways(self, notice: str, node: str, state: State, now: float, *, unseen: str) -> None:
        """How those went that are on their way out, have ended or are gone; `unseen` are those of whom nobody knows."""
        present = {pod.metadata.uid: pod for pod in state.pods_on(node)}
        pods = self._by_notice.get(notice, {})
        for uid, entry in pods.items():
            pod = present.get(uid)
            if entry.way:
                continue
            if pod is None:
                way = self._last_ways.pop(uid, LEFT)
                pods[uid] = _close(entry, unseen if way == LEFT else way, now)
            elif pod.is_finished:
                pods[uid] = _close(entry, LEFT, now)
            elif pod.is_terminating:
                pods[uid] = _close(entry, way_of(pod), now)
            else:
                self._last_ways[uid] = way_of(pod)

    def close(self, notice: str, way: str, now: float) -> None:
        """The rest went this way, all of them."""
        pods = self._by_notice.get(notice, {})
        for uid, entry in pods.items():
            if not entry.way:
                pods[uid] = _close(entry, way, now)

    def drop_present(self, notice: str) -> None:
        """Those that are still there: another notice is about them."""
        pods = self._by_notice.get(notice, {})
        self._by_notice[notice] = {uid: entry for uid, entry in pods.items() if entry.way}

    def list(self, notice: str) -> list[NoticedPod]:
        pods = self._by_notice.get(notice, {}).values()
        return sorted(pods, key=lambda pod: (pod.namespace, pod.name, pod.uid))

    def count_gone(self, notice: str, workload: WorkloadName) -> int:
        """Pods of a workload that went, for each of which another has to come."""
        return len(self._list_gone(notice, workload))

    def find_last(self, notice: str, workload: WorkloadName) -> str:
        """When the last of them went; "" if none did."""
        return max((pod.at for pod in self._list_gone(notice, workload)), default="")

    def _list_gone(self, notice: str, workload: WorkloadName) -> tuple[NoticedPod, ...]:
        pods = self._by_notice.get(notice, {}).values()
        gone = (pod for pod in pods if pod.way and pod.way not in (LEFT, STAYED))
        return tuple(pod for pod in gone if (pod.namespace, pod.workload) == workload)

    def forget(self, notice: str) -> None:
        for uid in self._by_notice.pop(notice, {}):
            self._last_ways.pop(uid, None)


def _list_pod(pod: Pod, state: State) -> NoticedPod:
    meta, workload = pod.metadata, name_workload(pod, state).text
    return NoticedPod(namespace=meta.namespace, name=meta.name, uid=meta.uid, workload=workload)


def _close(pod: NoticedPod, way: str, now: float) -> NoticedPod:
    return msgspec.structs.replace(pod, way=way, at=format_time(now))
