"""Which of our changes a ResourceQuota would count: it is asked after webhooks, and may refuse the pod for them.

A quota with the scope PriorityClass counts pods of certain classes, one with CrossNamespacePodAffinity those with
affinity across namespaces (kubernetes/pkg/quota/v1/evaluator/core/pods.go). A pod that becomes one of them by our patch
might be refused where it was not before: in doubt it is not made one. Read by pods.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from wukong.api.kinds import RESOURCE_QUOTAS
from wukong.api.quota import ResourceQuota, ScopedSelectorRequirement
from wukong.ports import Document
from wukong.state import State

PRIORITY_CLASS, CROSS_NAMESPACE = "PriorityClass", "CrossNamespacePodAffinity"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class CountedPods(NamedTuple):
    """What quotas of one namespace count."""

    classes: frozenset[str] = frozenset()
    has_every_class: bool = False
    has_cross_namespace: bool = False

    def counts_class(self, name: str) -> bool:
        return self.has_every_class or name in self.classes


NOTHING = CountedPods()


class QuotaCache:
    """What quotas count, by namespace; worked out anew when one changes."""

    def __init__(self, state: State) -> None:
        self._state, self._by_namespace = state, dict[str, CountedPods]()
        self.version = -1

    def refresh(self) -> bool:
        """Whether something changed since the last call."""
        version = self._state.versions[RESOURCE_QUOTAS.group_kind]
        if version == self.version:
            return False
        self.version = version
        quotas: dict[str, list[ResourceQuota]] = {}
        for key, quota in self._state.objects.get(RESOURCE_QUOTAS.group_kind, {}).items():
            if isinstance(quota, ResourceQuota):
                quotas.setdefault(key.namespace, []).append(quota)
        counted = {namespace: find_counted_pods(entries) for namespace, entries in quotas.items()}
        self._by_namespace = {namespace: entry for namespace, entry in counted.items() if entry != NOTHING}
        return True

    def of(self, namespace: str) -> CountedPods:
        return self._by_namespace.get(namespace, NOTHING)


def find_counted_pods(quotas: Iterable[ResourceQuota]) -> CountedPods:
    requirements = [requirement for quota in quotas for requirement in _list_requirements(quota)]
    classes = [entry for entry in requirements if entry.scope_name == PRIORITY_CLASS]
    return CountedPods(
        # NotIn and DoesNotExist count pods without a class as well: those were counted before.
        frozenset(value for entry in classes if entry.operator == "In" for value in entry.values),
        any(entry.operator == "Exists" for entry in classes),
        any(entry.scope_name == CROSS_NAMESPACE for entry in requirements),
    )


def adds_cross_namespace_affinity(before: Document, after: Document) -> bool:
    return _uses_cross_namespace_affinity(after) and not _uses_cross_namespace_affinity(before)


def _uses_cross_namespace_affinity(pod: Document) -> bool:
    """Whether a pod has affinity to, or from, pods of namespaces that it names or selects."""
    affinity = (pod.get("spec") or {}).get("affinity") or {}
    terms = [term for side in ("podAffinity", "podAntiAffinity") for term in _list_terms(affinity.get(side) or {})]
    return any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms)


def _list_requirements(quota: ResourceQuota) -> Iterator[ScopedSelectorRequirement]:
    for scope in quota.spec.scopes:
        yield ScopedSelectorRequirement(scope_name=scope, operator="Exists")
    if quota.spec.scope_selector is not None:
        yield from quota.spec.scope_selector.match_expressions


def _list_terms(side: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from side.get(_REQUIRED) or ()
    for weighted in side.get(_PREFERRED) or ():
        yield weighted.get("podAffinityTerm") or {}
