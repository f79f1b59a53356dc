"""Which Services select a pod. Looked up for every change of a pod, so the answer for the same labels is remembered.

A derived index of the mirror (state/derived_indexes.py), read by controller.py.
"""

from __future__ import annotations

from typing import ClassVar

from wukong.api.core import Pod, Service
from wukong.api.kinds import SERVICES
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.engine.copy_on_write import CopyOnWriteDicts
from wukong.state.indexes import LabelClass, label_class

_MAX_REMEMBERED = 4096  # label classes


class ServiceIndex:
    kinds: ClassVar[frozenset[str]] = frozenset({SERVICES.group_kind})

    def __init__(self) -> None:
        self._selectors: CopyOnWriteDicts[str, Key, dict[str, str]] = CopyOnWriteDicts()  # by namespace
        self._keys_by_labels: dict[tuple[str, LabelClass], list[Key]] = {}

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        before, after = (subject.spec.selector if isinstance(subject, Service) else None for subject in (old, new))
        if before == after:
            return
        selectors = self._selectors.own(key.namespace)
        selectors.pop(key, None)
        if after is not None:
            selectors[key] = after
        self._selectors.drop_if_empty(key.namespace)
        self._keys_by_labels.clear()

    def selects_in(self, namespace: str) -> bool:
        """Whether any Service of a namespace selects pods."""
        return namespace in self._selectors

    def of(self, pod: Pod) -> list[Key]:
        """The Services of its namespace that select it. Sorted."""
        selectors = self._selectors.get(pod.metadata.namespace)
        if not selectors:
            return []
        place = (pod.metadata.namespace, label_class(pod))
        keys = self._keys_by_labels.get(place)
        if keys is None:
            if len(self._keys_by_labels) >= _MAX_REMEMBERED:
                self._keys_by_labels.clear()
            labels = pod.metadata.labels.items()
            keys = sorted(key for key, selector in selectors.items() if selector.items() <= labels)
            self._keys_by_labels[place] = keys
        return keys

    def fork(self) -> ServiceIndex:
        copy = ServiceIndex()
        copy._selectors, copy._keys_by_labels = self._selectors.fork(), dict(self._keys_by_labels)
        return copy
