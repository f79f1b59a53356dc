"""How many nodes of each zone are ready, and how fast those that are not are tainted NoExecute.

    some are ready                       one node in 10 s
    three or more, and 55 % or more not  one node in 100 s where a zone has more than 50 nodes, else none at all
    none of this zone, some of others    one node in 10 s
    none anywhere                        none at all: rather the control plane is cut off than every node dead

A derived index of the mirror (state/derived_indexes.py), read by controller.py. The numbers are
kube-controller-manager's defaults.
"""

from __future__ import annotations

from math import inf
from typing import ClassVar

from wukong.api.kinds import NODES
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.embedded.store.documents import condition_of
from wukong.embedded.world.objects import Node
from wukong.engine.copy_on_write import CopyOnWriteDicts

_NORMAL, _SLOW = 10.0, 100.0  # seconds between two nodes of a zone: 0.1 and 0.01 nodes per second
_MOST, _FEW, _LARGE = 0.55, 2, 50
_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"


class ZoneIndex:
    kinds: ClassVar[frozenset[str]] = frozenset({NODES.group_kind})

    def __init__(self) -> None:
        self.nodes: CopyOnWriteDicts[str, str, None] = CopyOnWriteDicts()  # zone → its nodes
        self.unready: CopyOnWriteDicts[str, str, None] = CopyOnWriteDicts()  # zone → those that are not ready

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        if isinstance(old, Node):
            _discard(self.nodes, zone_of(old), key.name)
            _discard(self.unready, zone_of(old), key.name)
        if isinstance(new, Node):
            self.nodes.own(zone_of(new))[key.name] = None
            if not is_ready(new):
                self.unready.own(zone_of(new))[key.name] = None

    def fork(self) -> ZoneIndex:
        copy = ZoneIndex()
        copy.nodes, copy.unready = self.nodes.fork(), self.unready.fork()
        return copy

    @property
    def is_all_unready(self) -> bool:
        """Whether no node of any zone is ready."""
        return all(len(self.unready.get(zone, ())) == len(nodes) for zone, nodes in self.nodes.items())

    def seconds_between_taints(self, zone: str) -> float:
        """Seconds between two nodes of this zone; infinity if none shall be tainted."""
        if self.is_all_unready:
            return inf
        size, unready = len(self.nodes.get(zone, ())), len(self.unready.get(zone, ()))
        is_mostly_unready = unready < size and unready > _FEW and unready / size >= _MOST
        return _NORMAL if not is_mostly_unready else _SLOW if size > _LARGE else inf


def zone_of(node: Object) -> str:
    labels = node.metadata.labels
    return f"{labels.get(_REGION, '')}:{labels.get(_ZONE, '')}"


def is_ready(node: Node) -> bool:
    return (condition_of(node.document, "Ready") or {}).get("status") == "True"


def _discard(by_zone: CopyOnWriteDicts[str, str, None], zone: str, name: str) -> None:
    if name in by_zone.get(zone, ()):
        del by_zone.own(zone)[name]
        by_zone.drop_if_empty(zone)
