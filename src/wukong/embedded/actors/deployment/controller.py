"""The Deployment controller: one ReplicaSet per version, grown and shrunk within surge and unavailability.

    paused, or replicas changed ─► scale what there is, in proportion
    Recreate ─► old to 0 ─► wait for their pods ─► new to all
    RollingUpdate ─► new up as far as it may, else old down as far as they may: one direction per sync

Follows kube-controller-manager 1.35; what one sync does is in rollout.py. ReplicaSets that nobody owns are
adopted. A sync that writes a ReplicaSet leaves the rest to the next.
"""

from __future__ import annotations

from wukong.actions import DONE, Outcome
from wukong.api.kinds import DEPLOYMENTS, PODS, REPLICA_SETS
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.embedded.actors.adoption import adopted_sets, concerned
from wukong.embedded.actors.deployment.sync import Sync, strategy_of
from wukong.embedded.actors.replica_set.controller import controller_key
from wukong.embedded.world.objects import Deployment, ReplicaSet
from wukong.state import State
from wukong.state.controller import Watch, each_side


@each_side
def _of_pod(pod: Object, state: State) -> list[Key]:
    """Deployments wait for pods only where they recreate: for the last old one to go."""
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
        Watch(REPLICA_SETS, concerned(Deployment)),
        Watch(PODS, _of_pod),
    )

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        deployment = state.get(Deployment, key)
        if deployment is None:
            return DONE
        if patches := adopted_sets(deployment, state):
            return Outcome(tuple(patches))
        sync = Sync(deployment, state, now)
        sync.play()
        return Outcome(tuple(sync.actions), sync.again)
