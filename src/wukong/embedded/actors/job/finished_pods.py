"""The pods of a Job that are over, each counted once: by a finalizer on the pod and its uid in the Job's status.

    a pod ends or is deleted ─► counted, its uid in `uncountedTerminatedPods` ─► finalizer taken away ─► uid forgotten

Called by job.py; documents in, documents out. So a pod that is drained, preempted or lost with its node counts as
failed though it is gone, as in Kubernetes; and nobody is counted twice, whatever fails in between. (The real one adds
to the counts only in its last step.)
"""

from __future__ import annotations

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


class Ended(NamedTuple):
    """Pods that are over and were not counted before."""

    succeeded: list[Pod]
    failed: list[Pod]


class Record(NamedTuple):
    """Failures since the last success, and when the last of them was."""

    failures: int = 0
    last: float = 0.0
    seen: frozenset[str] = frozenset()  # uids: a pod is seen to end until the Job's status says so

    def with_more(self, ended: Ended, now: float) -> Record:
        failures, last, _ = self
        rows = [
            (ended_at(pod, now), is_success)
            for found, is_success in ((ended.failed, False), (ended.succeeded, True))
            for pod in found
            if pod.metadata.uid not in self.seen
        ]
        for moment, is_success in sorted(rows):
            failures, last = (0, 0.0) if is_success else (failures + 1, max(last, moment))
        return Record(failures, last, frozenset(pod.metadata.uid for pod in (*ended.succeeded, *ended.failed)))

    def wait(self, now: float) -> float:
        """Seconds before a failed pod may be replaced: 10, 20, 40 … after the last failure."""
        if not self.failures:
            return 0.0
        pause: float = FIRST_BACKOFF * 2.0 ** min(self.failures - 1, 10)
        return max(0.0, self.last + min(LONGEST_BACKOFF, pause) - now)


def is_tracked(pod: Pod) -> bool:
    return FINALIZER in (value_at(pod.document, "metadata.finalizers") or ())


def ended(owned: list[Pod], uncounted: Document) -> Ended:
    known = {*(uncounted.get("succeeded") or ()), *(uncounted.get("failed") or ())}
    new = [pod for pod in owned if is_tracked(pod) and pod.metadata.uid not in known]
    succeeded = [pod for pod in new if pod.status.phase == "Succeeded"]
    failed = [pod for pod in new if pod.status.phase == "Failed" or (pod.is_terminating and not pod.is_finished)]
    return Ended(succeeded, failed)


def uncounted_after(owned: list[Pod], uncounted: Document, more: Ended) -> Document:
    """Uids of pods that are counted and still have the finalizer."""
    tracked = {pod.metadata.uid for pod in owned if is_tracked(pod)}
    made = {}
    for name, new in (("succeeded", more.succeeded), ("failed", more.failed)):
        kept = [uid for uid in uncounted.get(name) or () if uid in tracked]
        if uids := [*kept, *(pod.metadata.uid for pod in new)]:
            made[name] = uids
    return made


def released(found: list[Pod]) -> list[Patch]:
    body = {"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}}
    return [
        Patch(
            PODS,
            key_of(pod),
            PatchBody("strategic", {"metadata": {**body["metadata"], "uid": pod.metadata.uid}}, manager=pods.MANAGER),
        )
        for pod in found
        if is_tracked(pod)
    ]


def ended_at(pod: Pod, now: float) -> float:
    """When its last container stopped; else when it was deleted; else now."""
    statuses = value_at(pod.document, "status.containerStatuses") or ()
    stops = [value_at(each, "state.terminated.finishedAt") for each in statuses]
    return max((parse_time(stop) for stop in stops if stop), default=now)
