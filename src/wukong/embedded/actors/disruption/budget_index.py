"""Which budgets select a pod. Looked up for every change of a pod, so the answer for the same labels is remembered.

A derived index of the mirror (state/derived_indexes.py), read by controller.py and covered_pods.py. Most changes of a
budget are of its status and change nothing here.
"""

from __future__ import annotations

from typing import ClassVar

from wukong.api.apps import PodDisruptionBudget
from wukong.api.core import Pod
from wukong.api.kinds import POD_DISRUPTION_BUDGETS
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.engine.copy_on_write import CopyOnWriteDicts
from wukong.semantics.selectors import compile_selector, selects
from wukong.state.indexes import LabelClass, label_class

_MAX_REMEMBERED = 4096  # label classes
_MAX_SHARED = 64  # the very labels, which are kept


class BudgetIndex:
    kinds: ClassVar[frozenset[str]] = frozenset({POD_DISRUPTION_BUDGETS.group_kind})

    def __init__(self) -> None:
        self._budgets: CopyOnWriteDicts[str, Key, PodDisruptionBudget] = CopyOnWriteDicts()  # by namespace
        self._keys_by_labels: dict[tuple[str, LabelClass], list[Key]] = {}  # namespace and labels of a pod → budgets
        # The same by the id of the labels, which pods of one template share: the labels, the namespace, the budgets.
        self._keys_by_id: dict[int, tuple[dict[str, str], str, list[Key]]] = {}

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        budgets = self._budgets.own(key.namespace)
        if isinstance(new, PodDisruptionBudget):
            budgets[key] = new
        else:
            budgets.pop(key, None)
            self._budgets.drop_if_empty(key.namespace)
        if selector_of(old) != selector_of(new):
            self._keys_by_labels.clear()
            self._keys_by_id.clear()

    def of(self, pod: Pod) -> list[Key]:
        """The budgets of its namespace that select it. Sorted."""
        if not self._budgets:
            return []
        labels, namespace = pod.metadata.labels, pod.metadata.namespace
        known = self._keys_by_id.get(id(labels))
        if known is not None and known[1] == namespace:
            return known[2]
        keys = self._find_keys(pod)
        if len(self._keys_by_id) >= _MAX_SHARED:
            self._keys_by_id.clear()
        self._keys_by_id[id(labels)] = labels, namespace, keys
        return keys

    def _find_keys(self, pod: Pod) -> list[Key]:
        place = (pod.metadata.namespace, label_class(pod))
        keys = self._keys_by_labels.get(place)
        if keys is None:
            if len(self._keys_by_labels) >= _MAX_REMEMBERED:
                self._keys_by_labels.clear()
            budgets, labels = self._budgets.get(pod.metadata.namespace, {}), pod.metadata.labels
            keys = self._keys_by_labels[place] = [
                key
                for key, budget in sorted(budgets.items())
                if selects(compile_selector(budget.spec.selector), labels)
            ]
        return keys

    def in_namespace(self, namespace: str) -> list[Key]:
        """The budgets of a namespace. Sorted."""
        return sorted(self._budgets.get(namespace, ()))

    def fork(self) -> BudgetIndex:
        copy = BudgetIndex()
        copy._budgets, copy._keys_by_labels = self._budgets.fork(), dict(self._keys_by_labels)
        copy._keys_by_id = dict(self._keys_by_id)
        return copy


def selector_of(subject: Object | None) -> object:
    """The budget's selector in a tuple; None where there is no budget, which is unlike any selector."""
    return (subject.spec.selector,) if isinstance(subject, PodDisruptionBudget) else None
