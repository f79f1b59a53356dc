"""Follows a rollout until it is over: what `kubectl rollout status` waits for, told pod by pod.

Called by `wukong follow`, and by `wukong patch` and `wukong undo` after their write. Reads only.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

import msgspec

from wukong.api.core import Pod
from wukong.api.resources import Key, Resource
from wukong.app.changes.observation import Observation
from wukong.app.changes.reading import WorkloadParts, read_parts
from wukong.cluster.capture import capture
from wukong.engine import Scheduler, Snapshot
from wukong.engine.explain import group_nodes
from wukong.errors import ClusterError, OutcomeUnknown, ServerFailed, TooManyRequests
from wukong.placement.workloads.progress import PodPlace, Progress, read_progress
from wukong.ports import Cluster

LOOK_SECONDS = 5.0  # at the longest between two looks: for what no event tells
SILENT_SECONDS = 60.0  # for which an API server may fail to answer, as while it is restarted
MOST_NODES = 3  # that are named


class Look(msgspec.Struct, frozen=True):
    """The rollout as it was at one moment. `is_late`: it takes longer than planned, which is said once."""

    progress: Progress
    parts: WorkloadParts
    seconds: float  # since it is followed
    is_late: bool = False


async def follow_rollout(
    cluster: Cluster,
    resource: Resource,
    key: Key,
    observation: Observation,
    timeout_seconds: float | None = None,
    planned_seconds: float | None = None,
) -> AsyncGenerator[Look, None]:
    """Yield each new state of the rollout; the last is over, or as it is when the time is."""
    started_at, before, is_said = observation.now(), None, planned_seconds is None
    answered_at = started_at
    while True:
        try:
            parts = await read_parts(cluster, resource, key)
            answered_at = observation.now()
        except (ServerFailed, OutcomeUnknown, TooManyRequests):
            if observation.now() - answered_at > SILENT_SECONDS:
                raise
            await observation.wait(LOOK_SECONDS)
            continue
        seconds = observation.now() - started_at
        progress = read_progress(parts.workload, parts.versions, parts.pods, observation.now())
        is_running = progress.state == "running"
        is_late = is_running and not is_said and planned_seconds is not None and seconds > planned_seconds
        if progress != before or is_late:
            yield Look(progress, parts, seconds, is_late)
            before, is_said = progress, is_said or is_late
        if not is_running or (timeout_seconds is not None and seconds >= timeout_seconds):
            return
        await observation.wait(
            LOOK_SECONDS if timeout_seconds is None else min(LOOK_SECONDS, timeout_seconds - seconds)
        )


async def explain_waiting(cluster: Cluster, parts: WorkloadParts, pod: PodPlace) -> list[str]:
    """Why each node refuses a pod that has none, in our words. Nothing where it cannot be told."""
    document = next((item for item in parts.pods if item["metadata"]["name"] == pod.name), None)
    if document is None or pod.node:
        return []
    try:
        subject = msgspec.convert(document, Pod)
        objects = await capture(cluster)
    except (ClusterError, msgspec.ValidationError):
        return []
    scheduler = Scheduler(Snapshot.of(objects))
    decision = scheduler.decide(subject)
    return [
        f"{_name_some(group.nodes)}: {'; '.join(group.list_reasons())}"
        for group in group_nodes(scheduler.view_of(subject), decision)
        if not group.is_feasible
    ]


def _name_some(nodes: tuple[str, ...]) -> str:
    more = f" and {len(nodes) - MOST_NODES} more" if len(nodes) > MOST_NODES else ""
    return ", ".join(nodes[:MOST_NODES]) + more
