"""Claims, volumes and what the storage API says, as decisions read them: a part of `Facts`.

An immutable value like those; `with_changes` gives another one that shares what did not change. Made by facts.py,
kept current by the mirror's live snapshot. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from wukong.api.core import PersistentVolume, PersistentVolumeClaim
from wukong.api.kinds import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
)
from wukong.api.meta import Object
from wukong.api.objects import Objects
from wukong.api.resources import Key, key_of
from wukong.api.storage import CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment
from wukong.semantics.volume_claims import class_of_volume

# group and kind → the table of VolumeFacts that holds its objects
TABLES = {
    PERSISTENT_VOLUME_CLAIMS.group_kind: "claims",
    PERSISTENT_VOLUMES.group_kind: "volumes",
    STORAGE_CLASSES.group_kind: "classes",
    CSI_NODES.group_kind: "csi_nodes",
    CSI_DRIVERS.group_kind: "drivers",
    CSI_STORAGE_CAPACITIES.group_kind: "capacities",
    VOLUME_ATTACHMENTS.group_kind: "attachments",
}
Changes = Mapping[str, Mapping[Key, Object | None]]  # group and kind → key → the object, or None if it is gone


@dataclass(frozen=True)
class VolumeFacts:
    claims: Mapping[Key, PersistentVolumeClaim] = field(default_factory=dict)
    volumes: Mapping[Key, PersistentVolume] = field(default_factory=dict)
    classes: Mapping[Key, StorageClass] = field(default_factory=dict)
    csi_nodes: Mapping[Key, CSINode] = field(default_factory=dict)
    drivers: Mapping[Key, CSIDriver] = field(default_factory=dict)
    capacities: Mapping[Key, CSIStorageCapacity] = field(default_factory=dict)
    attachments: Mapping[Key, VolumeAttachment] = field(default_factory=dict)

    def find_volume(self, name: str) -> PersistentVolume | None:
        return self.volumes.get(Key("", name))

    def find_class(self, name: str) -> StorageClass | None:
        return self.classes.get(Key("", name))

    @cached_property
    def volumes_by_class(self) -> dict[str, list[PersistentVolume]]:
        by_class: dict[str, list[PersistentVolume]] = {}
        for volume in self.volumes.values():
            by_class.setdefault(class_of_volume(volume), []).append(volume)
        return by_class

    @cached_property
    def attachments_by_node(self) -> dict[str, list[VolumeAttachment]]:
        by_node: dict[str, list[VolumeAttachment]] = {}
        for attachment in self.attachments.values():
            by_node.setdefault(attachment.spec.node_name, []).append(attachment)
        return by_node

    @cached_property
    def sorted_capacities(self) -> list[CSIStorageCapacity]:
        return [capacity for _, capacity in sorted(self.capacities.items())]

    def with_changes(self, changes: Changes) -> VolumeFacts:
        tables: dict[str, Any] = {}
        for group_kind, changed in changes.items():
            table = dict(getattr(self, TABLES[group_kind]))
            for key, subject in changed.items():
                if subject is None:
                    table.pop(key, None)
                else:
                    table[key] = subject
            tables[TABLES[group_kind]] = table
        return replace(self, **tables)


def read_volume_facts(objects: Objects) -> VolumeFacts:
    tables: dict[str, Any] = {table: _by_key(objects.of(group_kind)) for group_kind, table in TABLES.items()}
    return VolumeFacts(**tables)


def _by_key(subjects: Iterable[Object]) -> dict[Key, Object]:
    return {key_of(subject): subject for subject in subjects}
