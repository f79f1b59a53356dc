"""How long pods take from their node to ready, learnt from a snapshot: the times of the conditions of those that run.

Called by `wukong plan` before the cluster comes to rest; what is learnt goes to the kubelets of the embedded cluster.
Times of the API are whole seconds: pods that took less teach nothing. What a new version takes, and to pull its image,
no snapshot knows; the manifest's probes say how long it takes at least. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Literal

import msgspec

from wukong.embedded.actors.kubelet.durations import Durations, PodDurations, Workload
from wukong.embedded.scenario.format.fields import document_resource
from wukong.embedded.scenario.play.steps import key_of
from wukong.embedded.snapshot.load import LoadedSnapshot
from wukong.embedded.store.documents import parse_time, value_at
from wukong.forecast.stop_times import StopTimes
from wukong.forecast.workload_pods import list_workload_pods
from wukong.ports import Document
from wukong.semantics.start_time import MOST_SECONDS, measure_start

_PROBES = ("startupProbe", "readinessProbe")


class StartTime(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """How long the pods of a workload take from their node to ready, and who says so."""

    seconds: float
    slowest_seconds: float
    pods: int = 0  # from which it was learnt
    source: Literal["learnt", "given", "probe", "unknown"] = "learnt"


StartTimes = Mapping[Workload, StartTime]


def learn_start_times(start: LoadedSnapshot) -> dict[Workload, StartTime]:
    """Of every workload that has pods with times: the median, and the slowest."""
    seconds: dict[Workload, list[float]] = {}
    for workload, pods in list_workload_pods(start).items():
        if known := [took for pod in pods if (took := seconds_to_ready(pod)) is not None]:
            seconds[workload] = known
    return {
        workload: StartTime(seconds=median(values), slowest_seconds=max(values), pods=len(values))
        for workload, values in seconds.items()
    }


def add_probe_delays(times: Mapping[Workload, StartTime], documents: Iterable[Document]) -> dict[Workload, StartTime]:
    """The same, and of each applied workload at least as long as its probes wait before they ask."""
    known = dict(times)
    for document in documents:
        delay = find_probe_delay(document)
        workload = document_resource(document).group_kind, key_of(document)
        if delay > (known[workload].seconds if workload in known else 0):
            known[workload] = StartTime(seconds=delay, slowest_seconds=delay, source="probe")
    return known


def build_durations(
    times: Mapping[Workload, StartTime], given: PodDurations, stop_times: StopTimes | None = None
) -> PodDurations:
    """What kubelets go by: what was `given` counts for more than what was learnt."""
    starts, stops = dict[Workload, float](), dict[Workload, float]()
    if given.of_all.start_seconds is None:
        starts = {workload: time.seconds for workload, time in times.items()}
    if given.of_all.stop_seconds is None and stop_times is not None:
        stops = {workload: time.seconds for workload, time in stop_times.items() if time.source != "unknown"}
    durations = {
        workload: Durations(starts.get(workload), stops.get(workload)) for workload in dict.fromkeys([*starts, *stops])
    }
    for workload, said in given.by_workload.items():
        learnt = durations.get(workload, Durations())
        durations[workload] = Durations(
            learnt.start_seconds if said.start_seconds is None else said.start_seconds,
            learnt.stop_seconds if said.stop_seconds is None else said.stop_seconds,
        )
    return PodDurations(given.of_all, durations)


def find_start_time(workload: Workload, times: StartTimes, given: PodDurations) -> StartTime:
    """What a plan went by."""
    own = given.by_workload.get(workload, Durations()).start_seconds
    seconds = own if own is not None else given.of_all.start_seconds
    if seconds is not None:
        return StartTime(seconds=seconds, slowest_seconds=seconds, source="given")
    return times.get(workload, StartTime(seconds=0.0, slowest_seconds=0.0, source="unknown"))


def seconds_to_ready(pod: Document) -> float | None:
    """How long this pod took from its node to ready; None if its conditions do not say, or say nonsense."""
    scheduled = ready = None
    for condition in value_at(pod, "status.conditions") or ():
        if isinstance(condition, dict) and condition.get("status") == "True":
            if condition.get("type") == "PodScheduled":
                scheduled = condition.get("lastTransitionTime")
            elif condition.get("type") == "Ready":
                ready = condition.get("lastTransitionTime")
    if not scheduled or not ready or scheduled == ready:
        return None
    return measure_start(parse_time(scheduled), parse_time(ready))


def find_probe_delay(document: Document) -> float:
    """The longest initial delay of the probes that a pod of this manifest has to pass before it is ready."""
    containers = value_at(document, "spec.template.spec.containers")
    return max((_delay_of(container) for container in containers or () if isinstance(container, dict)), default=0.0)


def _delay_of(container: Document) -> float:
    delays = (value_at(container, f"{probe}.initialDelaySeconds") for probe in _PROBES)
    return sum(float(min(delay, MOST_SECONDS)) for delay in delays if isinstance(delay, int) and delay > 0)
