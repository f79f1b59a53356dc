"""The Deployment controller: one ReplicaSet per version, scaled up and down within surge and unavailability.

    paused, or replicas changed ─► scale the ReplicaSets there are, in proportion
    Recreate ─► old to 0 ─► wait for their pods ─► new to all
    RollingUpdate ─► new up as far as it may, else old down as far as they may: one direction per sync

Follows kube-controller-manager 1.35; what one sync does is in sync.py. Orphaned ReplicaSets are adopted. A sync that
writes a ReplicaSet leaves the rest to the next.
"""

from __future__ import annotations

from wukong.actions import DONE, Outcome
from wukong.api.kinds import DEPLOYMENTS, PODS, REPLICA_SETS
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.embedded.actors.adoption import adopt_replica_sets
from wukong.embedded.actors.deployment.sync import DeploymentSync, strategy_of
from wukong.embedded.actors.watch_keys import controller_key, has_same_owners, keys_of_owners
from wukong.embedded.world.objects import Deployment, ReplicaSet
from wukong.state import State
from wukong.state.controller import Watch, each_side_unless


@each_side_unless(has_same_owners)
def _key_of_recreated(pod: Object, state: State) -> list[Key]:
    """The key of the pod's Deployment if that recreates: only then does it wait for the last old pod to go."""
    owner = controller_key(pod, REPLICA_SETS)
    replica_set = state.get(ReplicaSet, owner) if owner is not None else None
    key = controller_key(replica_set, DEPLOYMENTS) if replica_set is not None else None
    deployment = state.get(Deployment, key) if key is not None else None
    is_waiting = deployment is not None and strategy_of(deployment) == "Recreate"
    return [key] if key is not None and is_waiting else []


class Deployments:
    name = "deployment"
    watches = (
        Watch(DEPLOYMENTS),
        Watch(REPLICA_SETS, keys_of_owners(Deployment)),
        Watch(PODS, _key_of_recreated),
    )

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        deployment = state.get(Deployment, key)
        if deployment is None:
            return DONE
        if patches := adopt_replica_sets(deployment, state):
            return Outcome(tuple(patches))
        sync = DeploymentSync(deployment, state, now)
        sync.run()
        return Outcome(tuple(sync.actions), sync.requeue_after)
