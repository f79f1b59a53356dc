"""The typed content of a snapshot: objects of the kinds that placement reads, by kind.

Filled by cluster.files and cluster.capture; read by the engine, the rules and admission.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar, cast

from wukong.api.apps import DaemonSet, Deployment, PodDisruptionBudget, ReplicaSet, StatefulSet
from wukong.api.core import (
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PriorityClass,
    ReplicationController,
    Service,
)
from wukong.api.kind_table import Kind
from wukong.api.kinds import KINDS, group_kind_of
from wukong.api.meta import Object
from wukong.api.placement import ClusterPlacementPolicy, PlacementPolicy
from wukong.api.storage import CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment

O = TypeVar("O", bound=Object)  # noqa: E741


class _ListOf(Generic[O]):
    """An attribute of Objects: the list of one kind, with its type."""

    def __init__(self, struct: type[O]) -> None:
        self._struct = struct

    def __get__(self, objects: Objects, owner: type[Objects]) -> list[O]:
        return cast(list[O], objects.of(KINDS.group_kind_of(self._struct)))

    def __set__(self, objects: Objects, items: Iterable[O]) -> None:
        objects.of(KINDS.group_kind_of(self._struct))[:] = items


class Objects:
    """Objects by kind, in the order they were read: `Objects(nodes=[…], pods=[…])`.

    The attributes are what the engine reads, with their types; other kinds of the table are reached by `of`.
    """

    nodes = _ListOf(Node)
    pods = _ListOf(Pod)
    namespaces = _ListOf(Namespace)
    services = _ListOf(Service)
    replication_controllers = _ListOf(ReplicationController)
    replica_sets = _ListOf(ReplicaSet)
    stateful_sets = _ListOf(StatefulSet)
    deployments = _ListOf(Deployment)
    daemon_sets = _ListOf(DaemonSet)
    pod_disruption_budgets = _ListOf(PodDisruptionBudget)
    priority_classes = _ListOf(PriorityClass)
    persistent_volume_claims = _ListOf(PersistentVolumeClaim)
    persistent_volumes = _ListOf(PersistentVolume)
    storage_classes = _ListOf(StorageClass)
    csi_nodes = _ListOf(CSINode)
    csi_drivers = _ListOf(CSIDriver)
    csi_storage_capacities = _ListOf(CSIStorageCapacity)
    volume_attachments = _ListOf(VolumeAttachment)
    placement_policies = _ListOf(PlacementPolicy)
    cluster_placement_policies = _ListOf(ClusterPlacementPolicy)

    def __init__(self, **lists: Iterable[Object]) -> None:
        self._lists: dict[str, list[Object]] = {}
        for name, items in lists.items():
            if not isinstance(vars(Objects).get(name), _ListOf):
                raise TypeError(f"Objects has no list {name!r}")
            setattr(self, name, items)

    def of(self, group_kind: str) -> list[Object]:
        """Return the list that holds objects of this group and kind. KeyError if no such kind is in the table."""
        KINDS[group_kind]
        return self._lists.setdefault(group_kind, [])

    def add(self, subject: Object) -> None:
        self.of(group_kind_of(subject)).append(subject)

    def everything(self) -> list[Object]:
        """Return all objects, kind by kind in the order of the table."""
        return [subject for kind in KINDS.list_deciding() for subject in self.of(kind.group_kind)]

    def missing_kinds(self) -> list[Kind]:
        """Return the kinds without any object, in the order of the table."""
        return [kind for kind in KINDS.list_deciding() if not self.of(kind.group_kind)]

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, Objects):
            return NotImplemented
        return self._without_empty_lists() == other._without_empty_lists()

    __hash__ = None  # type: ignore[assignment]

    def _without_empty_lists(self) -> dict[str, list[Object]]:
        return {group_kind: items for group_kind, items in self._lists.items() if items}
