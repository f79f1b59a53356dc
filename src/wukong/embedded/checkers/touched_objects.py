"""What happened since the last look, so that what holds at rest is asked only where it may no longer hold.

Kept by checkers.py. An object that nobody touched is as it was when it was last looked at; what a status should say
depends on the pods of its workload, a pod's place on its node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar, TypeVar

from wukong.api.apps import PodDisruptionBudget
from wukong.api.core import Pod
from wukong.api.kinds import KINDS, NODES, POD_DISRUPTION_BUDGETS
from wukong.api.meta import Object, OwnerReference, controller_of
from wukong.api.resources import Key
from wukong.engine.copy_on_write import CopyOnWriteDicts
from wukong.state import Change, State

O = TypeVar("O", bound=Object)  # noqa: E741


class BudgetsByNamespace:
    """The keys of budgets. A derived index of the mirror: those of other namespaces are not looked at."""

    kinds: ClassVar[frozenset[str]] = frozenset({POD_DISRUPTION_BUDGETS.group_kind})

    def __init__(self) -> None:
        self._keys: CopyOnWriteDicts[str, Key, None] = CopyOnWriteDicts()

    def of(self, namespace: str) -> Iterable[Key]:
        return self._keys.get(namespace, ())

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        if old is None:
            self._keys.own(key.namespace)[key] = None
        elif new is None:
            del self._keys.own(key.namespace)[key]
            self._keys.drop_if_empty(key.namespace)

    def fork(self) -> BudgetsByNamespace:
        copy = BudgetsByNamespace()
        copy._keys = self._keys.fork()
        return copy


class TouchedObjects:
    def __init__(self) -> None:
        self._keys: dict[str, set[Key]] = {}  # group and kind → those that changed, or one of whose dependents did
        self._namespaces: set[str] = set()
        self._latest_owner: OwnerReference | None = None  # the pods of one workload share it: in `_keys` already
        self._latest_namespace = ""

    def fork(self) -> TouchedObjects:
        copy = TouchedObjects()
        copy._keys = {group_kind: set(keys) for group_kind, keys in self._keys.items()}
        copy._namespaces = set(self._namespaces)
        copy._latest_owner, copy._latest_namespace = self._latest_owner, self._latest_namespace
        return copy

    def observe(self, change: Change) -> None:
        self._add(change.group_kind, change.key)
        old, new = change.old, change.new
        is_owned_alike = (
            old is not None and new is not None and old.metadata.owner_references is new.metadata.owner_references
        )
        for subject in (new,) if is_owned_alike else (old, new):
            owner = controller_of(subject.metadata) if subject is not None else None
            namespace = change.key.namespace
            if owner is not None and (owner is not self._latest_owner or namespace != self._latest_namespace):
                self._latest_owner, self._latest_namespace = owner, namespace
                owner_kind = KINDS.group_kind_named(owner.kind, owner.api_version)
                self._add(owner_kind, Key(namespace, owner.name))

    def include(self, objects: Iterable[tuple[str, Iterable[Key]]]) -> None:
        """Take these for touched, too: nobody has looked at them yet."""
        for group_kind, keys in objects:
            for key in keys:
                self._add(group_kind, key)

    def clear(self) -> None:
        self._keys.clear()
        self._namespaces.clear()
        self._latest_owner = None

    def includes(self, struct: type[Object]) -> bool:
        """Whether an object of this kind was touched; it may be gone."""
        return KINDS.group_kinds[struct] in self._keys

    def list_all(self, struct: type[O], state: State) -> list[O]:
        """The objects of a kind to look at that are still there, sorted by key."""
        present = (state.get(struct, key) for key in sorted(self._find_keys(struct, state)))
        return [subject for subject in present if subject is not None]

    def list_changed(self, state: State) -> Iterator[Object]:
        """Those that are still there, of every kind."""
        for group_kind in sorted(self._keys):
            for key in sorted(self._keys[group_kind]):
                if (subject := state.objects.get(group_kind, {}).get(key)) is not None:
                    yield subject

    def _add(self, group_kind: str, key: Key) -> None:
        self._keys.setdefault(group_kind, set()).add(key)
        self._namespaces.add(key.namespace)

    def _find_keys(self, struct: type[Object], state: State) -> set[Key]:
        keys = self._keys.get(KINDS.group_kinds[struct], set())
        if struct is PodDisruptionBudget:  # any pod of its namespace may count for it
            budgets = state.index_of(BudgetsByNamespace)
            return {key for namespace in self._namespaces for key in budgets.of(namespace)}
        if struct is Pod:
            nodes = self._keys.get(NODES.group_kind, ())
            return keys.union(*(state.pods.on_node(node.name) for node in nodes))
        return keys
