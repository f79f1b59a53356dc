"""Changes that the API server refuses: what must stay as it was created. Called by validation.py, pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from wukong.admission.problem_text import format_value
from wukong.embedded.store.documents import at, without
from wukong.ports import Document

_POD = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_FREE = ("activeDeadlineSeconds", "tolerations", "schedulingGates", "terminationGracePeriodSeconds", "nodeSelector")
_STATEFUL_SET = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_STATEFUL_FREE = (
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit", "minReadySeconds",
    "persistentVolumeClaimRetentionPolicy",
)  # fmt: skip


def changes_refused(kind: str, before: Document, after: Document) -> list[str]:
    return list(_BY_KIND[kind](before, after)) if kind in _BY_KIND else []


def _pod(before: Document, after: Document) -> Iterator[str]:
    old, new = before.get("spec") or {}, after.get("spec") or {}
    if old == new:
        return
    yield from _containers(old, new)
    yield from _deadline(old.get("activeDeadlineSeconds"), new.get("activeDeadlineSeconds"))
    kept = [without(each, "tolerationSeconds") for each in new.get("tolerations") or []]
    if any(without(each, "tolerationSeconds") not in kept for each in old.get("tolerations") or []):
        yield "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"
    gates = old.get("schedulingGates") or []
    if any(each not in gates for each in new.get("schedulingGates") or []):
        yield "spec.schedulingGates: Forbidden: only deletion is allowed"
    grace, asked = (each.get("terminationGracePeriodSeconds") for each in (old, new))
    if grace != asked and not (asked == 1 and grace is not None and grace < 0):
        yield f"spec: Forbidden: {_POD}"
    yield from _node_choice(old, new, is_gated=bool(gates))
    if _munged(old) != _munged(new):
        yield f"spec: Forbidden: {_POD}"


def _containers(old: Document, new: Document) -> Iterator[str]:
    for name in ("containers", "initContainers"):
        if len(old.get(name) or []) != len(new.get(name) or []):
            yield f"spec.{name}: Forbidden: pod updates may not add or remove containers"


def _deadline(old: int | None, new: int | None) -> Iterator[str]:
    place = "spec.activeDeadlineSeconds: Invalid value"
    if new is None and old is not None:
        yield f"{place}: null: must not update from a positive integer to nil value"
    elif new is not None and old is not None and new > old:
        yield f"{place}: {new}: must be less than or equal to previous value"


def _node_choice(old: Document, new: Document, *, is_gated: bool) -> Iterator[str]:
    """A pod still held by a gate may have its node selector tightened. Its node affinity may change, too."""
    if (before := old.get("nodeSelector") or {}) != (after := new.get("nodeSelector") or {}):
        if not is_gated:
            yield f"spec: Forbidden: {_POD}"
        elif any(after.get(key) != value for key, value in before.items()):
            yield "spec.nodeSelector: Invalid value: only additions to spec.nodeSelector are allowed (no mutations)"
    if old.get("affinity") != new.get("affinity"):
        rest = [without(each.get("affinity") or {}, "nodeAffinity") for each in (old, new)]
        if not is_gated or rest[0] != rest[1]:
            yield f"spec: Forbidden: {_POD}"


def _munged(spec: Document) -> Document:
    """Without what may change, or has been looked at already."""
    plain = without(spec, *_FREE, "affinity", "containers", "initContainers")
    images = [
        [without(container, "image") for container in spec.get(name) or []] for name in ("containers", "initContainers")
    ]
    return {**plain, "images": images}


def _selector(before: Document, after: Document) -> Iterator[str]:
    yield from _immutable(before, after, "spec.selector")


def _stateful_set(before: Document, after: Document) -> Iterator[str]:
    if without(before.get("spec") or {}, *_STATEFUL_FREE) != without(after.get("spec") or {}, *_STATEFUL_FREE):
        yield f"spec: Forbidden: {_STATEFUL_SET}"


def _priority_class(before: Document, after: Document) -> Iterator[str]:
    if before.get("value") != after.get("value"):
        yield "value: Forbidden: may not be changed in an update."
    yield from _immutable(before, after, "preemptionPolicy")


def _fixed_data(before: Document, after: Document) -> Iterator[str]:
    if before.get("immutable"):
        for name in ("data", "binaryData", "immutable"):
            if before.get(name) != after.get(name):
                yield f"{name}: Forbidden: field is immutable when `immutable` is set"


def _immutable(before: Document, after: Document, path: str) -> Iterator[str]:
    found: Any = at(after, path)
    if at(before, path) != found:
        yield f"{path}: Invalid value: {format_value(found)}: field is immutable"


_BY_KIND: dict[str, Callable[[Document, Document], Iterator[str]]] = {
    "Pod": _pod,
    "Deployment": _selector,
    "ReplicaSet": _selector,
    "DaemonSet": _selector,
    "StatefulSet": _stateful_set,
    "PriorityClass": _priority_class,
    "ConfigMap": _fixed_data,
    "Secret": _fixed_data,
}
