"""The finished pods of a Job, each counted once: by a finalizer on the pod and its uid in the Job's status.

    a pod ends or is deleted ─► counted, its uid in `uncountedTerminatedPods` ─► finalizer removed ─► uid removed

Called by controller.py and sync.py; documents in, documents out. So a pod that is drained, preempted or lost with its
node counts as failed though it is gone, as in Kubernetes; and none is counted twice, whatever fails in between. (The
real one adds to the counts only in its last step.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from wukong.actions import Patch
from wukong.api.kinds import PODS
from wukong.api.resources import key_of
from wukong.embedded.actors import pods
from wukong.embedded.store.documents import parse_time, value_at
from wukong.embedded.world.objects import Pod
from wukong.ports import Document, PatchBody

FINALIZER = "batch.kubernetes.io/job-tracking"
FIRST_BACKOFF, LONGEST_BACKOFF = 10.0, 600.0


class FinishedPods(NamedTuple):
    """Pods that have finished and were not counted before."""

    succeeded: list[Pod]
    failed: list[Pod]


class BackoffRecord(NamedTuple):
    """Failures since the last success, and when the last of them was."""

    failures: int = 0
    last_failure: float = 0.0
    recorded: frozenset[str] = frozenset()  # uids: the same pods come again until the Job's status counts them

    def add(self, finished: FinishedPods, now: float) -> BackoffRecord:
        """The record with these pods in it, but for those that are recorded already."""
        failures, last_failure, _ = self
        ends = [
            (finish_time_of(pod, now), is_success)
            for ended, is_success in ((finished.failed, False), (finished.succeeded, True))
            for pod in ended
            if pod.metadata.uid not in self.recorded
        ]
        for moment, is_success in sorted(ends):
            failures, last_failure = (0, 0.0) if is_success else (failures + 1, max(last_failure, moment))
        uids = frozenset(pod.metadata.uid for pod in (*finished.succeeded, *finished.failed))
        return BackoffRecord(failures, last_failure, uids)

    def remaining_seconds(self, now: float) -> float:
        """Seconds before a failed pod may be replaced: 10, 20, 40 … after the last failure."""
        if not self.failures:
            return 0.0
        backoff: float = FIRST_BACKOFF * 2.0 ** min(self.failures - 1, 10)
        return max(0.0, self.last_failure + min(LONGEST_BACKOFF, backoff) - now)


def is_tracked(pod: Pod) -> bool:
    """Whether the pod has the finalizer by which it is kept until it is counted."""
    return FINALIZER in (value_at(pod.document, "metadata.finalizers") or ())


def uncounted_uids_of(uncounted: Document) -> set[str]:
    """All uids in a Job's `uncountedTerminatedPods`."""
    return {*(uncounted.get("succeeded") or ()), *(uncounted.get("failed") or ())}


def find_finished(owned: list[Pod], uncounted: Document) -> FinishedPods:
    known = uncounted_uids_of(uncounted)
    new = [pod for pod in owned if is_tracked(pod) and pod.metadata.uid not in known]
    succeeded = [pod for pod in new if pod.status.phase == "Succeeded"]
    failed = [pod for pod in new if pod.status.phase == "Failed" or (pod.is_terminating and not pod.is_finished)]
    return FinishedPods(succeeded, failed)


def update_uncounted(owned: list[Pod], uncounted: Document, finished: FinishedPods) -> Document:
    """The next `uncountedTerminatedPods`: uids of counted pods that still have the finalizer."""
    tracked = {pod.metadata.uid for pod in owned if is_tracked(pod)}
    updated = {}
    for name, new in (("succeeded", finished.succeeded), ("failed", finished.failed)):
        still_tracked = [uid for uid in uncounted.get(name) or () if uid in tracked]
        if uids := [*still_tracked, *(pod.metadata.uid for pod in new)]:
            updated[name] = uids
    return updated


def remove_finalizers(owned: Iterable[Pod]) -> list[Patch]:
    """Remove the finalizer from those pods that have it."""
    return [
        Patch(
            PODS,
            key_of(pod),
            PatchBody(
                "strategic",
                {"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER], "uid": pod.metadata.uid}},
                manager=pods.MANAGER,
            ),
        )
        for pod in owned
        if is_tracked(pod)
    ]


def finish_time_of(pod: Pod, now: float) -> float:
    """When its last container stopped; now, if its status does not say."""
    statuses = value_at(pod.document, "status.containerStatuses") or ()
    stops = [value_at(status, "state.terminated.finishedAt") for status in statuses]
    return max((parse_time(stop) for stop in stops if stop), default=now)
