"""How long pods take to start and to stop where somebody says so: for all pods, or for those of one workload.

Read by controller.py; scenarios and `wukong sim run --start-seconds` say it (scenario/format/durations.py). Of what is
said, the most precise counts: for all pods, by annotations of the node, of the pod, for the workload by its name.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from wukong.api.apps import ReplicaSet
from wukong.api.core import Pod
from wukong.api.kinds import DEPLOYMENTS, KINDS, PODS, REPLICA_SETS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from wukong.api.meta import controller_of
from wukong.api.resources import Key, refers_to
from wukong.embedded.actors.kubelet.behaviour import Behaviour
from wukong.state import State

HASH_LABEL = "pod-template-hash"
Workload = tuple[str, Key]  # its group and kind, and its key


class Durations(msgspec.Struct, frozen=True):
    """Seconds; None is what the table of the kubelets says."""

    start_seconds: float | None = None
    stop_seconds: float | None = None

    def apply_to(self, behaviour: Behaviour) -> Behaviour:
        said = {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}
        return msgspec.structs.replace(behaviour, **said) if said else behaviour


class PodDurations(msgspec.Struct, frozen=True):
    """What is said of all pods, and of the pods of each workload."""

    of_all: Durations = Durations()
    by_workload: Mapping[Workload, Durations] = {}

    def apply_by_workload(self, behaviour: Behaviour, pod: Pod, state: State) -> Behaviour:
        """The row of this pod, with what is said of its workload."""
        if not self.by_workload:
            return behaviour
        for workload in reversed(list_workloads(pod, state)):  # what is nearer to the pod is said last
            if (durations := self.by_workload.get(workload)) is not None:
                behaviour = durations.apply_to(behaviour)
        return behaviour


def list_workloads(pod: Pod, state: State) -> list[Workload]:
    """The pod itself, its controller, and that one's: a Deployment, or the virtual machine of an instance."""
    namespace, owner = pod.metadata.namespace, controller_of(pod.metadata)
    workloads = [(PODS.group_kind, Key(namespace, pod.metadata.name))]
    if owner is None:
        return workloads
    is_instance = refers_to(owner, VIRTUAL_MACHINE_INSTANCES)  # named as its virtual machine
    kind = VIRTUAL_MACHINES.group_kind if is_instance else KINDS.group_kind_named(owner.kind, owner.api_version)
    workloads.append((kind, Key(namespace, owner.name)))
    if refers_to(owner, REPLICA_SETS) and (name := _find_deployment(pod, owner.name, state)):
        workloads.append((DEPLOYMENTS.group_kind, Key(namespace, name)))
    return workloads


def _find_deployment(pod: Pod, replica_set: str, state: State) -> str:
    """By the ReplicaSet, or by how Deployments name theirs: kubelets that run as a process of their own mirror none."""
    mirrored = state.get(ReplicaSet, Key(pod.metadata.namespace, replica_set))
    if mirrored is not None:
        owner = controller_of(mirrored.metadata)
        return owner.name if owner is not None and refers_to(owner, DEPLOYMENTS) else ""
    suffix = f"-{pod.metadata.labels.get(HASH_LABEL, '')}"
    return replica_set.removesuffix(suffix) if len(suffix) > 1 and replica_set.endswith(suffix) else ""
