"""Validates volume claims as ValidatePersistentVolumeClaimSpec of 1.35 does: new ones, templates, and what may change.

Called by objects.py, updates.py, and for templates by workloads.py and pods/volumes.py. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from wukong.api.field_types import struct_named
from wukong.api.quantity import parse_quantity
from wukong.embedded.store.documents import value_at
from wukong.embedded.store.semantic_equality import is_semantically_equal
from wukong.embedded.store.validation.pods.problems import (
    find_unsupported,
    forbidden,
    invalid,
    required,
)
from wukong.embedded.store.validation.pods.scheduling import find_selector_problems
from wukong.embedded.store.validation.pods.syntax import find_name_problems, find_subdomain_problems
from wukong.ports import Document
from wukong.semantics.volume_claims import CLASS_ANNOTATION

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_ONE_POD = "ReadWriteOncePod"
_VOLUME_MODES = ("Block", "Filesystem")
_CLAIM = "PersistentVolumeClaim"
_SPEC = struct_named("PersistentVolumeClaimSpec")
_IMMUTABLE = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"


def find_claim_problems(spec: Document, path: str) -> Iterator[str]:
    """Check the spec of a claim, or of one in a template."""
    modes = spec.get("accessModes") or []
    if not modes:
        yield required(f"{path}.accessModes", "at least 1 access mode is required")
    yield from find_selector_problems(spec.get("selector"), f"{path}.selector")
    for mode in modes:
        yield from find_unsupported(mode, _ACCESS_MODES, f"{path}.accessModes")
    if _ONE_POD in modes and any(mode in _ACCESS_MODES and mode != _ONE_POD for mode in modes):
        yield forbidden(f"{path}.accessModes", "may not use ReadWriteOncePod with other access modes")
    yield from _find_size_problems(spec, f"{path}.resources[storage]")
    for name in ("storageClassName", "volumeAttributesClassName"):
        if spec.get(name):
            yield from find_subdomain_problems(spec[name], f"{path}.{name}")
    yield from find_unsupported(spec.get("volumeMode"), _VOLUME_MODES, f"{path}.volumeMode")
    yield from _find_source_problems(spec, path)


def _find_size_problems(spec: Document, path: str) -> Iterator[str]:
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if storage is None:
        yield required(path)
    elif parse_quantity(storage) <= 0:
        yield invalid(path, storage, "must be greater than zero")


def _find_source_problems(spec: Document, path: str) -> Iterator[str]:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    for name, entry in (("dataSource", source), ("dataSourceRef", reference)):
        if entry is not None:
            yield from _find_reference_problems(entry, f"{path}.{name}")
    if source is None or reference is None:
        return
    if reference.get("namespace"):
        yield invalid(path, "dataSource", "may not be specified when dataSourceRef.namespace is specified")
    elif any(source.get(field) != reference.get(field) for field in ("apiGroup", "kind", "name")):
        yield invalid(path, "dataSource", "must match dataSourceRef")


def _find_reference_problems(reference: Document, path: str) -> Iterator[str]:
    for field in ("name", "kind"):
        if not reference.get(field):
            yield required(f"{path}.{field}")
    if group := reference.get("apiGroup"):
        yield from find_subdomain_problems(group, f"{path}.apiGroup")
    elif reference.get("kind") != _CLAIM:
        detail = f"must be '{_CLAIM}' when referencing the default apiGroup"
        yield invalid(path, reference.get("kind", ""), detail)
    if namespace := reference.get("namespace"):
        yield from find_name_problems(namespace, f"{path}.namespace")


def find_claim_changes(before: Document, after: Document) -> Iterator[str]:
    """Find what may not change: all of the spec, but for a volume that is named once, and the size of a bound claim."""
    old, new = before.get("spec") or {}, dict(after.get("spec") or {})
    old_class, new_class = (_annotated_class(claim) for claim in (before, after))
    is_moved = old_class is not None and old.get("storageClassName") is None
    if is_moved and new.get("storageClassName") == old_class and new_class in (None, old_class):
        new.pop("storageClassName")
    elif old_class != new_class:
        yield invalid(f"metadata.annotations.{CLASS_ANNOTATION}", new_class or "", "field is immutable")
    elif old.get("storageClassName") is None and old_class in (None, new.get("storageClassName")):
        new.pop("storageClassName", None)  # a default class may be named later
    if not old.get("volumeName"):
        new.pop("volumeName", None)
    if value_at(after, "status.phase") == "Bound":
        new = _with_old_size(old, new)
        _keep(old, new, "volumeAttributesClassName")
    kept = {name: value for name, value in old.items() if name != "volumeName" or value}
    if not is_semantically_equal(_SPEC, kept, new):
        yield forbidden("spec", _IMMUTABLE)
    if _size_of(after) < _size_of(before) and _size_of(after) <= _capacity_of(before):
        yield forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")
    if old.get("volumeMode") != (after.get("spec") or {}).get("volumeMode"):
        yield invalid("volumeMode", (after.get("spec") or {}).get("volumeMode"), "field is immutable")


def _annotated_class(claim: Document) -> str | None:
    annotations = value_at(claim, "metadata.annotations") or {}
    return annotations.get(CLASS_ANNOTATION)


def _keep(old: Document, new: Document, name: str) -> None:
    new.pop(name, None)
    if name in old:
        new[name] = old[name]


def _with_old_size(old: Document, new: Document) -> Document:
    requests = dict((new.get("resources") or {}).get("requests") or {})
    _keep((old.get("resources") or {}).get("requests") or {}, requests, "storage")
    return {**new, "resources": {**(new.get("resources") or {}), "requests": requests}}


def _size_of(claim: Document) -> int:
    return parse_quantity(value_at(claim, "spec.resources.requests.storage") or 0)


def _capacity_of(claim: Document) -> int:
    return parse_quantity(value_at(claim, "status.capacity.storage") or 0)
