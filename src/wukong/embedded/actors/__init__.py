"""Kubernetes' built-in controllers and kubelets, each small, pure, and as facts about the real ones say.

`built_in` gives all of them; app/embedded.py and tests hand them to a World, beside Wukong's own controllers. An actor
is a Controller (state/controller.py): it reads the mirror and returns an Outcome, and performs nothing.
"""

from __future__ import annotations

from wukong.embedded.actors.daemon_set.controller import DaemonSets
from wukong.embedded.actors.deployment.controller import Deployments
from wukong.embedded.actors.disruption.controller import Disruption
from wukong.embedded.actors.garbage.controller import Garbage, Namespaces, PodGarbage
from wukong.embedded.actors.job.controller import Jobs
from wukong.embedded.actors.kubelet.behaviour import Behaviour
from wukong.embedded.actors.kubelet.controller import Kubelets
from wukong.embedded.actors.node_lifecycle.controller import NodeLifecycle, TaintEviction
from wukong.embedded.actors.replica_set.controller import ReplicaSets
from wukong.embedded.actors.stateful_set.controller import StatefulSets
from wukong.embedded.store import Server
from wukong.embedded.world.clock import Chance
from wukong.state.controller import Controller

__all__ = ["Behaviour", "built_in"]


def built_in(
    server: Server, *, seed: int = 0, behaviour: Behaviour | None = None, held: frozenset[str] = frozenset()
) -> list[Controller]:
    """Every actor of a cluster. `behaviour` is the table its kubelets go by; `held` pods they leave as they are."""
    chance = Chance(seed)
    return [
        Deployments(),
        ReplicaSets(),
        StatefulSets(),
        DaemonSets(),
        Jobs(),
        Disruption(),
        Kubelets(behaviour, chance.named("kubelet"), held),
        NodeLifecycle(chance.named("nodelifecycle")),
        TaintEviction(),
        PodGarbage(),
        Garbage(server),
        Namespaces(server),
    ]
