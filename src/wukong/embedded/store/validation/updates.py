"""Finds the changes of immutable fields, which the API server refuses. Called by objects.py; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from wukong.admission.problem_text import format_value
from wukong.embedded.store.documents import has_same_desired_state, value_at, without_fields
from wukong.embedded.store.limits.validation import find_scope_changes
from wukong.embedded.store.validation.claims import find_claim_changes
from wukong.ports import Document

_POD_MESSAGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_MUTABLE_POD_FIELDS = (
    "activeDeadlineSeconds",
    "tolerations",
    "schedulingGates",
    "terminationGracePeriodSeconds",
    "nodeSelector",
)
_STATEFUL_SET_MESSAGE = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_MUTABLE_STATEFUL_SET_FIELDS = (
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit", "minReadySeconds",
    "persistentVolumeClaimRetentionPolicy",
)  # fmt: skip


def find_forbidden_changes(kind: str, before: Document, after: Document) -> list[str]:
    is_unchanged = kind != "PersistentVolumeClaim" and has_same_desired_state(
        before, after
    )  # of one an annotation counts
    if kind not in _BY_KIND or is_unchanged:
        return []
    return list(_BY_KIND[kind](before, after))


def _find_pod_changes(before: Document, after: Document) -> Iterator[str]:
    old, new = before.get("spec") or {}, after.get("spec") or {}
    if old == new:
        return
    if container_changes := list(_find_container_changes(old, new)):
        yield container_changes[0]
        return
    yield from _find_deadline_changes(old.get("activeDeadlineSeconds"), new.get("activeDeadlineSeconds"))
    old_tolerations, new_tolerations = (
        [without_fields(toleration, "tolerationSeconds") for toleration in spec.get("tolerations") or []]
        for spec in (old, new)
    )
    if any(toleration not in new_tolerations for toleration in old_tolerations):
        yield "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"
    gates = old.get("schedulingGates") or []
    for index, gate in enumerate(new.get("schedulingGates") or []):
        if gate not in gates:
            detail = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            yield f"spec.schedulingGates[{index}].name: Forbidden: {detail}"
    old_grace, new_grace = (spec.get("terminationGracePeriodSeconds") for spec in (old, new))
    if old_grace != new_grace and not (new_grace == 1 and old_grace is not None and old_grace < 0):
        yield f"spec: Forbidden: {_POD_MESSAGE}"
    yield from _find_node_choice_changes(old, new, is_gated=bool(gates))
    if _munge(old) != _munge(new):
        yield f"spec: Forbidden: {_POD_MESSAGE}"


def _find_container_changes(old: Document, new: Document) -> Iterator[str]:
    for name in ("containers", "initContainers"):
        if len(old.get(name) or []) != len(new.get(name) or []):
            yield f"spec.{name}: Forbidden: pod updates may not add or remove containers"


def _find_deadline_changes(old: int | None, new: int | None) -> Iterator[str]:
    place = "spec.activeDeadlineSeconds: Invalid value"
    if new is None and old is not None:
        yield f"{place}: null: must not update from a positive integer to nil value"
    elif new is not None and old is not None and new > old:
        yield f"{place}: {new}: must be less than or equal to previous value"


def _find_node_choice_changes(old: Document, new: Document, *, is_gated: bool) -> Iterator[str]:
    """Check the node selector and the affinity. While a pod has scheduling gates, its node selector may be extended
    and its node affinity may change.
    """
    if (before := old.get("nodeSelector") or {}) != (after := new.get("nodeSelector") or {}):
        if not is_gated:
            yield f"spec: Forbidden: {_POD_MESSAGE}"
        elif any(after.get(key) != value for key, value in before.items()):
            yield "spec.nodeSelector: Invalid value: only additions to spec.nodeSelector are allowed (no mutations)"
    if old.get("affinity") != new.get("affinity"):
        other_affinities = [without_fields(spec.get("affinity") or {}, "nodeAffinity") for spec in (old, new)]
        if not is_gated or other_affinities[0] != other_affinities[1]:
            yield f"spec: Forbidden: {_POD_MESSAGE}"


def _munge(spec: Document) -> Document:
    """Return the spec without the fields that may change or have been checked already."""
    plain = without_fields(spec, *_MUTABLE_POD_FIELDS, "affinity", "containers", "initContainers")
    images = [
        [without_fields(container, "image") for container in spec.get(name) or []]
        for name in ("containers", "initContainers")
    ]
    return {**plain, "images": images}


def _find_selector_changes(before: Document, after: Document) -> Iterator[str]:
    yield from _find_change_at(before, after, "spec.selector")


def _find_stateful_set_changes(before: Document, after: Document) -> Iterator[str]:
    old, new = (
        without_fields(document.get("spec") or {}, *_MUTABLE_STATEFUL_SET_FIELDS) for document in (before, after)
    )
    if old != new:
        yield f"spec: Forbidden: {_STATEFUL_SET_MESSAGE}"


def _find_job_changes(before: Document, after: Document) -> Iterator[str]:
    """While a Job is suspended and has not begun, where its pods may run can change."""
    for name in (
        "selector",
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ):
        yield from _find_change_at(before, after, f"spec.{name}")
    old, new = before.get("spec") or {}, after.get("spec") or {}
    has_same_size = new.get("completions") == new.get("parallelism") and old.get("completions") is not None
    if new.get("completionMode") != "Indexed" or not has_same_size or new.get("completions") is None:
        yield from _find_change_at(before, after, "spec.completions")
    is_suspended = bool(old.get("suspend")) and "startTime" not in (before.get("status") or {})
    templates = [spec.get("template") or {} for spec in (old, new)]
    if is_suspended:
        templates = [_without_scheduling(template) for template in templates]
    if templates[0] != templates[1]:
        yield f"spec.template: Invalid value: {format_value(new.get('template'))}: field is immutable"


def _without_scheduling(template: Document) -> Document:
    spec = without_fields(template.get("spec") or {}, "nodeSelector", "tolerations", "schedulingGates")
    if (affinity := without_fields(spec.pop("affinity", {}), "nodeAffinity")) != {}:
        spec["affinity"] = affinity
    meta = without_fields(template.get("metadata") or {}, "annotations", "labels")
    return {**template, "metadata": meta, "spec": spec}


def _find_priority_class_changes(before: Document, after: Document) -> Iterator[str]:
    if before.get("value") != after.get("value"):
        yield "value: Forbidden: may not be changed in an update."
    yield from _find_change_at(before, after, "preemptionPolicy")


def _find_data_changes(before: Document, after: Document) -> Iterator[str]:
    if before.get("immutable"):
        for name in ("data", "binaryData", "immutable"):
            if before.get(name) != after.get(name):
                yield f"{name}: Forbidden: field is immutable when `immutable` is set"


def _find_change_at(before: Document, after: Document, path: str) -> Iterator[str]:
    value: Any = value_at(after, path)
    if value_at(before, path) != value:
        yield f"{path}: Invalid value: {format_value(value)}: field is immutable"


_BY_KIND: dict[str, Callable[[Document, Document], Iterator[str]]] = {
    "Pod": _find_pod_changes,
    "Deployment": _find_selector_changes,
    "ReplicaSet": _find_selector_changes,
    "DaemonSet": _find_selector_changes,
    "Job": _find_job_changes,
    "StatefulSet": _find_stateful_set_changes,
    "PriorityClass": _find_priority_class_changes,
    "ResourceQuota": find_scope_changes,
    "PersistentVolumeClaim": find_claim_changes,
    "ConfigMap": _find_data_changes,
    "Secret": _find_data_changes,
}
