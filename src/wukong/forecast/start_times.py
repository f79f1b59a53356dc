"""How long pods take from their node to ready, learnt from a snapshot: the times of the conditions of those that run.

Called by `wukong plan` before the cluster comes to rest; what is learnt goes to the kubelets of the embedded cluster.
Times of the API are whole seconds: pods that took less teach nothing. What a new version takes, and to pull its image,
no snapshot knows; the manifest's probes say how long it takes at least. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Literal

import msgspec

from wukong.api.kinds import DEPLOYMENTS, KINDS, PODS, REPLICA_SETS
from wukong.api.resources import Key
from wukong.embedded.actors.kubelet.durations import Durations, PodDurations, Workload
from wukong.embedded.scenario.format.fields import document_resource
from wukong.embedded.scenario.play.steps import key_of
from wukong.embedded.snapshot.load import LoadedSnapshot
from wukong.embedded.store.documents import meta_of, parse_time, value_at
from wukong.ports import Document

MOST_SECONDS = 3600.0  # a pod that was not ready for longer has had trouble, and says nothing of how long a start takes
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
    documents = {resource.group_kind: items for resource, items in start.objects}
    deployments = dict(_find_deployments(documents.get(REPLICA_SETS.group_kind, ())))
    seconds: dict[Workload, list[float]] = {}
    for pod in documents.get(PODS.group_kind, ()):
        took = seconds_to_ready(pod)
        owner = _controller_of(pod) if took is not None else None
        if took is not None and owner is not None:
            seconds.setdefault(deployments.get(owner, owner), []).append(took)
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


def build_durations(times: Mapping[Workload, StartTime], given: PodDurations) -> PodDurations:
    """What kubelets go by: what was `given` counts for more than what was learnt."""
    if given.of_all.start_seconds is not None:
        return given
    learnt = {workload: Durations(start_seconds=time.seconds) for workload, time in times.items()}
    for workload, durations in given.by_workload.items():
        start_seconds = durations.start_seconds
        if start_seconds is None and workload in learnt:
            start_seconds = learnt[workload].start_seconds
        learnt[workload] = msgspec.structs.replace(durations, start_seconds=start_seconds)
    return PodDurations(given.of_all, learnt)


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
    took = parse_time(ready) - parse_time(scheduled)
    return took if 0 < took <= MOST_SECONDS else None


def find_probe_delay(document: Document) -> float:
    """The longest initial delay of the probes that a pod of this manifest has to pass before it is ready."""
    containers = value_at(document, "spec.template.spec.containers")
    return max((_delay_of(container) for container in containers or () if isinstance(container, dict)), default=0.0)


def _delay_of(container: Document) -> float:
    delays = (value_at(container, f"{probe}.initialDelaySeconds") for probe in _PROBES)
    return sum(float(min(delay, MOST_SECONDS)) for delay in delays if isinstance(delay, int) and delay > 0)


def _find_deployments(replica_sets: Sequence[Document]) -> Iterator[tuple[Workload, Workload]]:
    """Each ReplicaSet of a Deployment, and that Deployment."""
    for replica_set in replica_sets:
        owner = _controller_of(replica_set)
        if owner is not None and owner[0] == DEPLOYMENTS.group_kind:
            meta = meta_of(replica_set)
            yield (REPLICA_SETS.group_kind, Key(meta["namespace"], meta["name"])), owner


def _controller_of(document: Document) -> Workload | None:
    meta = meta_of(document)
    for owner in meta.get("ownerReferences") or ():
        if owner.get("controller"):
            kind = KINDS.group_kind_named(owner.get("kind", ""), owner.get("apiVersion") or "")
            return kind, Key(meta["namespace"], owner.get("name", ""))
    return None
