"""Who keeps a workload, so that what is changed by hand would not last: Argo CD, Flux, Helm, another field manager, or
an owner. Pure."""

from __future__ import annotations

from wukong.forecast.warnings.managed_by_another_tool import find_tool
from wukong.placement.workloads.patch_forms import APPLIER
from wukong.ports import Document

_OF_PEOPLE = frozenset({"kubectl", "wukong", APPLIER})  # who applies by hand


def find_keeper(workload: Document) -> str:
    """Who keeps it, and by what that is known; "" for nobody."""
    tool, mark = find_tool(workload)
    if tool:
        return f"{tool} keeps it ({mark})"
    meta = workload.get("metadata") or {}
    for owner in meta.get("ownerReferences") or ():
        if owner.get("controller"):
            return f"{owner.get('kind')} {owner.get('name')} owns and keeps it"
    for entry in meta.get("managedFields") or ():
        is_applier = entry.get("operation") == "Apply" and "f:spec" in (entry.get("fieldsV1") or {})
        if is_applier and entry.get("manager") not in _OF_PEOPLE:
            return f"the field manager {entry.get('manager')} applies it"
    return ""
