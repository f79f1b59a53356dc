"""What a story tells of a HorizontalPodAutoscaler: how it scales, and within which bounds it stays where it cannot.

Called by recorder.py with every change of one. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from wukong.api.autoscaling import HorizontalPodAutoscaler
from wukong.api.meta import Object
from wukong.embedded.store.documents import condition_of
from wukong.ports import Document


def describe_autoscaler_change(old: Object | None, new: Object | None) -> Iterator[str]:
    if not isinstance(new, HorizontalPodAutoscaler):
        return
    before, after = _document_of(old), _document_of(new)
    was, now = before.get("status") or {}, after.get("status") or {}
    target = new.spec.scale_target_ref
    if now.get("lastScaleTime") and now.get("lastScaleTime") != was.get("lastScaleTime"):
        counts = f"from {now.get('currentReplicas', 0)} to {now.get('desiredReplicas', 0)}"
        yield f"scales {target.kind} {target.name} {counts}"
    active, was_active = (condition_of(document, "ScalingActive") or {} for document in (after, before))
    changed = (active.get("status"), active.get("reason")) != (was_active.get("status"), was_active.get("reason"))
    if changed and active.get("status") == "False":
        least = 1 if new.spec.min_replicas is None else new.spec.min_replicas
        bounds = f"{least} to {new.spec.max_replicas} replicas"
        yield f"{active.get('reason')}: keeps {target.kind} {target.name} within {bounds}, as it is"


def _document_of(subject: Object | None) -> Document:
    document: Document = getattr(subject, "document", {})
    return document
