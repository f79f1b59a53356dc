"""The storage API group: classes of volumes, what drivers can do, and how much storage is left where.

Read by the engine, the rules and the embedded cluster. Only what decides placement, or binds claims, is modelled.
"""

from __future__ import annotations

from msgspec import field

from wukong.api.meta import Base, LabelSelector, Object

WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
NO_PROVISIONER = "kubernetes.io/no-provisioner"


class TopologyRequirement(Base):
    key: str = ""
    values: list[str] = []


class TopologyTerm(Base):
    match_label_expressions: list[TopologyRequirement] = []


class StorageClass(Object):
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologyTerm] = []
    reclaim_policy: str | None = None


class VolumeCount(Base):
    count: int | None = None


class CSINodeDriver(Base):
    name: str = ""
    node_id: str = field(name="nodeID", default="")
    allocatable: VolumeCount | None = None
    topology_keys: list[str] = []


class CSINodeSpec(Base):
    drivers: list[CSINodeDriver] = []


class CSINode(Object):
    spec: CSINodeSpec = field(default_factory=CSINodeSpec)


class CSIDriverSpec(Base):
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(Object):
    spec: CSIDriverSpec = field(default_factory=CSIDriverSpec)


class CSIStorageCapacity(Object):
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None  # None: no node has access; an empty one: all have
    capacity: str | int | float | None = None
    maximum_volume_size: str | int | float | None = None


class AttachmentSource(Base):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Base):
    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = field(default_factory=AttachmentSource)


class VolumeAttachment(Object):
    spec: VolumeAttachmentSpec = field(default_factory=VolumeAttachmentSpec)
