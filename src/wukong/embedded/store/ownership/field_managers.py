"""Field managers: what a write changes in metadata.managedFields, and server-side apply.

Called by server.py and managed_fields.py. As deep as our own writes need it: values and owners are merged and compared
by field, but no field is reset by a strategy, and managers of versions other than the one written are not converted.
"""

from __future__ import annotations

import msgspec

from wukong.embedded.store.documents import copy_document, format_time, meta_of, with_metadata, without_fields
from wukong.embedded.store.kinds import ServedKind
from wukong.embedded.store.ownership import field_sets as sets
from wukong.embedded.store.ownership.field_sets import Fields, Path
from wukong.embedded.store.patch.merge_keys import Described, Shape, typed_shape
from wukong.errors import Conflict
from wukong.ports import Document

_SYSTEM_METADATA = (
    "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
    "deletionGracePeriodSeconds", "selfLink", "managedFields",
)  # fmt: skip
_METADATA_ITSELF: Fields = {"f:metadata": {}}  # nobody owns it, and it is never removed


class Writer(msgspec.Struct, frozen=True):
    """Who writes: the field manager, the operation (Update or Apply), and the subresource."""

    manager: str
    operation: str = "Update"
    subresource: str = ""


def update_entries(
    kind: ServedKind, entries: list[Document], before: Document, after: Document, writer: Writer, now: float
) -> list[Document]:
    """Return the entries of managedFields, which were `entries`, when `writer` has changed `before` into `after`."""
    changes = list(sets.diff_fields(_owned_part_of(before), _owned_part_of(after), _shape_of(kind)))
    if not changes:
        return entries
    gained, new_entries, own_fields = [path for path, is_set in changes if is_set], [], Fields()
    for entry in entries:
        is_own = _is_entry_of(entry, writer)
        lost = [path for path, is_set in changes if not is_set or not is_own]
        entry_fields = entry.get("fieldsV1") or {}
        remaining = sets.remove_paths(entry_fields, lost)
        if is_own:
            own_fields = remaining
        elif remaining:
            new_entries.append(entry if remaining is entry_fields else {**entry, "fieldsV1": remaining})
    fields = sets.add_paths(own_fields, gained)
    if fields:
        new_entries.append(_build_entry(kind, writer, fields, format_time(now)))
        new_entries.sort(key=_sort_key_of)
    return new_entries


def apply_configuration(
    kind: ServedKind, live: Document | None, configuration: Document, writer: Writer, *, force: bool, now: float
) -> Document:
    """Return what an apply makes of the live object, with its managedFields.

    Raises Conflict where other managers own a field it would change, unless `force` is given.
    """
    shape, applied_part = _shape_of(kind), _owned_part_of(configuration)
    if not writer.subresource and kind.has_status:
        applied_part = without_fields(applied_part, "status")
    elif writer.subresource == "status":
        applied_part = {name: value for name, value in applied_part.items() if name == "status"}
    own_fields: Fields = sets.add_paths({}, sets.leaf_paths_of(applied_part, shape))
    entries = _entries_of(live) if live else {}
    previous, time = entries.pop(writer, ({}, ""))
    result = sets.merge_applied(live, copy_document(applied_part), shape) if live else copy_document(configuration)
    if live:
        changed = {
            path for path, is_set in sets.diff_fields(_owned_part_of(live), _owned_part_of(result), shape) if is_set
        }
        entries = _resolve_conflicts(entries, sorted(changed), force)
        owned_sets = [own_fields, _METADATA_ITSELF, *(fields for fields, _ in entries.values())]
        for path in sets.removable_paths_of(previous):
            if not any(sets.covers_path(fields, path) for fields in owned_sets):
                result = sets.remove_field(result, path, shape)
    entries[writer] = own_fields, time if live and own_fields == previous and result == live else format_time(now)
    return _with_entries(result, kind, entries)


def claim_fields(kind: ServedKind, live: Document, configuration: Document, writer: Writer, now: float) -> Document:
    """Return `live` as if `writer`, and nobody else, had applied this configuration. For objects of a snapshot."""
    fields: Fields = sets.add_paths({}, sets.leaf_paths_of(_owned_part_of(configuration), _shape_of(kind)))
    return _with_entries(live, kind, {writer: (fields, format_time(now))})


def _resolve_conflicts(
    entries: dict[Writer, tuple[Fields, str]], changed: list[Path], force: bool
) -> dict[Writer, tuple[Fields, str]]:
    """Return what the other managers own afterwards. Raises Conflict, or with `force` takes the fields from them."""
    conflicts = [
        (owner, path) for owner, (fields, _) in entries.items() for path in changed if sets.has_path(fields, path)
    ]
    if conflicts and not force:
        raise _conflict_error(conflicts)
    for owner, path in conflicts:
        fields, time = entries[owner]
        entries[owner] = sets.remove_path(fields, path), time
    return entries


def _conflict_error(conflicts: list[tuple[Writer, Path]]) -> Conflict:
    count = f"{len(conflicts)} conflict{'s' if len(conflicts) > 1 else ''}"
    descriptions = [f"{_describe_owner(owner)}: {sets.format_path(path)}" for owner, path in conflicts]
    text = descriptions[0] if len(descriptions) == 1 else "conflicts " + " ".join(descriptions)
    return Conflict(f"Apply failed with {count}: {text}", reason="Conflict")


def _describe_owner(writer: Writer) -> str:
    through = f' with subresource "{writer.subresource}"' if writer.subresource else ""
    return f'conflict with "{writer.manager}"{through}' + (" using v1" if writer.operation == "Update" else "")


def _owned_part_of(document: Document) -> Document:
    """Return the part of a document that field managers own."""
    rest = without_fields(document, "apiVersion", "kind", "metadata")
    meta = without_fields(meta_of(document), *_SYSTEM_METADATA)
    return {"metadata": meta, **rest} if meta else rest


def _shape_of(kind: ServedKind) -> Shape:
    return typed_shape(kind.type) if kind.schema is None else Described(kind.schema)


def _entries_of(document: Document) -> dict[Writer, tuple[Fields, str]]:
    """Return the fields and the time of every writer in managedFields."""
    entries: dict[Writer, tuple[Fields, str]] = {}
    for entry in meta_of(document).get("managedFields") or []:
        writer = Writer(entry["manager"], entry["operation"], entry.get("subresource", ""))
        entries[writer] = entry.get("fieldsV1") or {}, entry.get("time", "")
    return entries


def _with_entries(document: Document, kind: ServedKind, entries: dict[Writer, tuple[Fields, str]]) -> Document:
    managed_fields = [_build_entry(kind, writer, fields, time) for writer, (fields, time) in entries.items() if fields]
    managed_fields.sort(key=_sort_key_of)
    return with_metadata(document, managedFields=managed_fields or None)


def _build_entry(kind: ServedKind, writer: Writer, fields: Fields, time: str) -> Document:
    return {
        "manager": writer.manager,
        "operation": writer.operation,
        "apiVersion": kind.resource.api_version,
        "time": time,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        **({"subresource": writer.subresource} if writer.subresource else {}),
    }


def _is_entry_of(entry: Document, writer: Writer) -> bool:
    identity = (entry["manager"], entry["operation"], entry.get("subresource", ""))
    return identity == (writer.manager, writer.operation, writer.subresource)


def _sort_key_of(entry: Document) -> tuple[str, ...]:
    return entry["operation"], entry.get("time", ""), entry["manager"], entry.get("subresource", "")
