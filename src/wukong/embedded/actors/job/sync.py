"""One sync of a Job that has not finished: its next status, and what is done with its pods. Called by controller.py."""

from __future__ import annotations

from wukong.actions import Action, Create
from wukong.api.kinds import JOBS
from wukong.embedded.actors import pods
from wukong.embedded.actors.events import delete_pods, note_about
from wukong.embedded.actors.job import finished_pods
from wukong.embedded.actors.job.finished_pods import BackoffRecord
from wukong.embedded.store.documents import format_time, parse_time, value_at
from wukong.embedded.world.objects import Job, Pod, template_of
from wukong.ports import Document

DEFAULT_BACKOFF_LIMIT = 6
_BACKOFF_LIMIT_EXCEEDED = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
_DEADLINE_EXCEEDED = ("DeadlineExceeded", "Job was active longer than specified deadline")
_COMPLETIONS_REACHED = ("CompletionsReached", "Reached expected number of succeeded pods")


class JobSync:
    """`run` returns the actions on pods, and completes `status`, `is_creating` and `requeue_after`."""

    def __init__(self, job: Job, owned: list[Pod], backoff: BackoffRecord, now: float) -> None:
        self.job, self.now = job, now
        self.is_creating = False
        self.requeue_after: float | None = None
        self.active = [pod for pod in owned if pods.is_active(pod)]
        before: Document = job.document.get("status") or {}
        uncounted = before.get("uncountedTerminatedPods") or {}
        finished = finished_pods.find_finished(owned, uncounted)
        self.backoff = backoff.add(finished, now)
        known = finished_pods.uncounted_uids_of(uncounted)
        self.counted_pods = [
            *finished.succeeded,
            *finished.failed,
            *(pod for pod in owned if pod.metadata.uid in known),
        ]
        self.succeeded: int = before.get("succeeded", 0) + len(finished.succeeded)
        self.failed: int = before.get("failed", 0) + len(finished.failed)
        counts = {"active": len(self.active), "succeeded": self.succeeded, "failed": self.failed}
        self.status: Document = {name: count for name, count in counts.items() if count}
        self.status["ready"] = sum(map(pods.is_ready, self.active))
        self.status["terminating"] = sum(pod.is_terminating and not pod.is_finished for pod in owned)
        self.status["uncountedTerminatedPods"] = finished_pods.update_uncounted(owned, uncounted, finished)
        if before.get("conditions"):
            self.status["conditions"] = before["conditions"]
        if (start_time := before.get("startTime")) or not job.spec.suspend:
            self.status["startTime"] = start_time or format_time(now)

    def run(self) -> list[Action]:
        if failure := self._find_failure():
            self._finish("Failed", "FailureTarget", *failure)
            return [*delete_pods(JOBS, self.job, self.active), note_about(JOBS, self.job, *failure, is_warning=True)]
        actions = self._manage_pods()
        if self._is_complete():
            self._finish("Complete", "SuccessCriteriaMet", *_COMPLETIONS_REACHED)
            self.status["completionTime"] = format_time(self.now)
            return [note_about(JOBS, self.job, "Completed", "Job completed")]
        return [*self._set_suspended(), *actions]

    def _find_failure(self) -> tuple[str, str] | None:
        """The reason and message of the Job's failure; None while it has not failed."""
        limit = DEFAULT_BACKOFF_LIMIT if self.job.spec.backoff_limit is None else self.job.spec.backoff_limit
        if self.failed > limit:
            return _BACKOFF_LIMIT_EXCEEDED
        deadline = value_at(self.job.document, "spec.activeDeadlineSeconds")
        if deadline is None or self.job.spec.suspend or "startTime" not in self.status:
            return None
        left = parse_time(self.status["startTime"]) + deadline - self.now
        if left > 0:
            self.requeue_after = left
        return None if left > 0 else _DEADLINE_EXCEEDED

    def _is_complete(self) -> bool:
        wanted = self._count_completions()
        if wanted is None:  # any pod that succeeds says that all is done
            return self.succeeded > 0 and not self.active
        return self.succeeded >= wanted and not self.active

    def _count_completions(self) -> int | None:
        """How many pods shall succeed. None: any success completes the Job."""
        spec = self.job.spec
        return 1 if spec.completions is None and spec.parallelism is None else spec.completions

    def _manage_pods(self) -> list[Action]:
        missing = self._count_wanted() - len(self.active)
        if missing < 0:
            return [*delete_pods(JOBS, self.job, self.active[len(self.active) + missing :])]
        left = self.backoff.remaining_seconds(self.now)
        if missing and left > 0:
            self.requeue_after = left if self.requeue_after is None else min(left, self.requeue_after)
            return []
        self.is_creating = missing > 0
        return [_create_pod(self.job)] * missing

    def _count_wanted(self) -> int:
        """How many pods shall run now."""
        if self.job.spec.suspend:
            return 0
        parallelism = 1 if self.job.spec.parallelism is None else self.job.spec.parallelism
        completions = self._count_completions()
        if completions is None:
            return min(len(self.active), parallelism) if self.succeeded else parallelism
        return max(0, min(parallelism, completions - self.succeeded))

    def _set_suspended(self) -> list[Action]:
        """Set the condition Suspended where it changed. A Job that is resumed gets a new start time."""
        conditions = self.status.get("conditions") or ()
        before = next((condition for condition in conditions if condition["type"] == "Suspended"), None)
        was_suspended, is_suspended = before is not None and before["status"] == "True", self.job.spec.suspend
        if was_suspended == is_suspended:
            return []
        word = "suspended" if is_suspended else "resumed"
        suspended = {
            "type": "Suspended",
            "status": str(is_suspended),
            "reason": f"Job{word.title()}",
            "message": f"Job {word}",
        }
        others = [condition for condition in conditions if condition["type"] != "Suspended"]
        self.status["conditions"] = [*others, {**suspended, **self._build_times()}]
        if not is_suspended:
            self.status["startTime"] = format_time(self.now)
        return [note_about(JOBS, self.job, word.title(), f"Job {word}")]

    def _finish(self, kind: str, interim_kind: str, reason: str, message: str) -> None:
        """Add both conditions of the end at once; the real one writes the interim one a moment earlier."""
        condition = {"status": "True", "reason": reason, "message": message, **self._build_times()}
        before = self.status.get("conditions") or []
        self.status["conditions"] = [*before, {"type": interim_kind, **condition}, {"type": kind, **condition}]
        self.requeue_after = None

    def _build_times(self) -> Document:
        return {"lastProbeTime": format_time(self.now), "lastTransitionTime": format_time(self.now)}


def _create_pod(job: Job) -> Create:
    template = template_of(job)
    job_labels = {"job-name": job.metadata.name, "controller-uid": job.metadata.uid}
    meta = template.get("metadata") or {}
    labels = {**(meta.get("labels") or {}), **job_labels}
    labels |= {f"batch.kubernetes.io/{name}": value for name, value in job_labels.items()}
    finalizers = [*(meta.get("finalizers") or ()), finished_pods.FINALIZER]
    return pods.create_pod(JOBS, job, template, labels=labels, finalizers=finalizers)
