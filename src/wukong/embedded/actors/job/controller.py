"""The Job controller, simple: so many pods at once until so many have succeeded, or too many have failed.

Follows kube-controller-manager 1.35 for completions, parallelism, backoffLimit, activeDeadlineSeconds and suspend, and
deletes a Job ttlSecondsAfterFinished after its end. Not played: indexes, pod failure and success policies, and
podReplacementPolicy Failed. Pods that are over are counted by finished_pods.py.
"""

from __future__ import annotations

from typing import ClassVar

from wukong.actions import Action, Delete, Outcome, Patch
from wukong.api.kinds import JOBS, PODS
from wukong.api.meta import LabelSelector
from wukong.api.resources import Key, key_of
from wukong.embedded.actors import pods
from wukong.embedded.actors.events import CreatedPods, deleted, note
from wukong.embedded.actors.job import finished_pods
from wukong.embedded.actors.job.finished_pods import Record
from wukong.embedded.actors.replica_set.controller import controlled_by, writing_status
from wukong.embedded.store.documents import format_time, parse_time, value_at
from wukong.embedded.world.objects import Job, Pod, template_of
from wukong.ports import Document, PatchBody
from wukong.state import State
from wukong.state.controller import PodRight, Watch

LIMIT = 6
_GIVEN_UP = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
_TOO_LATE = ("DeadlineExceeded", "Job was active longer than specified deadline")
_DONE = ("CompletionsReached", "Reached expected number of succeeded pods")


class Jobs:
    name = "job"
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset({PodRight.CREATE_JOB_PODS, PodRight.DELETE_JOB_PODS})
    watches = (Watch(JOBS), Watch(PODS, controlled_by(JOBS)))

    def __init__(self) -> None:
        self._newborn = CreatedPods(JOBS)
        self._records: dict[str, Record] = {}  # uid of a Job → its failures; lost with us, as the real one's are

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        job = state.get(Job, key)
        if job is None or job.metadata.deletion_timestamp is not None:
            return Outcome(tuple(finished_pods.released(_left_behind(key, state))))
        owned = pods.owned_pods(state, job)
        told: list[Action] = [*self._newborn.told(job, map(key_of, owned))]
        if _finish(job) is not None:
            self._records.pop(job.metadata.uid, None)
            gone, again = _outlived(job, now)
            return Outcome((*told, *finished_pods.released(owned), *_forgotten(key, job, owned), *gone), again)
        sync = _Sync(job, owned, self._records.get(job.metadata.uid, Record()), now)
        self._records[job.metadata.uid] = sync.record
        actions = sync.play()
        if sync.is_asking:
            self._newborn.asked(job, map(key_of, owned))
        before = job.document.get("status") or {}
        if sync.status != before:
            told.append(writing_status(JOBS, key, _cleared(before, sync.status), sync.status))
        # What is counted stands in the status before the pods are let go.
        return Outcome((*told, *finished_pods.released(sync.counted), *actions), sync.again)


class _Sync:
    def __init__(self, job: Job, owned: list[Pod], record: Record, now: float) -> None:
        self.job, self.now = job, now
        self.is_asking = False
        self.again: float | None = None
        self.active = [pod for pod in owned if pods.is_active(pod)]
        before: Document = job.document.get("status") or {}
        uncounted = before.get("uncountedTerminatedPods") or {}
        more = finished_pods.ended(owned, uncounted)
        self.record = record.with_more(more, now)
        held = {*(uncounted.get("succeeded") or ()), *(uncounted.get("failed") or ())}
        self.counted = [*more.succeeded, *more.failed, *(pod for pod in owned if pod.metadata.uid in held)]
        self.succeeded: int = before.get("succeeded", 0) + len(more.succeeded)
        self.failed: int = before.get("failed", 0) + len(more.failed)
        counts = {"active": len(self.active), "succeeded": self.succeeded, "failed": self.failed}
        self.status: Document = {name: count for name, count in counts.items() if count}
        self.status["ready"] = sum(map(pods.is_ready, self.active))
        self.status["terminating"] = sum(pod.is_terminating and not pod.is_finished for pod in owned)
        self.status["uncountedTerminatedPods"] = finished_pods.uncounted_after(owned, uncounted, more)
        if before.get("conditions"):
            self.status["conditions"] = before["conditions"]
        if (started := before.get("startTime")) or not job.spec.suspend:
            self.status["startTime"] = started or format_time(now)

    def play(self) -> list[Action]:
        """What to do with pods; completes the status."""
        if why := self._why_failed():
            self._end("Failed", "FailureTarget", why)
            return [*deleted(JOBS, self.job, self.active), note(JOBS, self.job, *why, is_warning=True)]
        made = self._managed()
        if self._is_complete():
            self._end("Complete", "SuccessCriteriaMet", _DONE)
            self.status["completionTime"] = format_time(self.now)
            return [note(JOBS, self.job, "Completed", "Job completed")]
        return [*self._suspended(), *made]

    def _why_failed(self) -> tuple[str, str] | None:
        limit = LIMIT if self.job.spec.backoff_limit is None else self.job.spec.backoff_limit
        if self.failed > limit:
            return _GIVEN_UP
        deadline = value_at(self.job.document, "spec.activeDeadlineSeconds")
        if deadline is None or self.job.spec.suspend or "startTime" not in self.status:
            return None
        left = parse_time(self.status["startTime"]) + deadline - self.now
        if left > 0:
            self.again = left
        return None if left > 0 else _TOO_LATE

    def _is_complete(self) -> bool:
        wanted = self._completions()
        if wanted is None:  # whoever succeeds says that all is done
            return self.succeeded > 0 and not self.active
        return self.succeeded >= wanted and not self.active

    def _completions(self) -> int | None:
        spec = self.job.spec
        return 1 if spec.completions is None and spec.parallelism is None else spec.completions

    def _managed(self) -> list[Action]:
        missing = self._wanted() - len(self.active)
        if missing < 0:
            return [*deleted(JOBS, self.job, self.active[len(self.active) + missing :])]
        wait = self.record.wait(self.now)
        if missing and wait > 0:
            self.again = wait if self.again is None else min(wait, self.again)
            return []
        self.is_asking = missing > 0
        return [_pod(self.job)] * missing

    def _wanted(self) -> int:
        """How many pods shall run now."""
        if self.job.spec.suspend:
            return 0
        parallel = 1 if self.job.spec.parallelism is None else self.job.spec.parallelism
        completions = self._completions()
        if completions is None:
            return min(len(self.active), parallel) if self.succeeded else parallel
        return max(0, min(parallel, completions - self.succeeded))

    def _suspended(self) -> list[Action]:
        """The condition Suspended, where it changed; its clock starts anew when it goes on."""
        held = next((it for it in self.status.get("conditions") or () if it["type"] == "Suspended"), None)
        is_held, is_wanted = held is not None and held["status"] == "True", self.job.spec.suspend
        if is_held == is_wanted:
            return []
        word = "suspended" if is_wanted else "resumed"
        told = {"type": "Suspended", "status": str(is_wanted), "reason": f"Job{word.title()}", "message": f"Job {word}"}
        others = [it for it in self.status.get("conditions") or () if it["type"] != "Suspended"]
        self.status["conditions"] = [*others, {**told, **self._times()}]
        if not is_wanted:
            self.status["startTime"] = format_time(self.now)
        return [note(JOBS, self.job, word.title(), f"Job {word}")]

    def _end(self, kind: str, first: str, why: tuple[str, str]) -> None:
        """Both conditions at once; the real one writes the first of them a moment earlier."""
        told = {"status": "True", "reason": why[0], "message": why[1], **self._times()}
        before = self.status.get("conditions") or []
        self.status["conditions"] = [*before, {"type": first, **told}, {"type": kind, **told}]
        self.again = None

    def _times(self) -> Document:
        return {"lastProbeTime": format_time(self.now), "lastTransitionTime": format_time(self.now)}


def _finish(job: Job) -> Document | None:
    """The condition by which it is over."""
    found = value_at(job.document, "status.conditions") or ()
    return next((it for it in found if it["type"] in ("Complete", "Failed") and it["status"] == "True"), None)


def _forgotten(key: Key, job: Job, owned: list[Pod]) -> list[Patch]:
    """The uids of the last pods that were counted, once those are let go."""
    held = value_at(job.document, "status.uncountedTerminatedPods") or {}
    if not held or any(map(finished_pods.is_tracked, owned)):
        return []
    cleared = {"status": {"uncountedTerminatedPods": dict.fromkeys(held)}}
    return [Patch(JOBS, key, PatchBody("merge", cleared, manager=pods.MANAGER), "status")]


def _outlived(job: Job, now: float) -> tuple[tuple[Delete, ...], float | None]:
    """A Job that says how long it stays after its end goes then, and its pods with it."""
    over, ttl = _finish(job), value_at(job.document, "spec.ttlSecondsAfterFinished")
    if ttl is None or over is None:
        return (), None
    left = parse_time(over["lastTransitionTime"]) + ttl - now
    if left > 0:
        return (), left
    return (Delete(JOBS, key_of(job), uid=job.metadata.uid, propagation="Foreground"),), None


def _left_behind(key: Key, state: State) -> list[Pod]:
    """Pods of a Job that is gone, or going: nobody counts them any more."""
    keys = state.pods.matching(key.namespace, LabelSelector(match_labels={"batch.kubernetes.io/job-name": key.name}))
    return [pod for each in keys if (pod := state.get(Pod, each)) is not None]


def _pod(job: Job) -> Action:
    template = template_of(job)
    own = {"job-name": job.metadata.name, "controller-uid": job.metadata.uid}
    meta = template.get("metadata") or {}
    labels = {**(meta.get("labels") or {}), **own}
    labels |= {f"batch.kubernetes.io/{name}": value for name, value in own.items()}
    finalizers = [*(meta.get("finalizers") or ()), finished_pods.FINALIZER]
    owner = pods.reference("Job", "batch/v1", job)
    return pods.new_pod(template, job, owner, labels=labels, finalizers=finalizers)


def _cleared(before: Document, status: Document) -> Document:
    """Merging keeps the entries of a map that are not mentioned: those that went are named."""
    held, kept = before.get("uncountedTerminatedPods") or {}, status["uncountedTerminatedPods"]
    status["uncountedTerminatedPods"] = {**dict.fromkeys(held.keys() - kept.keys()), **kept}
    return before
