"""Which budgets cover a pod: asked for every change of a pod, so pods with the same labels are looked up once.

A follower of the mirror (derived_indexes.py), asked by disruption.py. Most changes of a budget are of its status and
change nothing here.
"""

from __future__ import annotations

from typing import ClassVar

from wukong.api.apps import PodDisruptionBudget
from wukong.api.core import Pod
from wukong.api.kinds import POD_DISRUPTION_BUDGETS
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.semantics.selectors import compile_selector, selects
from wukong.state.indexes import LabelClass, label_class

_MOST = 4096  # label classes to remember


class BudgetIndex:
    kinds: ClassVar[frozenset[str]] = frozenset({POD_DISRUPTION_BUDGETS.group_kind})

    def __init__(self) -> None:
        self._budgets: dict[Key, PodDisruptionBudget] = {}
        self._found: dict[tuple[str, LabelClass], list[Key]] = {}

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        if isinstance(new, PodDisruptionBudget):
            self._budgets[key] = new
        else:
            self._budgets.pop(key, None)
        if _selector(old) != _selector(new):
            self._found.clear()

    def of(self, pod: Pod) -> list[Key]:
        """The budgets of its namespace that select it. Sorted."""
        place = (pod.metadata.namespace, label_class(pod))
        found = self._found.get(place)
        if found is None:
            if len(self._found) >= _MOST:
                self._found.clear()
            found = self._found[place] = [key for key in sorted(self._budgets) if self._covers(key, pod)]
        return found

    def _covers(self, key: Key, pod: Pod) -> bool:
        selector = self._budgets[key].spec.selector
        return key.namespace == pod.metadata.namespace and selects(compile_selector(selector), pod.metadata.labels)


def _selector(found: Object | None) -> object:
    """What tells budgets apart here. One that is not there is unlike any other."""
    return (found.spec.selector,) if isinstance(found, PodDisruptionBudget) else None
