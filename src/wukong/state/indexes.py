"""Ways to find objects without looking at all of them: pods by node and by labels, anything by its owner.

`State` keeps them current change by change; controllers ask. Answers are sorted. They hold keys, never objects.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

from wukong.api.core import Pod
from wukong.api.meta import LabelSelector, Object
from wukong.api.resources import Key, Resource
from wukong.engine.copy_on_write import CopyOnWriteDicts
from wukong.semantics.selectors import compile_selector, selects

Entry = TypeVar("Entry", bound=Hashable)
Name = TypeVar("Name", bound=Hashable)
LabelClass = tuple[tuple[str, str], ...]  # all labels of a pod, sorted: pods alike to every selector


class PodIndex:
    """Pods by the node they are bound to (finished ones too, as in the API), "" if none; by namespace and labels."""

    def __init__(self) -> None:
        self.by_node: CopyOnWriteDicts[str, Key, None] = CopyOnWriteDicts()
        self.by_class: CopyOnWriteDicts[tuple[str, LabelClass], Key, None] = CopyOnWriteDicts()
        self.classes: CopyOnWriteDicts[str, LabelClass, None] = CopyOnWriteDicts()  # namespace → its label classes

    def on_node(self, node: str) -> list[Key]:
        return sorted(self.by_node.get(node, ()))

    def list_matching(self, namespace: str, selector: LabelSelector | None) -> list[Key]:
        """The pods of a namespace that a selector selects. Asks once per label class, not once per pod."""
        wanted = compile_selector(selector)
        chosen = [labels for labels in self.classes.get(namespace, ()) if selects(wanted, dict(labels))]
        return sorted(key for labels in chosen for key in self.by_class[namespace, labels])

    def add(self, key: Key, pod: Pod) -> None:
        self.by_node.own(pod.spec.node_name)[key] = None
        labels = label_class(pod)
        self.by_class.own((key.namespace, labels))[key] = None
        if labels not in self.classes.get(key.namespace, ()):
            self.classes.own(key.namespace)[labels] = None

    def move(self, key: Key, before: str, after: str) -> None:
        """A pod with the same labels is on another node now."""
        _discard(self.by_node, before, key)
        self.by_node.own(after)[key] = None

    def remove(self, key: Key, pod: Pod) -> None:
        _discard(self.by_node, pod.spec.node_name, key)
        labels = label_class(pod)
        _discard(self.by_class, (key.namespace, labels), key)
        if (key.namespace, labels) not in self.by_class:
            _discard(self.classes, key.namespace, labels)

    def fork(self) -> PodIndex:
        copy = PodIndex()
        copy.by_node, copy.by_class, copy.classes = self.by_node.fork(), self.by_class.fork(), self.classes.fork()
        return copy


class OwnerIndex:
    """Objects of every kind by the uid of each of their owners."""

    def __init__(self) -> None:
        # uid of an owner, and group and kind of what it owns → their keys
        self.by_owner: CopyOnWriteDicts[tuple[str, str], Key, None] = CopyOnWriteDicts()

    def owned_by(self, uid: str, resource: Resource) -> list[Key]:
        """The objects of a kind that name this owner, as their controller or otherwise."""
        return sorted(self.by_owner.get((uid, resource.group_kind), ()))

    def add(self, group_kind: str, key: Key, owned: Object) -> None:
        for uid in _owner_uids(owned):
            self.by_owner.own((uid, group_kind))[key] = None

    def remove(self, group_kind: str, key: Key, owned: Object) -> None:
        for uid in _owner_uids(owned):
            _discard(self.by_owner, (uid, group_kind), key)

    def fork(self) -> OwnerIndex:
        copy = OwnerIndex()
        copy.by_owner = self.by_owner.fork()
        return copy


def label_class(pod: Pod) -> LabelClass:
    return tuple(sorted(pod.metadata.labels.items()))


def _owner_uids(owned: Object) -> set[str]:
    return {owner.uid for owner in owned.metadata.owner_references if owner.uid}


def _discard(index: CopyOnWriteDicts[Entry, Name, None], entry: Entry, name: Name) -> None:
    index.own(entry).pop(name, None)
    index.drop_if_empty(entry)
