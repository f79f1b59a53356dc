"""The Job controller: runs `parallelism` pods at once until `completions` have succeeded, or too many have failed.

Follows kube-controller-manager 1.35 for completions, parallelism, backoffLimit, activeDeadlineSeconds and suspend, and
deletes a Job ttlSecondsAfterFinished after its end. Not implemented: indexes, pod failure and success policies, and
podReplacementPolicy Failed. One sync of a Job is in sync.py; finished pods are counted by finished_pods.py.
"""

from __future__ import annotations

from typing import ClassVar

from wukong.actions import Action, Delete, Outcome, Patch
from wukong.api.kinds import JOBS, PODS
from wukong.api.meta import LabelSelector
from wukong.api.resources import Key, key_of
from wukong.embedded.actors import pods
from wukong.embedded.actors.events import CreatedPods
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


class Jobs:
    name = "job"
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset({PodRight.CREATE_JOB_PODS, PodRight.DELETE_JOB_PODS})
    watches = (Watch(JOBS), Watch(PODS, keys_of_controller(JOBS)))

    def __init__(self) -> None:
        self._created_pods = CreatedPods(JOBS)
        self._backoffs: dict[str, BackoffRecord] = {}  # by uid of a Job; lost with us, as the real one's are

    def copy_memory(self, source: Jobs, _: State) -> None:
        self._created_pods.copy_memory(source._created_pods)
        self._backoffs = dict(source._backoffs)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        job = state.get(Job, key)
        if job is None or job.metadata.deletion_timestamp is not None:
            return Outcome(tuple(finished_pods.remove_finalizers(_find_remaining_pods(key, state))))
        owned = pods.list_owned(state, job)
        actions: list[Action] = [*self._created_pods.note_created(job, map(key_of, owned))]
        if _find_finish(job) is not None:
            self._backoffs.pop(job.metadata.uid, None)
            deletions, requeue_after = _delete_after_ttl(job, now)
            actions += [*finished_pods.remove_finalizers(owned), *_clear_uncounted(key, job, owned), *deletions]
            return Outcome(tuple(actions), requeue_after)
        sync = JobSync(job, owned, self._backoffs.get(job.metadata.uid, BackoffRecord()), now)
        self._backoffs[job.metadata.uid] = sync.backoff
        pod_actions = sync.run()
        if sync.is_creating:
            self._created_pods.remember(job, map(key_of, owned))
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
