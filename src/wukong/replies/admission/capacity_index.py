"""How many pods of each group are on spot and on on-demand nodes, or were told to go there. A derived index.

A group is what one controller owns: the pods of a ReplicaSet, of a StatefulSet. Pods that nobody owns are a group with
those of their namespace that have the same labels. A bound pod counts where it is, one that waits by what its mark
says; pods that have ended or are being deleted count no more. Read by pods.py.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from wukong.api.core import Node, Pod
from wukong.api.kinds import NODES, PODS
from wukong.api.meta import Object, ObjectMeta, controller_of
from wukong.api.resources import Key
from wukong.engine.copy_on_write import CopyOnWriteDicts
from wukong.engine.layered_dict import LayeredDict
from wukong.placement.capacity import is_spot
from wukong.placement.pods import ON_DEMAND, SPOT, CapacityCounts, read_mark
from wukong.replies.admission.decisions import NO_PODS, NONCE, Group, add_pods

_MOST_ARRIVALS = 1 << 14  # remembered: those of the last seconds


class _Placed(NamedTuple):
    group: Group
    decided: str  # by its mark; "" for nothing


class CapacityIndex:
    kinds: ClassVar[frozenset[str]] = frozenset((PODS.group_kind, NODES.group_kind))

    def __init__(self) -> None:
        self._counts: LayeredDict[Group, CapacityCounts] = LayeredDict()
        self._capacities: LayeredDict[str, str] = LayeredDict()  # by node
        self._placed: CopyOnWriteDicts[str, Key, _Placed] = CopyOnWriteDicts()  # by node: the pods that count
        self._arrivals: list[str] = []  # nonces of pods that came, the latest last
        self._forgotten = 0  # arrivals dropped from the beginning

    def of(self, group: Group) -> CapacityCounts:
        return self._counts.get(group, NO_PODS)

    @property
    def arrival_count(self) -> int:
        """How many pods with a nonce came so far."""
        return self._forgotten + len(self._arrivals)

    def arrivals_since(self, count: int) -> list[str]:
        """The nonces of the pods that came after so many others, be they gone again or not; of many the latest."""
        return self._arrivals[max(0, count - self._forgotten) :]

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        if group_kind == NODES.group_kind:
            self._note_node(key.name, new)
            return
        if isinstance(old, Pod):
            self._count_pod(key, old, -1)
        if isinstance(new, Pod):
            self._count_pod(key, new, 1)
            if old is None:
                self._note_arrival(new.metadata)

    def _count_pod(self, key: Key, pod: Pod, number: int) -> None:
        if pod.is_finished or pod.is_terminating:
            return
        node, placed = pod.spec.node_name, _Placed(group_of(key.namespace, pod.metadata), _decided_of(pod.metadata))
        if node:
            pods = self._placed.own(node)
            if number > 0:
                pods[key] = placed
            else:
                pods.pop(key, None)
                self._placed.drop_if_empty(node)
        self._count(placed.group, self._capacities.get(node, placed.decided), number)

    def _note_node(self, name: str, node: Object | None) -> None:
        before = self._capacities.get(name)
        after = None if not isinstance(node, Node) else SPOT if is_spot(node.metadata.labels) else ON_DEMAND
        if before == after:
            return
        for group, decided in self._placed.get(name, {}).values():
            self._count(group, before or decided, -1)
            self._count(group, after or decided, 1)
        if after is None:
            del self._capacities[name]
        else:
            self._capacities[name] = after

    def _count(self, group: Group, capacity: str, number: int) -> None:
        counts = add_pods(self.of(group), capacity, number)
        if counts == NO_PODS:
            self._counts.pop(group, None)
        else:
            self._counts[group] = counts

    def _note_arrival(self, meta: ObjectMeta) -> None:
        nonce = meta.annotations.get(NONCE)
        if nonce:
            self._arrivals.append(nonce)
            if len(self._arrivals) > _MOST_ARRIVALS:
                del self._arrivals[: _MOST_ARRIVALS // 2]
                self._forgotten += _MOST_ARRIVALS // 2

    def fork(self) -> CapacityIndex:
        copy = CapacityIndex()
        copy._counts, copy._capacities = self._counts.fork(), self._capacities.fork()
        copy._placed = self._placed.fork()
        copy._arrivals, copy._forgotten = list(self._arrivals), self._forgotten
        return copy


def group_of(namespace: str, meta: ObjectMeta) -> Group:
    """The group of a pod in this namespace."""
    owner = controller_of(meta)
    return owner.uid if owner is not None and owner.uid else (namespace, tuple(sorted(meta.labels.items())))


def _decided_of(meta: ObjectMeta) -> str:
    mark = read_mark(meta.annotations)
    return mark.capacity if mark is not None else ""
