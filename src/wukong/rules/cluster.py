"""The cluster as the scheduler sees it: nodes, the pods on each, and the objects that guide placement.

Made from a snapshot's objects, changed by add and remove. Read by every rule; decides nothing itself. Finished pods
hold nothing and are left out, as are pods without a node or on a node that is not there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from wukong.api.core import Node, Pod
from wukong.api.objects import Objects
from wukong.rules import promised_volumes
from wukong.rules.ports import HostPort, container_ports_of, host_ports_of
from wukong.rules.resources import Amounts, add_all


@dataclass
class NodeInfo:
    """A node, its pods in the order they came, and the host ports they took.

    The ports are a set, not a count per port: when one of two holders of a port leaves, the port is free, although the
    other still has it. That is how kube-scheduler's cache behaves; only pods bound past the scheduler can get there.
    """

    node: Node
    pods: list[Pod] = field(default_factory=list)
    used_ports: set[HostPort] = field(default_factory=set)
    used_container_ports: set[HostPort] = field(default_factory=set)  # without those of sidecars

    @property
    def name(self) -> str:
        return self.node.metadata.name

    @property
    def pod_count(self) -> int:
        return len(self.pods)

    def sum_requests(self, requests_of: Callable[[Pod], Amounts]) -> Amounts:
        """What its pods take together; `requests_of` gives what each of them takes."""
        return add_all(map(requests_of, self.pods))

    def add(self, pod: Pod) -> None:
        self.pods.append(pod)
        self.used_ports |= host_ports_of(pod)
        self.used_container_ports |= container_ports_of(pod)

    def remove(self, pod: Pod) -> None:
        self.pods = [placed for placed in self.pods if placed.key != pod.key]
        self.used_ports -= host_ports_of(pod)
        self.used_container_ports -= container_ports_of(pod)

    def copy(self) -> NodeInfo:
        return NodeInfo(self.node, list(self.pods), set(self.used_ports), set(self.used_container_ports))


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
        self.storage_classes = {entry.metadata.name: entry for entry in objects.storage_classes}
        self.csi_nodes = {entry.metadata.name: entry for entry in objects.csi_nodes}
        self.csi_drivers = {entry.metadata.name: entry for entry in objects.csi_drivers}
        self.csi_storage_capacities = sorted(objects.csi_storage_capacities, key=lambda entry: entry.key)
        self.volume_attachments = list(objects.volume_attachments)
        self._stored = self.claims, self.volumes
        self._promises: dict[str, promised_volumes.Promise] = {}  # pod → what its claims got when it was placed
        for pod in objects.pods:
            if not pod.is_finished and pod.spec.node_name in self.nodes:
                self.add(pod, pod.spec.node_name)

    def add(self, pod: Pod, node_name: str) -> None:
        """The pod now runs on this node, and its claims get their volumes there."""
        promise = promised_volumes.promise_volumes(self, pod, self.nodes[node_name].node)
        if promise is not None:
            self._promises[pod.key] = promise
            self._apply_promises()
        self.nodes[node_name].add(pod)

    def remove(self, key: str) -> None:
        """The pod `namespace/name` is gone. It is a mistake to remove one that is not there."""
        info, pod = self.find(key)
        info.remove(pod)
        if self._promises.pop(key, None) is not None:
            self._apply_promises()

    def _apply_promises(self) -> None:
        claims, volumes = self._stored
        self.claims, self.volumes = dict(claims), dict(volumes)
        for promise in self._promises.values():
            self.claims |= promise.claims
            self.volumes |= promise.volumes

    def find(self, key: str) -> tuple[NodeInfo, Pod]:
        """The pod `namespace/name` and where it runs."""
        for info in self.nodes.values():
            for pod in info.pods:
                if pod.key == key:
                    return info, pod
        raise KeyError(key)
