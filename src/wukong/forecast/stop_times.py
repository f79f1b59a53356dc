"""How long pods take to stop, learnt from a snapshot as far as one can tell: from pods that were asked to stop.

    asked     deletionTimestamp less its grace period, or since when a pod that has ended is a DisruptionTarget
    stopped   when the last of its containers finished; one that still runs has taken so long already
    at most   terminationGracePeriodSeconds: then kubelets kill

Pods that are gone are in no snapshot, so most workloads teach nothing: then a preStop hook that only sleeps says how
long it takes at least, or nobody knows. Called by `wukong plan`; what is learnt goes to kubelets. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any, Literal

import msgspec

from wukong.embedded.actors.kubelet.durations import Durations, PodDurations, Workload
from wukong.embedded.snapshot.load import LoadedSnapshot
from wukong.embedded.store.documents import condition_of, meta_of, parse_time, value_at
from wukong.forecast.workload_pods import list_workload_pods
from wukong.ports import Document

_DEFAULT_GRACE_SECONDS = 30  # of Kubernetes
_MOST_SECONDS = 86_400.0
_SLEEP = re.compile(r"(?:/bin/)?sleep (\d{1,5})s?")
_ENDED = ("Succeeded", "Failed")


class StopTime(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """How long the pods of a workload take to stop, and who says so.

    learnt: pods that have stopped. stopping: pods that still do, so it is at least that. hook: preStop sleeps so long.
    """

    seconds: float
    slowest_seconds: float
    limit_seconds: float | None = None  # terminationGracePeriodSeconds; None: no pod tells
    pods: int = 0  # from which it was learnt
    source: Literal["learnt", "stopping", "hook", "given", "unknown"] = "learnt"


StopTimes = Mapping[Workload, StopTime]


def learn_stop_times(start: LoadedSnapshot) -> dict[Workload, StopTime]:
    """Of every workload that has pods, also where these teach no more than their grace period."""
    return {workload: _learn_from(pods, start.now) for workload, pods in list_workload_pods(start).items()}


def _learn_from(pods: list[Document], now: float) -> StopTime:
    limit = max(map(grace_of, pods))
    if stopped := [took for pod in pods if (took := seconds_to_stop(pod)) is not None]:
        return StopTime(seconds=median(stopped), slowest_seconds=max(stopped), limit_seconds=limit, pods=len(stopped))
    if stopping := [took for pod in pods if (took := seconds_stopping(pod, now)) is not None]:
        longest = max(stopping)
        return StopTime(
            seconds=longest, slowest_seconds=longest, limit_seconds=limit, pods=len(stopping), source="stopping"
        )
    sleep = min(limit, max(map(find_sleep, pods)))
    return StopTime(seconds=sleep, slowest_seconds=sleep, limit_seconds=limit, source="hook" if sleep else "unknown")


def find_stop_time(workload: Workload, times: StopTimes, given: PodDurations) -> StopTime:
    """What a plan went by."""
    own = given.by_workload.get(workload, Durations()).stop_seconds
    seconds = own if own is not None else given.of_all.stop_seconds
    known = times.get(workload, StopTime(seconds=0.0, slowest_seconds=0.0, source="unknown"))
    if seconds is None:
        return known
    return StopTime(seconds=seconds, slowest_seconds=seconds, limit_seconds=known.limit_seconds, source="given")


# ---- what one pod tells


def seconds_to_stop(pod: Document) -> float | None:
    """How long a pod that was asked to stop took until its last container had finished; None if that does not show."""
    asked, finished = _find_asked(pod), list(_list_finish_times(pod))
    if not asked or not finished or None in finished:
        return None
    took = max(time for time in finished if time is not None) - asked
    return min(took, grace_of(pod)) if took >= 0 else None  # it was over before anybody asked


def seconds_stopping(pod: Document, now: float) -> float | None:
    """How long a pod has been stopping by now. None if it is not, or longer than it may: then its node is silent."""
    asked = _find_asked(pod)
    if not asked or value_at(pod, "status.phase") in _ENDED:
        return None
    took = now - asked
    return took if 1 <= took <= grace_of(pod) else None


def grace_of(pod: Document) -> float:
    """What it was given when it was deleted, else what its spec says."""
    for path in ("metadata.deletionGracePeriodSeconds", "spec.terminationGracePeriodSeconds"):
        seconds = value_at(pod, path)
        if isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds >= 0:
            return float(min(seconds, _MOST_SECONDS))
    return float(_DEFAULT_GRACE_SECONDS)


def find_sleep(pod: Document) -> float:
    """The longest that a preStop hook of this pod does nothing but sleep."""
    containers = value_at(pod, "spec.containers")
    items = containers if isinstance(containers, list) else ()
    return max((_sleep_of(item) for item in items if isinstance(item, dict)), default=0.0)


def _sleep_of(container: Document) -> float:
    seconds: Any = value_at(container, "lifecycle.preStop.sleep.seconds")
    command: Any = value_at(container, "lifecycle.preStop.exec.command")
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        words = command[2:] if len(command) == 3 and command[1] == "-c" else command
        if match := _SLEEP.fullmatch(" ".join(words).strip()):
            seconds = int(match[1])
    return float(seconds) if isinstance(seconds, int) and not isinstance(seconds, bool) and seconds > 0 else 0.0


def _find_asked(pod: Document) -> float | None:
    meta = meta_of(pod)
    deleted, grace = meta.get("deletionTimestamp"), meta.get("deletionGracePeriodSeconds")
    if deleted:  # a grace period of 0 removes a pod whatever its containers do
        return parse_time(deleted) - grace if isinstance(grace, int) and grace > 0 else None
    target = condition_of(pod, "DisruptionTarget") or {}
    has_ended = value_at(pod, "status.phase") in _ENDED and target.get("status") == "True"
    return parse_time(target["lastTransitionTime"]) if has_ended and target.get("lastTransitionTime") else None


def _list_finish_times(pod: Document) -> Iterator[float | None]:
    """Of each container; None for one that runs, or does not say."""
    for status in value_at(pod, "status.containerStatuses") or ():
        finished = value_at(status, "state.terminated.finishedAt") if isinstance(status, dict) else None
        yield parse_time(finished) if isinstance(finished, str) and finished else None
