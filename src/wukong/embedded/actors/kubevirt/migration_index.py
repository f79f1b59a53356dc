"""The migrations of each instance, and those that have not ended. A derived index of the mirror."""

from __future__ import annotations

from typing import ClassVar

from wukong.api.kinds import VIRTUAL_MACHINE_INSTANCE_MIGRATIONS
from wukong.api.kubevirt import VirtualMachineInstanceMigration as AnyMigration
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.embedded.world.objects import VirtualMachineInstanceMigration
from wukong.state import State

_NOT_RUNNING = ("", "Pending", "Succeeded", "Failed")


class MigrationIndex:
    kinds: ClassVar[frozenset[str]] = frozenset({VIRTUAL_MACHINE_INSTANCE_MIGRATIONS.group_kind})

    def __init__(self) -> None:
        self._by_instance: dict[Key, set[Key]] = {}
        self._unfinished: set[Key] = set()

    def of_instance(self, key: Key) -> list[Key]:
        """The migrations of an instance. Sorted."""
        return sorted(self._by_instance.get(key, ()))

    def list_unfinished(self, state: State) -> list[VirtualMachineInstanceMigration]:
        found = [state.get(VirtualMachineInstanceMigration, key) for key in sorted(self._unfinished)]
        return [migration for migration in found if migration is not None]

    def list_running(self, state: State) -> list[VirtualMachineInstanceMigration]:
        """Those that are past waiting for a place."""
        return [migration for migration in self.list_unfinished(state) if migration.status.phase not in _NOT_RUNNING]

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        before, after = _instance_key(old), _instance_key(new)
        if before is not None and before != after:
            self._by_instance[before].discard(key)
            if not self._by_instance[before]:
                del self._by_instance[before]
        if after is not None:
            self._by_instance.setdefault(after, set()).add(key)
        if isinstance(new, AnyMigration) and not new.is_final:
            self._unfinished.add(key)
        else:
            self._unfinished.discard(key)

    def fork(self) -> MigrationIndex:
        copy = MigrationIndex()
        copy._by_instance = {key: set(keys) for key, keys in self._by_instance.items()}
        copy._unfinished = set(self._unfinished)
        return copy


def _instance_key(migration: Object | None) -> Key | None:
    return Key(migration.metadata.namespace, migration.spec.vmi_name) if isinstance(migration, AnyMigration) else None
