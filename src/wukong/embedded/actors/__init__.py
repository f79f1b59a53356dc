"""Kubernetes' built-in controllers and kubelets, and KubeVirt: one small package each, pure, and true to the real ones.

`make_actors` makes all of them; app/embedded.py and tests hand them to a World, beside Wukong's own controllers. An
actor is a Controller (state/controller.py): it reads the mirror and returns an Outcome, and performs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from wukong.api.node_groups import NodeGroup
from wukong.embedded.actors.autoscaler.cloud_provider import CloudProvider
from wukong.embedded.actors.autoscaler.controller import Autoscaler
from wukong.embedded.actors.autoscaler.node_removal import NodeRemoval
from wukong.embedded.actors.daemon_set.controller import DaemonSets
from wukong.embedded.actors.deployment.controller import Deployments
from wukong.embedded.actors.disruption.controller import Disruption
from wukong.embedded.actors.endpoint_slices.controller import EndpointSlices
from wukong.embedded.actors.garbage_collector.controller import GarbageCollector
from wukong.embedded.actors.horizontal_autoscaler.controller import HorizontalAutoscalers
from wukong.embedded.actors.job.controller import Jobs
from wukong.embedded.actors.karpenter.provisioner import NodeProvisioner
from wukong.embedded.actors.kubelet.behaviour import Behaviour
from wukong.embedded.actors.kubelet.controller import Kubelets
from wukong.embedded.actors.kubelet.durations import PodDurations
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
from wukong.embedded.actors.resource_quota.controller import ResourceQuotas
from wukong.embedded.actors.stateful_set.controller import StatefulSets
from wukong.embedded.actors.taint_eviction.controller import TaintEviction
from wukong.embedded.actors.volumes.controller import Volumes
from wukong.embedded.actors.volumes.ephemeral import EphemeralVolumes
from wukong.embedded.actors.volumes.protection import ClaimProtection, VolumeProtection
from wukong.embedded.actors.volumes.provisioner import Provisioner
from wukong.embedded.store import Server
from wukong.embedded.world.clock import Chance
from wukong.state.controller import Controller

__all__ = ["Behaviour", "make_actors", "make_autoscaler"]


def make_actors(
    server: Server,
    *,
    seed: int = 0,
    behaviour: Behaviour | None = None,
    stuck_pods: frozenset[str] = frozenset(),
    durations: PodDurations = PodDurations(),  # noqa: B008  # never changed
) -> list[Controller]:
    """Every actor of a cluster. `behaviour` is the table of its kubelets, which leave `stuck_pods` as they are, and
    `durations` what is said of how long pods take."""
    chance = Chance(seed)
    return [
        Deployments(),
        ReplicaSets(),
        StatefulSets(),
        DaemonSets(chance.derive("daemonset")),
        Jobs(),
        Disruption(),
        ResourceQuotas(),
        HorizontalAutoscalers(),
        EndpointSlices(),
        Kubelets(behaviour, chance.derive("kubelet"), stuck_pods, durations),
        NodeLifecycle(chance.derive("nodelifecycle")),
        TaintEviction(),
        PodGarbageCollector(chance.derive("podgc")),
        Volumes(),
        Provisioner(chance.derive("provisioner")),
        EphemeralVolumes(),
        ClaimProtection(),
        VolumeProtection(),
        GarbageCollector(server),
        Namespaces(server),
        VirtualMachines(chance.derive("virt-vm")),
        Instances(),
        VirtHandlers(chance.derive("virt-handler")),
        NodeLabels(),
        Migrations(),
        Evacuation(chance.derive("virt-evacuation")),
    ]


def make_autoscaler(groups: Sequence[NodeGroup], *, seed: int = 0, is_idle: bool = False) -> list[Controller]:
    """The actors that a cluster with node groups has besides: who asks for nodes and removes them, and the cloud."""
    if not groups:
        return []
    autoscaler = Autoscaler(groups, Chance(seed).derive("cluster-autoscaler"), is_idle=is_idle)
    karpenter = NodeProvisioner(groups, Chance(seed).derive("karpenter"), is_idle=is_idle)
    return [autoscaler, *([karpenter] if karpenter.node_groups else []), NodeRemoval(), CloudProvider(groups)]
