"""What the pods on each node take together, as a mirror shows them. Asked by bindings.

An index derived from the mirror: the pods on a node are not read for each that is bound there, which in a worker
process would also write to the memory that it shares with others. It counts for itself, by the rules, for checkers
share no code with the schedulers they judge.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from wukong.api.core import Node, Pod
from wukong.api.kinds import PODS
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.embedded.checkers.placed_requests import PlacedRequests, may_be_resized
from wukong.engine.copy_on_write import CopyOnWriteEntries
from wukong.rules.cluster import NodeInfo
from wukong.rules.resources import Amounts


class NodeLoad:
    """The pods of one node: how many they are, and what they take."""

    __slots__ = ("amounts", "pod_count")

    def __init__(self) -> None:
        self.pod_count = 0
        self.amounts: Amounts = {}

    def fork(self) -> NodeLoad:
        copy = NodeLoad()
        copy.pod_count, copy.amounts = self.pod_count, dict(self.amounts)
        return copy

    def count(self, requests: Amounts, change: int) -> None:
        """Count a pod that takes so much in (1) or out (-1)."""
        self.pod_count += change
        for name, amount in requests.items():
            self.amounts[name] = self.amounts.get(name, 0) + change * amount


class SummedNode(NodeInfo):
    """A node of which only the sums over its pods are known: enough for rules about it alone, host ports excepted."""

    def __init__(self, node: Node, load: NodeLoad) -> None:
        super().__init__(node)
        self._load = load

    @property
    def pod_count(self) -> int:
        return self._load.pod_count

    def sum_requests(self, requests_of: Callable[[Pod], Amounts]) -> Amounts:
        return self._load.amounts


class NodeLoads:
    kinds: ClassVar[frozenset[str]] = frozenset({PODS.group_kind})

    def __init__(self) -> None:
        self._loads: CopyOnWriteEntries[str, NodeLoad] = CopyOnWriteEntries()  # by node
        self._requests = PlacedRequests()

    def without(self, pod: Pod) -> NodeLoad:
        """The load of the node that this pod is on in the mirror, but for the pod itself."""
        load = self._loads[pod.spec.node_name].fork() if pod.spec.node_name in self._loads else NodeLoad()
        if _counts(pod):
            load.count(self._requests.of(pod), -1)
        return load

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        if isinstance(old, Pod) and isinstance(new, Pod) and self._count_alike(old, new):
            return
        for pod, change in ((old, -1), (new, 1)):
            if isinstance(pod, Pod) and _counts(pod):
                self._own(pod.spec.node_name).count(self._requests.of(pod), change)

    def _count_alike(self, old: Pod, new: Pod) -> bool:
        """Whether a pod takes what it took, where it did: most changes are news of its health."""
        if old.spec is not new.spec or old.is_finished != new.is_finished:
            return False
        if not new.spec.node_name or old.status is new.status or not (may_be_resized(old) or may_be_resized(new)):
            return True
        return self._requests.of(old) == self._requests.of(new)

    def _own(self, node: str) -> NodeLoad:
        """A node's load, for changing."""
        if node not in self._loads:
            self._loads[node] = NodeLoad()
        return self._loads.own(node)

    def fork(self) -> NodeLoads:
        copy = NodeLoads()
        copy._loads, copy._requests = self._loads.fork(), self._requests
        return copy


def _counts(pod: Pod) -> bool:
    return bool(pod.spec.node_name) and not pod.is_finished
