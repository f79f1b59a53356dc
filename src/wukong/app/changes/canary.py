"""Takes a canary from its first pod to its judgement: pauses the rollout, and waits until the new pods are well.

Called by the course of `wukong patch --canary`, which then resumes or undoes. Writes the pause, and nothing else.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from wukong.api.resources import Key, Resource
from wukong.app.changes.following import LOOK_SECONDS
from wukong.app.changes.observation import Observation
from wukong.app.changes.reading import WorkloadParts, read_parts
from wukong.app.changes.writing import write_patch
from wukong.placement.workloads.canaries import CanaryRecord, judge_canary, pause
from wukong.placement.workloads.patch_forms import build_patch
from wukong.placement.workloads.progress import Progress, read_progress
from wukong.ports import Cluster, Document


class CanaryResult(NamedTuple):
    is_good: bool
    reason: str
    workload: Document  # as it was written last


async def try_canary(
    cluster: Cluster,
    resource: Resource,
    key: Key,
    observation: Observation,
    begun: Document,
    record: CanaryRecord,
    timeout_seconds: float,
) -> CanaryResult:
    """`begun` is the Deployment as the canary's first patch left it. Raises ChangedMeanwhile."""
    canary = _Canary(cluster, resource, key, observation, record)
    deadline = observation.now() + timeout_seconds
    workload, is_paused, reason = begun, False, ""
    while observation.now() < deadline:
        progress, parts = await canary.look()
        if not is_paused and progress.new >= record.pods:
            workload, is_paused = await canary.pause(workload), True
        judgement, reason = judge_canary(progress, parts.pods, record)
        if is_paused and judgement != "waits":
            return CanaryResult(judgement == "good", reason, workload)
        await observation.wait(min(LOOK_SECONDS, max(0.0, deadline - observation.now())))
    return CanaryResult(False, f"not well after {timeout_seconds:g} s: {reason}", workload)


class _Canary:
    def __init__(
        self, cluster: Cluster, resource: Resource, key: Key, observation: Observation, record: CanaryRecord
    ) -> None:
        self.cluster, self.resource, self.key, self.observation = cluster, resource, key, observation
        self.record = record

    async def look(self) -> tuple[Progress, WorkloadParts]:
        parts = await read_parts(self.cluster, self.resource, self.key)
        return read_progress(parts.workload, parts.versions, parts.pods, self.observation.now()), parts

    async def pause(self, workload: Document) -> Document:
        make_patch = partial(build_patch, after=pause(workload), form="merge")
        return await write_patch(self.cluster, self.resource, self.key, workload, make_patch)
