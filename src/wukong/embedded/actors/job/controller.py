"""The Job controller: runs `parallelism` pods at once until `completions` have succeeded, or too many have failed.

Follows kube-controller-manager 1.35 for completions, parallelism, backoffLimit, activeDeadlineSeconds and suspend, and
deletes a Job ttlSecondsAfterFinished after its end. Not implemented: indexes, pod failure and success policies, and
podReplacementPolicy Failed. One sync of a Job is in sync.py; finished pods are counted by finished_pods.py.

A Job is synced at once when it is new or its spec has changed. Whatever happens to its pods or its status is looked at
a second later, all of it together (SyncJobBatchPeriod): so a pod follows another after a second.
"""

from __future__ import annotations

from math import inf
from typing import ClassVar, NamedTuple

from wukong.actions import Action, Delete, Outcome, Patch
from wukong.api.kinds import JOBS, PODS
from wukong.api.meta import LabelSelector
from wukong.api.resources import Key, key_of
from wukong.embedded.actors import pods
from wukong.embedded.actors.backoff import JOB_BACKOFF
from wukong.embedded.actors.events import CreatedPods, find_creation_failure, note_failed_create
from wukong.embedded.actors.job import finished_pods
from wukong.embedded.actors.job.finished_pods import BackoffRecord
from wukong.embedded.actors.job.sync import JobSync
from wukong.embedded.actors.status_patch import null_removed_entries, patch_status
from wukong.embedded.actors.watch_keys import keys_of_controller
from wukong.embedded.store.documents import parse_time, value_at
from wukong.embedded.world.objects import Job, Pod
from wukong.ports import Document, PatchBody
from wukong.state import State
from wukong.state.controller import PodRight, Watch

BATCH_SECONDS = 1.0


class NextSync(NamedTuple):
    """When a Job is synced next, unless its spec changes before."""

    uid: str
    generation: int
    at: float


class Jobs:
    name = "job"
    backoff = JOB_BACKOFF
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset({PodRight.CREATE_JOB_PODS, PodRight.DELETE_JOB_PODS})
    watches = (Watch(JOBS), Watch(PODS, keys_of_controller(JOBS), is_secondary=True))

    def __init__(self) -> None:
        self._created_pods = CreatedPods(JOBS)
        self._backoffs: dict[str, BackoffRecord] = {}  # by uid of a Job; lost with us, as the real one's are
        self._next_syncs: dict[Key, NextSync] = {}

    def copy_memory(self, source: Jobs, _: State) -> None:
        self._created_pods.copy_memory(source._created_pods)
        self._backoffs, self._next_syncs = dict(source._backoffs), dict(source._next_syncs)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        job = state.get(Job, key)
        if job is None or job.metadata.deletion_timestamp is not None:
            self._next_syncs.pop(key, None)
            return Outcome(tuple(finished_pods.remove_finalizers(_find_remaining_pods(key, state))))
        wait = self._seconds_to_sync(key, job, now)
        if wait > 0 and state.attempts.get(self.name, key) is None:  # what failed is tried again when its time comes
            return Outcome(requeue_after=wait)
        outcome = self._sync(key, job, state, now)
        after = inf if outcome.requeue_after is None else outcome.requeue_after
        self._next_syncs[key] = NextSync(job.metadata.uid, job.metadata.generation, now + after)
        return outcome

    def _seconds_to_sync(self, key: Key, job: Job, now: float) -> float:
        """Seconds until the Job is synced. If that is not due, a change is why this is called: it brings it forward."""
        planned = self._next_syncs.get(key)
        is_known = planned is not None and planned[:2] == (job.metadata.uid, job.metadata.generation)
        if planned is None or not is_known or planned.at <= now:
            return 0.0
        self._next_syncs[key] = planned._replace(at=min(planned.at, now + BATCH_SECONDS))
        return self._next_syncs[key].at - now

    def _sync(self, key: Key, job: Job, state: State, now: float) -> Outcome:
        owned = pods.list_owned(state, job)
        actions: list[Action] = [*self._created_pods.note_created(job, state)]
        if _find_finish(job) is not None:
            self._backoffs.pop(job.metadata.uid, None)
            deletions, requeue_after = _delete_after_ttl(job, now)
            actions += [*finished_pods.remove_finalizers(owned), *_clear_uncounted(key, job, owned), *deletions]
            return Outcome(tuple(actions), requeue_after)
        sync = JobSync(job, owned, self._backoffs.get(job.metadata.uid, BackoffRecord()), now)
        self._backoffs[job.metadata.uid] = sync.backoff
        pod_actions = sync.run()
        if sync.is_creating:
            self._created_pods.remember(job, state)
        if (failure := find_creation_failure(state.attempts.get(self.name, key), pod_actions)) is not None:
            actions.append(note_failed_create(JOBS, job, failure))
        before = job.document.get("status") or {}
        if sync.status != before:
            null_removed_entries(before, sync.status, "uncountedTerminatedPods")
            actions.append(patch_status(JOBS, key, before, sync.status))
        # Pods are in the status before their finalizers are removed.
        actions += [*finished_pods.remove_finalizers(sync.counted_pods), *pod_actions]
        return Outcome(tuple(actions), sync.requeue_after)


def _find_finish(job: Job) -> Document | None:
    """The condition that says that the Job has finished."""
    conditions = value_at(job.document, "status.conditions") or ()
    finishes = (condition for condition in conditions if condition["type"] in ("Complete", "Failed"))
    return next((condition for condition in finishes if condition["status"] == "True"), None)


def _clear_uncounted(key: Key, job: Job, owned: list[Pod]) -> list[Patch]:
    """Remove the last uids from `uncountedTerminatedPods` once no pod has the finalizer."""
    uncounted = value_at(job.document, "status.uncountedTerminatedPods") or {}
    if not uncounted or any(map(finished_pods.is_tracked, owned)):
        return []
    cleared = {"status": {"uncountedTerminatedPods": dict.fromkeys(uncounted)}}
    return [Patch(JOBS, key, PatchBody("merge", cleared, manager=pods.MANAGER), "status")]


def _delete_after_ttl(job: Job, now: float) -> tuple[tuple[Delete, ...], float | None]:
    """Delete a finished Job, and its pods with it, when its ttlSecondsAfterFinished are over; else say when."""
    finish, ttl = _find_finish(job), value_at(job.document, "spec.ttlSecondsAfterFinished")
    if ttl is None or finish is None:
        return (), None
    left = parse_time(finish["lastTransitionTime"]) + ttl - now
    if left > 0:
        return (), left
    return (Delete(JOBS, key_of(job), uid=job.metadata.uid, propagation="Foreground"),), None


def _find_remaining_pods(key: Key, state: State) -> list[Pod]:
    """Pods of a Job that is gone or being deleted, found by label: they are not counted any more."""
    selector = LabelSelector(match_labels={"batch.kubernetes.io/job-name": key.name})
    keys = state.pods.list_matching(key.namespace, selector)
    return [pod for pod_key in keys if (pod := state.get(Pod, pod_key)) is not None]
