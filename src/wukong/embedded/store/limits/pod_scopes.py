"""Which pods a quota with scopes counts: as kube-apiserver's pod evaluator tells them apart (1.35). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from wukong.api.quota import ScopedSelectorRequirement
from wukong.ports import Document

_CPU_AND_MEMORY = ("cpu", "memory")
_TERM_FIELDS = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


class PodScopes(NamedTuple):
    """All that scopes ask of a pod."""

    has_deadline: bool = False
    is_best_effort: bool = False
    priority_class: str = ""
    is_cross_namespace: bool = False

    def matches(self, requirement: ScopedSelectorRequirement) -> bool:
        match requirement.scope_name:
            case "Terminating":
                return self.has_deadline
            case "NotTerminating":
                return not self.has_deadline
            case "BestEffort":
                return self.is_best_effort
            case "NotBestEffort":
                return not self.is_best_effort
            case "PriorityClass":
                return self._matches_class(requirement)
            case "CrossNamespacePodAffinity":
                return self.is_cross_namespace
        return False

    def _matches_class(self, requirement: ScopedSelectorRequirement) -> bool:
        name, values = self.priority_class, requirement.values
        match requirement.operator:
            case "In":
                return bool(name) and name in values
            case "NotIn":
                return not name or name not in values
            case "Exists":
                return bool(name)
            case "DoesNotExist":
                return not name
        return False


def read_scopes(pod: Document) -> PodScopes:
    spec = pod.get("spec") or {}
    deadline = spec.get("activeDeadlineSeconds")
    return PodScopes(
        has_deadline=deadline is not None and deadline >= 0,
        is_best_effort=(pod.get("status") or {}).get("qosClass", _qos_class_of(spec)) == "BestEffort",
        priority_class=spec.get("priorityClassName") or "",
        is_cross_namespace=any(
            term.get("namespaces") or term.get("namespaceSelector") is not None for term in _list_terms(spec)
        ),
    )


def _qos_class_of(spec: Document) -> str:
    """BestEffort, where nobody in the pod asks for cpu or memory; else another one."""
    holders = [spec, *(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    asks = any(
        (holder.get("resources") or {}).get(part, {}).get(name) not in (None, "0")
        for holder in holders
        for part in ("requests", "limits")
        for name in _CPU_AND_MEMORY
    )
    return "Burstable" if asks else "BestEffort"


def _list_terms(spec: Document) -> Iterator[Any]:
    affinity = spec.get("affinity") or {}
    for side in ("podAffinity", "podAntiAffinity"):
        for field in _TERM_FIELDS:
            for term in (affinity.get(side) or {}).get(field) or ():
                yield term.get("podAffinityTerm") or term
