"""Kubernetes' built-in controllers and kubelets, and KubeVirt: one small package each, pure, and true to the real ones.

`make_actors` makes all of them; app/embedded.py and tests hand them to a World, beside Wukong's own controllers. An
actor is a Controller (state/controller.py): it reads the mirror and returns an Outcome, and performs nothing.
"""

from __future__ import annotations

from wukong.embedded.actors.daemon_set.controller import DaemonSets
from wukong.embedded.actors.deployment.controller import Deployments
from wukong.embedded.actors.disruption.controller import Disruption
from wukong.embedded.actors.garbage_collector.controller import GarbageCollector
from wukong.embedded.actors.job.controller import Jobs
from wukong.embedded.actors.kubelet.behaviour import Behaviour
from wukong.embedded.actors.kubelet.controller import Kubelets
from wukong.embedded.actors.kubevirt.evacuation import Evacuation
from wukong.embedded.actors.kubevirt.handlers import VirtHandlers
from wukong.embedded.actors.kubevirt.instances import Instances
from wukong.embedded.actors.kubevirt.migrations import Migrations
from wukong.embedded.actors.kubevirt.node_labels import NodeLabels
from wukong.embedded.actors.kubevirt.virtual_machines import VirtualMachines
from wukong.embedded.actors.namespace.controller import Namespaces
from wukong.embedded.actors.node_lifecycle.controller import NodeLifecycle
from wukong.embedded.actors.pod_garbage_collector.controller import PodGarbageCollector
from wukong.embedded.actors.replica_set.controller import ReplicaSets
from wukong.embedded.actors.stateful_set.controller import StatefulSets
from wukong.embedded.actors.taint_eviction.controller import TaintEviction
from wukong.embedded.store import Server
from wukong.embedded.world.clock import Chance
from wukong.state.controller import Controller

__all__ = ["Behaviour", "make_actors"]


def make_actors(
    server: Server, *, seed: int = 0, behaviour: Behaviour | None = None, stuck_pods: frozenset[str] = frozenset()
) -> list[Controller]:
    """Every actor of a cluster. `behaviour` is the table of its kubelets, which leave `stuck_pods` as they are."""
    chance = Chance(seed)
    return [
        Deployments(),
        ReplicaSets(),
        StatefulSets(),
        DaemonSets(chance.derive("daemonset")),
        Jobs(),
        Disruption(),
        Kubelets(behaviour, chance.derive("kubelet"), stuck_pods),
        NodeLifecycle(chance.derive("nodelifecycle")),
        TaintEviction(),
        PodGarbageCollector(chance.derive("podgc")),
        GarbageCollector(server),
        Namespaces(server),
        VirtualMachines(chance.derive("virt-vm")),
        Instances(),
        VirtHandlers(),
        NodeLabels(),
        Migrations(),
        Evacuation(chance.derive("virt-evacuation")),
    ]
