"""The Job controller, simple: so many pods at once until so many have succeeded, or too many have failed.

Follows kube-controller-manager 1.35 for completions, parallelism, backoffLimit and suspend. Not played: indexes,
pod failure and success policies, deadlines, ttlSecondsAfterFinished, and the finalizer by which the real one counts
pods that were removed; what was counted once stays counted in the status.
"""

from __future__ import annotations

from wukong.actions import DONE, Action, Outcome
from wukong.api.resources import Key
from wukong.embedded.actors import pods
from wukong.embedded.actors.replica_set import controlled_by, writing_status
from wukong.embedded.objects import JOBS, Job, Pod, template_of
from wukong.embedded.store.documents import at, seconds, stamp
from wukong.ports import Document
from wukong.state import State
from wukong.state.contract import Watch

FIRST_BACKOFF, LONGEST_BACKOFF, LIMIT = 10.0, 600.0, 6
_GIVEN_UP = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
_DONE = ("CompletionsReached", "Reached expected number of succeeded pods")


class Jobs:
    name = "job"
    watches = (Watch(JOBS, read=Job), Watch(pods.PODS, controlled_by("Job")))

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        job = state.get(Job, key)
        if job is None or job.metadata.deletion_timestamp is not None or _is_over(job):
            return DONE
        owned = pods.owned_pods(state, job)
        active = [pod for pod in owned if pods.is_active(pod)]
        status = _counted(job, owned, active, now)
        actions: list[Action] = []
        again = None
        if _is_failed(job, status):
            actions += [pods.deletion(pod) for pod in active]
            status |= _ended("Failed", "FailureTarget", _GIVEN_UP, now)
        elif _is_complete(job, status, active):
            status |= _ended("Complete", "SuccessCriteriaMet", _DONE, now)
            status["completionTime"] = stamp(now)
        else:
            wait = _backoff(owned, now)
            missing = _wanted(job, status) - len(active)
            if missing > 0 and wait > 0:
                again = wait
            elif missing > 0:
                actions += [_pod(job)] * missing
            else:
                actions += [pods.deletion(pod) for pod in active[len(active) + missing :]]
        before = job.document.get("status") or {}
        if status != before:
            actions.append(writing_status(JOBS, key, before, status))
        return Outcome(tuple(actions), again)


def _is_over(job: Job) -> bool:
    found = at(job.document, "status.conditions") or ()
    return any(it["type"] in ("Complete", "Failed") and it["status"] == "True" for it in found)


def _counted(job: Job, owned: list[Pod], active: list[Pod], now: float) -> Document:
    before: Document = job.document.get("status") or {}
    counts = {
        "active": len(active),
        "succeeded": max(before.get("succeeded", 0), sum(it.status.phase == "Succeeded" for it in owned)),
        "failed": max(before.get("failed", 0), sum(it.status.phase == "Failed" for it in owned)),
    }
    made: Document = {name: count for name, count in counts.items() if count}
    made |= {"ready": sum(map(pods.is_ready, active)), "terminating": sum(it.is_terminating for it in owned)}
    made["startTime"] = before.get("startTime") or stamp(now)
    return made


def _is_failed(job: Job, status: Document) -> bool:
    limit = LIMIT if job.spec.backoff_limit is None else job.spec.backoff_limit
    return bool(status.get("failed", 0) > limit)


def _is_complete(job: Job, status: Document, active: list[Pod]) -> bool:
    succeeded = status.get("succeeded", 0)
    if job.spec.completions is None and job.spec.parallelism is not None:  # whoever succeeds says that all is done
        return bool(succeeded > 0 and not active)
    return bool(succeeded >= (1 if job.spec.completions is None else job.spec.completions))


def _wanted(job: Job, status: Document) -> int:
    """How many pods shall run now."""
    parallel = 1 if job.spec.parallelism is None else job.spec.parallelism
    if job.spec.suspend:
        return 0
    succeeded: int = status.get("succeeded", 0)
    running: int = status.get("active", 0)
    if job.spec.completions is None and job.spec.parallelism is not None:
        return running if succeeded else parallel
    return min(parallel, (1 if job.spec.completions is None else job.spec.completions) - succeeded)


def _backoff(owned: list[Pod], now: float) -> float:
    """Seconds before a failed pod may be replaced: 10, 20, 40 … after the last failure."""
    failed = [it for it in owned if it.status.phase == "Failed"]
    ends = [
        seconds(at(each, "state.terminated.finishedAt"))
        for it in failed
        for each in at(it.document, "status.containerStatuses") or ()
        if at(each, "state.terminated.finishedAt")
    ]
    if not ends:
        return 0.0
    pause: float = FIRST_BACKOFF * 2.0 ** (len(failed) - 1)
    return max(0.0, max(ends) + min(LONGEST_BACKOFF, pause) - now)


def _pod(job: Job) -> Action:
    template = template_of(job)
    own = {"job-name": job.metadata.name, "controller-uid": job.metadata.uid}
    labels = {**((template.get("metadata") or {}).get("labels") or {}), **own}
    labels |= {f"batch.kubernetes.io/{name}": value for name, value in own.items()}
    return pods.new_pod(template, job, pods.reference("Job", "batch/v1", job), labels=labels)


def _ended(kind: str, first: str, why: tuple[str, str], now: float) -> Document:
    """Both conditions at once; the real one writes the first of them a moment earlier."""
    times = {"lastProbeTime": stamp(now), "lastTransitionTime": stamp(now)}
    told = {"status": "True", "reason": why[0], "message": why[1], **times}
    return {"conditions": [{"type": first, **told}, {"type": kind, **told}]}
