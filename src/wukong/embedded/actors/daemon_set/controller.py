"""The DaemonSet controller: one pod on every eligible node, created, maintained, counted and brought up to date.

Follows kube-controller-manager 1.35: pods name their node by affinity and tolerate what daemons tolerate; the scheduler
binds them. Pods on ineligible nodes are deleted, unless only a NoSchedule taint speaks against them. Bound pods of
nodes that are gone are left to the pod garbage collector. Revisions are not stored as objects: a hash of the template
is enough. Failed pods are replaced at once, where the real one waits a little longer each time.

It hears of nodes only where a pod has to come or go, or one is counted as misscheduled (syncNodeUpdate). So a taint
that only keeps away changes no status, and nobody tells it of a node that is gone: its pod's deletion does. A status of
a loaded cluster that is so late stays as it is until something happens to the pods: the real controller would not have
counted again either.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import ClassVar

from wukong.actions import DONE, Action, Outcome
from wukong.api.kinds import DAEMON_SETS, NODES, PODS
from wukong.api.meta import controller_of
from wukong.api.resources import Key, key_of
from wukong.embedded.actors.adoption import claim_pods
from wukong.embedded.actors.backoff import CONTROLLER_BACKOFF
from wukong.embedded.actors.controller_revisions import find_revision_hash
from wukong.embedded.actors.daemon_set.daemon_index import DaemonIndex
from wukong.embedded.actors.daemon_set.eligibility import assess_node
from wukong.embedded.actors.daemon_set.pods import create_pod
from wukong.embedded.actors.daemon_set.sync import DaemonSetSync
from wukong.embedded.actors.events import CreatedPods, delete_pods, find_creation_failure, note_failed_create
from wukong.embedded.actors.replica_set.controller import BURST
from wukong.embedded.actors.status_patch import patch_status
from wukong.embedded.actors.watch_keys import keys_of_owners
from wukong.embedded.store.documents import value_at
from wukong.embedded.world.clock import Chance
from wukong.embedded.world.objects import DaemonSet, Node
from wukong.state import Change, State
from wukong.state.controller import KeysByTrait, PodRight, Watch, controller_kind

_keys_of_pod = keys_of_owners(DaemonSet)


def _keys_of_node(change: Change, state: State) -> list[Key]:
    """The DaemonSets that a new node concerns, or one whose labels or taints have changed."""
    old, node = change.old, change.new
    if not isinstance(node, Node) or (isinstance(old, Node) and _facts_of(old) == _facts_of(node)):
        return []
    owners = {owner.uid for pod in state.pods_on(node.metadata.name) if (owner := controller_of(pod.metadata))}
    return [
        key_of(daemon_set)
        for daemon_set in state.all(DaemonSet)
        if _is_concerned(daemon_set, node, has_pod=daemon_set.metadata.uid in owners)
    ]


def _facts_of(node: Node) -> tuple[object, ...]:
    return node.metadata.labels, node.spec.taints


def _is_concerned(daemon_set: DaemonSet, node: Node, *, has_pod: bool) -> bool:
    should_run, may_stay = assess_node(node, daemon_set)
    if not has_pod:
        return should_run
    return not may_stay or bool(value_at(daemon_set.document, "status.numberMisscheduled"))


class DaemonSets:
    name = "daemonset"
    backoff = CONTROLLER_BACKOFF
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset({PodRight.CREATE_ONE_PER_NODE, PodRight.DELETE_DAEMON_PODS})

    def __init__(self, chance: Chance | None = None) -> None:
        self.chance = chance or Chance()
        self.watches = (
            Watch(DAEMON_SETS),
            Watch(PODS, KeysByTrait(controller_kind, DAEMON_SETS.kind, self._find_keys_of_pod), is_secondary=True),
            Watch(NODES, self._find_keys_of_node),
        )
        self._created_pods = CreatedPods(DAEMON_SETS)
        self._notified: set[Key] = set()  # of a change of a pod or node, since the cluster was loaded

    def copy_memory(self, source: DaemonSets, _: State) -> None:
        self._created_pods.copy_memory(source._created_pods)
        self._notified = set(source._notified)

    def _find_keys_of_pod(self, change: Change, state: State) -> Iterable[Key]:
        keys = list(_keys_of_pod(change, state))
        self._notified.update(keys)
        return keys

    def _find_keys_of_node(self, change: Change, state: State) -> Iterable[Key]:
        keys = _keys_of_node(change, state)
        if change.old is not None:
            self._notified.update(keys)
        return keys

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        daemon_set = state.get(DaemonSet, key)
        if daemon_set is None or daemon_set.metadata.deletion_timestamp is not None:
            self._notified.discard(key)
            return DONE
        actions: list[Action] = [*self._created_pods.note_created(daemon_set, state)]
        if patches := claim_pods(DAEMON_SETS, daemon_set, state):
            return Outcome((*actions, *patches))
        revision, daemons = find_revision_hash(daemon_set, state), state.index_of(DaemonIndex).of(daemon_set)
        draw = partial(self.chance.share, key, now)
        sync = DaemonSetSync(daemon_set, revision, daemons, state, now, draw)
        plan = sync.plan()
        if plan.nodes_to_fill:
            self._created_pods.remember(daemon_set, state)
        creations = [create_pod(daemon_set, node, revision) for node in plan.nodes_to_fill[:BURST]]
        failure = find_creation_failure(state.attempts.get(self.name, key), creations)
        if failure is not None:
            actions.append(note_failed_create(DAEMON_SETS, daemon_set, failure))
        pod_actions = [*creations, *delete_pods(DAEMON_SETS, daemon_set, plan.pods_to_delete[:BURST])]
        status_patches: list[Action] = []
        status, before = sync.build_status(), daemon_set.document.get("status") or {}
        is_loaded = key not in self._notified and not plan.nodes_to_fill and not plan.pods_to_delete
        if status != before and not (is_loaded and before == sync.build_status_before_taints()):
            status_patches.append(patch_status(DAEMON_SETS, key, before, status))
        # Usually the last thing; where pods cannot be created, what keeps them must not keep the status.
        actions += [*pod_actions, *status_patches] if failure is None else [*status_patches, *pod_actions]
        requeue_after = daemons.seconds_to_next_available(daemon_set.spec.min_ready_seconds, now)
        return Outcome(tuple(actions), requeue_after)
