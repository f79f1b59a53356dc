"""The instances on each node, by the status of the instances. A derived index of the mirror."""

from __future__ import annotations

from typing import ClassVar

from wukong.api.kinds import VIRTUAL_MACHINE_INSTANCES
from wukong.api.kubevirt import VirtualMachineInstance as AnyInstance
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.embedded.world.objects import VirtualMachineInstance
from wukong.state import State


class InstancesByNode:
    kinds: ClassVar[frozenset[str]] = frozenset({VIRTUAL_MACHINE_INSTANCES.group_kind})

    def __init__(self) -> None:
        self._by_node: dict[str, set[Key]] = {}

    def on_node(self, node: str, state: State) -> list[VirtualMachineInstance]:
        """Sorted by key."""
        found = [state.get(VirtualMachineInstance, key) for key in sorted(self._by_node.get(node, ()))]
        return [instance for instance in found if instance is not None]

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        before = old.status.node_name if isinstance(old, AnyInstance) else ""
        after = new.status.node_name if isinstance(new, AnyInstance) else ""
        if before and before != after:
            self._by_node[before].discard(key)
            if not self._by_node[before]:
                del self._by_node[before]
        if after:
            self._by_node.setdefault(after, set()).add(key)

    def fork(self) -> InstancesByNode:
        copy = InstancesByNode()
        copy._by_node = {node: set(keys) for node, keys in self._by_node.items()}
        return copy
