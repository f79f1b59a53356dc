"""What the pods of each namespace take, kept as they come, change and go: pods alike are counted, not added up.

A derived index of the mirror (state/derived_indexes.py), read by controller.py. What a quota counts of a namespace then
costs as much as it has different pods, however many there are of each.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, NamedTuple

from wukong.api.kinds import PODS
from wukong.api.meta import Object
from wukong.api.quota import ScopedSelectorRequirement
from wukong.api.resources import Key
from wukong.embedded.store.limits.amounts import Amount, Amounts, add_amounts
from wukong.embedded.store.limits.pod_scopes import PodScopes, read_scopes
from wukong.embedded.store.limits.usage import end_of_grace, measure_pod
from wukong.embedded.world.objects import Pod
from wukong.engine.copy_on_write import CopyOnWriteDicts
from wukong.ports import Document

_MOST_MEASURED = 4096  # specs
_ONLY_THERE = ("count/pods",)


class PodClass(NamedTuple):
    """What quotas see of a pod. `counts_until`: it is being deleted, and counts no longer than that."""

    usage: tuple[tuple[str, Amount], ...]
    scopes: PodScopes
    counts_until: float | None = None


class PodUsage:
    kinds: ClassVar[frozenset[str]] = frozenset({PODS.group_kind})

    def __init__(self) -> None:
        self._classes: CopyOnWriteDicts[str, str, PodClass] = CopyOnWriteDicts()  # namespace → pod → its class
        self._counts: CopyOnWriteDicts[str, PodClass, int] = CopyOnWriteDicts()  # namespace → class → how many
        # id of a spec → the spec, so that nothing else gets its id, and what a pod with it is while it runs
        self._measured: dict[int, tuple[Document, PodClass]] = {}

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        before = self._classes.get(key.namespace, {}).get(key.name)
        after = self._classify(new) if isinstance(new, Pod) else None
        if before == after:
            return
        classes, counts = self._classes.own(key.namespace), self._counts.own(key.namespace)
        if before is not None:
            del classes[key.name]
            counts[before] -= 1
            if not counts[before]:
                del counts[before]
        if after is not None:
            classes[key.name] = after
            counts[after] = counts.get(after, 0) + 1
        self._classes.drop_if_empty(key.namespace)
        self._counts.drop_if_empty(key.namespace)

    def _classify(self, pod: Pod) -> PodClass:
        spec: Document = pod.document.get("spec") or {}
        if pod.is_finished:
            return PodClass(tuple(measure_pod(pod.document).items()), read_scopes(pod.document))
        measured = self._measured.get(id(spec))
        if measured is None:
            if len(self._measured) >= _MOST_MEASURED:
                self._measured.clear()
            pod_class = PodClass(tuple(measure_pod(pod.document).items()), read_scopes(pod.document))
            measured = self._measured[id(spec)] = spec, pod_class
        end = end_of_grace(pod.document)
        return measured[1] if end is None else measured[1]._replace(counts_until=end)

    def sum_up(self, namespace: str, requirements: Iterable[ScopedSelectorRequirement], now: float) -> Amounts:
        """What the pods that meet these requirements take together."""
        requirements, total = list(requirements), Amounts()
        for pod_class, count in self._counts.get(namespace, {}).items():
            if all(map(pod_class.scopes.matches, requirements)):
                is_over = pod_class.counts_until is not None and now > pod_class.counts_until
                usage = [entry for entry in pod_class.usage if not is_over or entry[0] in _ONLY_THERE]
                add_amounts(total, {name: Amount(amount.nanos * count, amount.form) for name, amount in usage})
        return total

    def fork(self) -> PodUsage:
        copy = PodUsage()
        copy._classes, copy._counts = self._classes.fork(), self._counts.fork()
        copy._measured = dict(self._measured)
        return copy
