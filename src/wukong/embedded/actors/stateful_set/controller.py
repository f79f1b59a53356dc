"""The StatefulSet controller: pods with names, created in order, deleted in reverse, updated from the highest ordinal.

    OrderedReady: each waits for its predecessor to be available; Parallel: all at once (updates keep their order)
    RollingUpdate: pods of an old revision go, highest ordinal first down to `partition`, one at a time
    OnDelete: a pod that is deleted comes back with the new revision

Follows kube-controller-manager 1.35 with its default features: maxUnavailable is off there, and has no effect here.
Pods that it adopts are not given the labels they lack. What one sync does is in sync.py.
"""

from __future__ import annotations

from typing import ClassVar

from wukong.actions import DONE, Action, Create, Note, Outcome
from wukong.api.kinds import CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from wukong.api.resources import Key
from wukong.embedded.actors.adoption import claim_pods
from wukong.embedded.actors.backoff import CONTROLLER_BACKOFF
from wukong.embedded.actors.events import find_creation_failure, message_of, note_about
from wukong.embedded.actors.stateful_set.ordinal_index import OrdinalIndex
from wukong.embedded.actors.stateful_set.ordinals import ordinal_of
from wukong.embedded.actors.stateful_set.sync import StatefulSetSync
from wukong.embedded.actors.status_patch import patch_status
from wukong.embedded.actors.watch_keys import keys_of_controller, keys_of_owners
from wukong.embedded.world.objects import StatefulSet
from wukong.state import State
from wukong.state.attempts import Attempt
from wukong.state.controller import PodRight, Watch, no_keys


class StatefulSets:
    name = "statefulset"
    backoff = CONTROLLER_BACKOFF
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset({PodRight.CREATE_ORDINALS, PodRight.DELETE_ORDINALS})
    watches = (
        Watch(STATEFUL_SETS),
        Watch(PODS, keys_of_owners(StatefulSet), is_secondary=True),
        Watch(CONTROLLER_REVISIONS, keys_of_controller(STATEFUL_SETS), is_secondary=True),
        Watch(PERSISTENT_VOLUME_CLAIMS, no_keys),
    )

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        stateful_set = state.get(StatefulSet, key)
        if stateful_set is None:
            return DONE
        if patches := claim_pods(STATEFUL_SETS, stateful_set, state, lambda pod: ordinal_of(stateful_set, pod) >= 0):
            return Outcome(tuple(patches))
        ordered = state.index_of(OrdinalIndex).of(stateful_set)
        sync = StatefulSetSync(stateful_set, state, ordered, now)
        actions: list[Action] = []
        if stateful_set.metadata.deletion_timestamp is None:
            actions += [*sync.history.record_update(), *sync.plan_pods()]
        failure = find_creation_failure(state.attempts.get(self.name, key), actions)
        status, before = sync.build_status(), stateful_set.document.get("status") or {}
        if status != before:
            # Usually the last thing; where pods cannot be created, what keeps them must not keep the status.
            position = len(actions) if failure is None else 0
            actions.insert(position, patch_status(STATEFUL_SETS, key, before, status))
        if failure is not None:
            actions.insert(0, _note_failure(stateful_set, actions, failure))
        if stateful_set.metadata.deletion_timestamp is None:
            actions += sync.history.truncate(set(ordered.revisions))
        requeue_after = ordered.seconds_to_next_available(stateful_set.spec.min_ready_seconds, now)
        return Outcome(tuple(actions), requeue_after)


def _note_failure(stateful_set: StatefulSet, actions: list[Action], failure: Attempt) -> Note:
    """About the first pod that is to be created: it failed last time, for nothing is created behind it."""
    creations = (action for action in actions if isinstance(action, Create) and action.resource == PODS)
    name, owner = next(creations).body["metadata"]["name"], stateful_set.metadata.name
    text = f"create Pod {name} in StatefulSet {owner} failed error: {message_of(failure)}"
    return note_about(STATEFUL_SETS, stateful_set, "FailedCreate", text, is_warning=True)
