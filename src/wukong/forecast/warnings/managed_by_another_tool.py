"""An object that Argo CD, Flux or Helm keeps: what is applied by hand is reverted, or the next release trips over it.

Told by the marks that the tools leave on what they write, and by field managers where the cluster says who they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wukong.forecast.fields import PlanWarning
from wukong.forecast.warnings.situation import Situation, WrittenObject
from wukong.ports import Document

CODE = "managed-by-another-tool"
# Keys of labels and annotations that only this tool writes. app.kubernetes.io/instance is not among them, though
# Argo CD may track by it: everybody sets it.
_MARKS = {
    "argocd.argoproj.io/tracking-id": "Argo CD",
    "argocd.argoproj.io/instance": "Argo CD",
    "kustomize.toolkit.fluxcd.io/name": "Flux",
    "helm.toolkit.fluxcd.io/name": "Flux",
    "meta.helm.sh/release-name": "Helm",
}
_MANAGED_BY = "app.kubernetes.io/managed-by"
_MANAGERS = {
    "argocd-controller": "Argo CD",
    "argocd-application-controller": "Argo CD",
    "kustomize-controller": "Flux",
    "helm-controller": "Flux",
    "helm": "Helm",
}
_EFFECTS = {
    "Argo CD": "it reverts, or reports as out of sync, what is applied by hand",
    "Flux": "it reverts what is applied by hand at its next reconciliation",
    "Helm": "the next release overwrites what is applied by hand, or stops at it",
}


def find(situation: Situation) -> Iterator[PlanWarning]:
    for entry in situation.written:
        tool, mark = find_tool(entry.before)
        if tool and not _is_its_own_manifest(entry, tool):
            yield PlanWarning(
                code=CODE,
                subject=entry.subject,
                path="$.metadata",
                text=f"{tool} keeps this object ({mark}): {_EFFECTS[tool]}.",
                fix=f"Make the change in the source that {tool} applies.",
            )


def find_tool(document: Document | None) -> tuple[str, str]:
    """Who keeps an object and by what that is known; empty texts if nobody is known to."""
    meta = document.get("metadata") if isinstance(document, dict) else None
    if not isinstance(meta, dict):
        return "", ""
    labels, annotations = _as_dict(meta.get("labels")), _as_dict(meta.get("annotations"))
    for key, tool in _MARKS.items():
        for place, marks in (("label", labels), ("annotation", annotations)):
            if key in marks:
                return tool, f"{place} {key}"
    if labels.get(_MANAGED_BY) == "Helm":
        return "Helm", f"label {_MANAGED_BY}: Helm"
    for manager in _list_managers(meta.get("managedFields")):
        if manager in _MANAGERS:
            return _MANAGERS[manager], f"field manager {manager}"
    return "", ""


def _list_managers(entries: Any) -> Iterator[str]:
    """Who owns fields of the spec."""
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and "f:spec" in _as_dict(entry.get("fieldsV1")):
            manager = entry.get("manager")
            if isinstance(manager, str):
                yield manager


def _is_its_own_manifest(entry: WrittenObject, tool: str) -> bool:
    """Whether what is applied carries the tool's mark itself: then it is what the tool would apply."""
    return find_tool(entry.applied)[0] == tool


def _as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
