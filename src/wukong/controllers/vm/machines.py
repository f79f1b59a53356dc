"""One virtual machine of a Wukong as the mirror shows it: the VirtualMachine, its instance, its pods, its migration.

Used by all of controllers/vm. Everything is looked up by name or by owner: nothing here walks through all objects of a
kind, so a look at one Wukong costs the same among ten thousand.

    Wukong ──owns──► VirtualMachine ──owns, same name──► VirtualMachineInstance ──owns──► virt-launcher pods
                                                                  ▲
                                          VirtualMachineInstanceMigration.spec.vmiName
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, NamedTuple

from wukong.api.core import Pod
from wukong.api.kinds import PODS, VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, VIRTUAL_MACHINES, WUKONGS
from wukong.api.kubevirt import VirtualMachine, VirtualMachineInstance, VirtualMachineInstanceMigration
from wukong.api.meta import Object, controller_of
from wukong.api.resources import Key, refers_to
from wukong.api.vm import Wukong
from wukong.engine.copy_on_write import CopyOnWriteDicts
from wukong.state import State
from wukong.state.controller import KeysOf, each_side
from wukong.state.mirror import Change

LAUNCHER_LABEL, LAUNCHER = "kubevirt.io", "virt-launcher"


class Machine(NamedTuple):
    """`vm` may be somebody else's: `is_owned` tells. Of one that is not, nothing else is looked at."""

    name: str
    vm: VirtualMachine | None = None
    is_owned: bool = False
    instance: VirtualMachineInstance | None = None
    pods: tuple[Pod, ...] = ()  # virt-launcher pods that have not ended, by name
    migration: VirtualMachineInstanceMigration | None = None  # one that has not ended

    @property
    def waiting_pod(self) -> Pod | None:
        """The pod that has no node yet: its first, or the target of a migration."""
        return next((pod for pod in self.pods if not pod.spec.node_name and not pod.is_terminating), None)

    @property
    def running_pod(self) -> Pod | None:
        """The pod on the node where the instance runs."""
        node = self.instance.status.node_name if self.instance is not None else ""
        return next((pod for pod in self.pods if node and pod.spec.node_name == node), None)

    @property
    def node(self) -> str:
        return self.instance.status.node_name if self.instance is not None and not self.instance.is_final else ""

    @property
    def is_ready(self) -> bool:
        return self.is_owned and self.vm is not None and self.vm.status.ready and not is_leaving(self.vm)


def is_leaving(subject: Object) -> bool:
    return subject.metadata.deletion_timestamp is not None


def find_machine(wukong: Wukong, name: str, state: State) -> Machine:
    """The virtual machine of this name, whether it is there or not."""
    key = Key(wukong.metadata.namespace, name)
    vm = state.get(VirtualMachine, key)
    if vm is None or not is_controlled_by(vm, wukong):
        return Machine(name, vm)
    instance = state.get(VirtualMachineInstance, key)
    if instance is None or not is_controlled_by(instance, vm):
        return Machine(name, vm, is_owned=True)
    owned = (state.get(Pod, pod_key) for pod_key in state.owners.owned_by(instance.metadata.uid, PODS))
    pods = tuple(pod for pod in owned if pod is not None and not pod.is_finished)
    return Machine(name, vm, True, instance, pods, find_migration(key, state))


def list_owned_names(wukong: Wukong, state: State) -> list[str]:
    """The names of the VirtualMachines that this Wukong controls, whether it still asks for them or not."""
    keys = state.owners.owned_by(wukong.metadata.uid, VIRTUAL_MACHINES)
    vms = (state.get(VirtualMachine, key) for key in keys)
    return [vm.metadata.name for vm in vms if vm is not None and is_controlled_by(vm, wukong)]


def is_controlled_by(subject: Object, owner: Object) -> bool:
    reference = controller_of(subject.metadata)
    return reference is not None and reference.uid == owner.metadata.uid


def find_migration(key: Key, state: State) -> VirtualMachineInstanceMigration | None:
    """The migration of the instance with this key that has not ended. KubeVirt allows one at a time."""
    for migration_key in state.index_of(MigrationIndex).list_keys(key):
        migration = state.get(VirtualMachineInstanceMigration, migration_key)
        if migration is not None and not migration.is_final:
            return migration
    return None


class MigrationIndex:
    """Migrations by the instance that they move. Finished ones, too: KubeVirt keeps a few of each."""

    kinds: ClassVar[frozenset[str]] = frozenset({VIRTUAL_MACHINE_INSTANCE_MIGRATIONS.group_kind})

    def __init__(self) -> None:
        self._by_instance: CopyOnWriteDicts[Key, Key, None] = CopyOnWriteDicts()

    def list_keys(self, instance: Key) -> list[Key]:
        return sorted(self._by_instance.get(instance, ()))

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        for subject in (old, new):
            if not isinstance(subject, VirtualMachineInstanceMigration):
                continue
            instance = Key(key.namespace, subject.spec.vmi_name)
            if subject is new:
                self._by_instance.own(instance)[key] = None
            else:
                self._by_instance.own(instance).pop(key, None)
                self._by_instance.drop_if_empty(instance)

    def fork(self) -> MigrationIndex:
        copy = MigrationIndex()
        copy._by_instance = self._by_instance.fork()
        return copy


# ---- which Wukong a change concerns


@each_side
def wukongs_of_vm(vm: Object, state: State) -> Iterable[Key]:
    """The Wukong that controls it; of a VirtualMachine of somebody else's those that want its name."""
    owner, namespace, name = controller_of(vm.metadata), vm.metadata.namespace, vm.metadata.name
    if owner is not None and refers_to(owner, WUKONGS):
        return (Key(namespace, owner.name), *_wukongs_wanting(namespace, name, owner.name, state))
    return _wukongs_wanting(namespace, name, "", state)


def _wukongs_wanting(namespace: str, name: str, owner: str, state: State) -> tuple[Key, ...]:
    prefix, _, index = name.rpartition("-")
    names = (name, prefix) if prefix and index.isdecimal() else (name,)
    keys = (Key(namespace, candidate) for candidate in names if candidate != owner)
    return tuple(key for key in keys if state.get(Wukong, key) is not None)


def wukongs_of_instance(change: Change, state: State) -> Iterable[Key]:
    return _wukong_controlling(change.key, state)


def wukongs_of_pod(change: Change, state: State) -> Iterable[Key]:
    """Of nearly all pods nobody: a label tells."""
    pod = change.new if change.new is not None else change.old
    if pod is None or pod.metadata.labels.get(LAUNCHER_LABEL) != LAUNCHER:
        return ()
    owner = controller_of(pod.metadata)
    return () if owner is None else _wukong_controlling(Key(change.key.namespace, owner.name), state)


def _wukongs_of_migration(migration: Object, state: State) -> Iterable[Key]:
    if not isinstance(migration, VirtualMachineInstanceMigration):
        return ()
    return _wukong_controlling(Key(migration.metadata.namespace, migration.spec.vmi_name), state)


wukongs_of_migration: KeysOf = each_side(_wukongs_of_migration)


def _wukong_controlling(vm_key: Key, state: State) -> tuple[Key, ...]:
    """The Wukong of the VirtualMachine with this key. While the mirror has none, its coming will be heard of."""
    vm = state.get(VirtualMachine, vm_key)
    owner = controller_of(vm.metadata) if vm is not None else None
    if owner is None or not refers_to(owner, WUKONGS):
        return ()
    return (Key(vm_key.namespace, owner.name),)
