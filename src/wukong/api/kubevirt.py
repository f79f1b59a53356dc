"""The group kubevirt.io as far as we read it: virtual machines, their running instances, and live migrations.

Read by the `vm` controller, by `wukong get` and `wukong explain`, and played by embedded/actors/kubevirt. The spec of a
VirtualMachine and of an instance is kept as it comes: it is compared with what we want, not decided by field by field.
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from wukong.api.meta import Base, Object

KUBEVIRT_GROUP = "kubevirt.io"


class VirtualMachineCondition(Base):
    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class VirtualMachineStatus(Base):
    """`printable_status` is KubeVirt's word for people: Running, Stopped, Migrating, ErrorUnschedulable, …"""

    printable_status: str = ""
    ready: bool = False
    created: bool = False
    observed_generation: int = 0
    desired_generation: int = 0
    conditions: list[VirtualMachineCondition] = []


class VirtualMachine(Object):
    spec: dict[str, Any] = {}
    status: VirtualMachineStatus = field(default_factory=VirtualMachineStatus)


class VirtualMachineInstanceMigrationState(Base):
    """How the last migration of an instance stands, or ended."""

    migration_uid: str = ""
    source_node: str = ""
    target_node: str = ""
    target_pod: str = ""
    start_timestamp: str | None = None
    end_timestamp: str | None = None
    completed: bool = False
    failed: bool = False
    failure_reason: str = ""


class VirtualMachineInstanceStatus(Base):
    phase: str = ""
    reason: str = ""
    node_name: str = ""
    evacuation_node_name: str = ""
    active_pods: dict[str, str] = {}  # uid of a virt-launcher pod → its node
    conditions: list[VirtualMachineCondition] = []
    migration_state: VirtualMachineInstanceMigrationState | None = None


class VirtualMachineInstance(Object):
    spec: dict[str, Any] = {}
    status: VirtualMachineInstanceStatus = field(default_factory=VirtualMachineInstanceStatus)

    @property
    def is_final(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")


class VirtualMachineInstanceMigrationSpec(Base):
    vmi_name: str = ""


class VirtualMachineInstanceMigrationStatus(Base):
    phase: str = ""
    conditions: list[VirtualMachineCondition] = []


class VirtualMachineInstanceMigration(Object):
    spec: VirtualMachineInstanceMigrationSpec = field(default_factory=VirtualMachineInstanceMigrationSpec)
    status: VirtualMachineInstanceMigrationStatus = field(default_factory=VirtualMachineInstanceMigrationStatus)

    @property
    def is_final(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")


def find_condition(conditions: list[VirtualMachineCondition], kind: str) -> VirtualMachineCondition | None:
    """The condition of this type, if it is there."""
    return next((condition for condition in conditions if condition.type == kind), None)
