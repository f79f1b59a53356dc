"""The Deployment controller: one ReplicaSet per version, scaled up and down within surge and unavailability.

    paused, or replicas changed ─► scale the ReplicaSets there are, in proportion
    Recreate ─► old to 0 ─► wait for their pods ─► new to all
    RollingUpdate ─► new up as far as it may, else old down as far as they may: one direction per sync

Follows kube-controller-manager 1.35; what one sync does is in sync.py. Orphaned ReplicaSets are adopted. A sync that
writes a ReplicaSet leaves the rest to the next.
"""

from __future__ import annotations

from typing import ClassVar

from wukong.actions import DONE, Outcome
from wukong.api.kinds import DEPLOYMENTS, PODS, REPLICA_SETS
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.embedded.actors.adoption import adopt_replica_sets
from wukong.embedded.actors.backoff import CONTROLLER_BACKOFF
from wukong.embedded.actors.deployment.sync import DeploymentSync, strategy_of
from wukong.embedded.actors.watch_keys import controller_key, has_same_owners, keys_of_owners
from wukong.embedded.world.objects import Deployment, ReplicaSet
from wukong.state import State
from wukong.state.controller import Watch, each_side_unless


class RecreateIndex:
    """The Deployments with the strategy Recreate. A derived index of the mirror: most clusters have none."""

    kinds: ClassVar[frozenset[str]] = frozenset({DEPLOYMENTS.group_kind})

    def __init__(self) -> None:
        self.keys: set[Key] = set()

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        if isinstance(new, Deployment) and strategy_of(new) == "Recreate":
            self.keys.add(key)
        else:
            self.keys.discard(key)

    def fork(self) -> RecreateIndex:
        copy = RecreateIndex()
        copy.keys = set(self.keys)
        return copy


@each_side_unless(has_same_owners)
def _key_of_recreated(pod: Object, state: State) -> list[Key]:
    """The key of the pod's Deployment if that recreates: only then does it wait for the last old pod to go."""
    recreating = state.index_of(RecreateIndex).keys
    if not recreating:
        return []
    owner = controller_key(pod, REPLICA_SETS)
    replica_set = state.get(ReplicaSet, owner) if owner is not None else None
    key = controller_key(replica_set, DEPLOYMENTS) if replica_set is not None else None
    return [key] if key is not None and key in recreating else []


class Deployments:
    name = "deployment"
    backoff = CONTROLLER_BACKOFF
    watches = (
        Watch(DEPLOYMENTS),
        Watch(REPLICA_SETS, keys_of_owners(Deployment), is_secondary=True),
        Watch(PODS, _key_of_recreated, is_secondary=True),
    )

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        deployment = state.get(Deployment, key)
        if deployment is None:
            return DONE
        if patches := adopt_replica_sets(deployment, state):
            return Outcome(tuple(patches))
        state.index_of(RecreateIndex)  # made now, so that a fork of the world has it
        sync = DeploymentSync(deployment, state, now)
        sync.run()
        return Outcome(tuple(sync.actions), sync.requeue_after)
