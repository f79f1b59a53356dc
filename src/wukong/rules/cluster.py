"""The cluster as the scheduler sees it: nodes, the pods on each, and the objects that guide placement.

Made from a snapshot's objects, changed by add and remove. Read by every rule; decides nothing itself. Finished pods
hold nothing and are left out, as are pods without a node or on a node that is not there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from wukong.api.core import Node, Pod
from wukong.api.objects import Objects
from wukong.rules.ports import HostPort, host_ports_of


@dataclass
class NodeInfo:
    """A node, its pods in the order they came, and the host ports they took.

    The ports are a set, not a count per port: when one of two holders of a port leaves, the port is free, although the
    other still has it. That is how kube-scheduler's cache behaves; only pods bound past the scheduler can get there.
    """

    node: Node
    pods: list[Pod] = field(default_factory=list)
    used_ports: set[HostPort] = field(default_factory=set)

    @property
    def name(self) -> str:
        return self.node.metadata.name

    def add(self, pod: Pod) -> None:
        self.pods.append(pod)
        self.used_ports |= host_ports_of(pod)

    def remove(self, pod: Pod) -> None:
        self.pods = [placed for placed in self.pods if placed.key != pod.key]
        self.used_ports -= host_ports_of(pod)

    def copy(self) -> NodeInfo:
        return NodeInfo(self.node, list(self.pods), set(self.used_ports))


class Cluster:
    """Everything a decision depends on besides the pod and the profile."""

    def __init__(self, objects: Objects) -> None:
        self.nodes: dict[str, NodeInfo] = {node.metadata.name: NodeInfo(node) for node in objects.nodes}
        self.namespaces = {namespace.metadata.name: namespace.metadata.labels for namespace in objects.namespaces}
        self.services = list(objects.services)
        self.replication_controllers = list(objects.replication_controllers)
        self.replica_sets = list(objects.replica_sets)
        self.stateful_sets = list(objects.stateful_sets)
        self.pod_disruption_budgets = list(objects.pod_disruption_budgets)
        self.claims = {claim.key: claim for claim in objects.persistent_volume_claims}
        self.volumes = {volume.metadata.name: volume for volume in objects.persistent_volumes}
        for pod in objects.pods:
            if not pod.is_finished and pod.spec.node_name in self.nodes:
                self.add(pod, pod.spec.node_name)

    def add(self, pod: Pod, node_name: str) -> None:
        """The pod now runs on this node."""
        self.nodes[node_name].add(pod)

    def remove(self, key: str) -> None:
        """The pod `namespace/name` is gone. It is a mistake to remove one that is not there."""
        info, pod = self.find(key)
        info.remove(pod)

    def find(self, key: str) -> tuple[NodeInfo, Pod]:
        """The pod `namespace/name` and where it runs."""
        for info in self.nodes.values():
            for pod in info.pods:
                if pod.key == key:
                    return info, pod
        raise KeyError(key)
