"""Field managers: what a write adds to and takes from metadata.managedFields, and server-side apply.

Called by server.py. As deep as our own writes need it: values and owners are merged and compared by field, but no
field is reset by a strategy, and managers of versions other than the one written are not converted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from wukong.embedded.store.documents import copy_document, format_time, meta_of, with_metadata, without_fields
from wukong.embedded.store.kinds import Kind
from wukong.embedded.store.ownership import field_sets as sets
from wukong.embedded.store.ownership.field_sets import Fields, Path
from wukong.embedded.store.patch.merge_keys import Described, Named, Shape
from wukong.errors import Conflict
from wukong.ports import Document

_SYSTEM = (
    "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
    "deletionGracePeriodSeconds", "selfLink", "managedFields",
)  # fmt: skip
_HEAD: Fields = {"f:metadata": {}}  # nobody owns it, and it stays


class Writer(msgspec.Struct, frozen=True):
    """Who writes, in which way, and through which subresource."""

    manager: str
    operation: str = "Update"
    subresource: str = ""


def updated(kind: Kind, before: Document | None, after: Document, writer: Writer, now: float) -> Document:
    """`after` with its managedFields as they are when `writer` made it of `before`."""
    changes = list(sets.differences(_owned(before or {}), _owned(after), _shape(kind)))
    made: list[Document] = meta_of(before).get("managedFields") or [] if before else []
    if not changes:
        return with_metadata(after, managedFields=made or None)
    gained, kept, mine = [path for path, is_set in changes if is_set], [], Fields()
    for entry in made:
        is_mine = _is_of(entry, writer)
        lost = [path for path, is_set in changes if not is_set or not is_mine]
        known = entry.get("fieldsV1") or {}
        left = sets.removed(known, lost)
        if is_mine:
            mine = left
        elif left:
            kept.append(entry if left is known else {**entry, "fieldsV1": left})
    fields = sets.added(mine, gained)
    if fields:
        kept.append(_entry(kind, writer, fields, format_time(now)))
        kept.sort(key=_order)
    return with_metadata(after, managedFields=kept or None)


def created(kind: Kind, document: Document, writer: Writer, now: float, known: Mapping[str, Fields]) -> Document:
    """A new document with its managedFields. `known` has what `fields_of` makes of some of its parts."""
    shape, mine = _shape(kind), {}
    for name, value in _owned(document).items():
        mine[f"f:{name}"] = known.get(name) or fields_of(shape, name, value)
    return _with(document, kind, {writer: (mine, format_time(now))})


def fields_of(shape: Shape, name: str, value: object) -> Fields:
    """The fields of one part of a new document."""
    found = sets.added({}, (path for path, _ in sets.differences({}, {name: value}, shape)))
    fields: Fields = found[f"f:{name}"]
    return fields


def applied(
    kind: Kind, live: Document | None, configuration: Document, writer: Writer, *, force: bool, now: float
) -> Document:
    """The object that an apply makes, managedFields included. Raises Conflict where others own what it would change."""
    shape, wanted = _shape(kind), _owned(configuration)
    if not writer.subresource and kind.has_status:
        wanted = without_fields(wanted, "status")
    elif writer.subresource == "status":
        wanted = {name: value for name, value in wanted.items() if name == "status"}
    own: Fields = sets.added({}, sets.leaves(wanted, shape))
    entries = _entries(live) if live else {}
    previous, since = entries.pop(writer, ({}, ""))
    result = sets.merged(live, copy_document(wanted), shape) if live else copy_document(configuration)
    if live:
        changed = {path for path, is_set in sets.differences(_owned(live), _owned(result), shape) if is_set}
        entries = _without_conflicts(entries, sorted(changed), force)
        holders = [own, _HEAD, *(known for known, _ in entries.values())]
        for path in sets.removable(previous):
            if not any(sets.reaches(known, path) for known in holders):
                result = sets.cut(result, path, shape)
    entries[writer] = own, since if live and own == previous and result == live else format_time(now)
    return _with(result, kind, entries)


def claimed(kind: Kind, live: Document, configuration: Document, writer: Writer, now: float) -> Document:
    """`live` as if `writer`, and nobody else, had applied this configuration before: for objects of a snapshot."""
    own: Fields = sets.added({}, sets.leaves(_owned(configuration), _shape(kind)))
    return _with(live, kind, {writer: (own, format_time(now))})


def _without_conflicts(
    entries: dict[Writer, tuple[Fields, str]], changed: list[Path], force: bool
) -> dict[Writer, tuple[Fields, str]]:
    """What the others own afterwards: with force, not what is taken from them."""
    conflicts = [(other, path) for other, (known, _) in entries.items() for path in changed if sets.has(known, path)]
    if conflicts and not force:
        raise _conflict(conflicts)
    for other, path in conflicts:
        known, since = entries[other]
        entries[other] = sets.remove(known, path), since
    return entries


def _conflict(conflicts: list[tuple[Writer, Path]]) -> Conflict:
    count = f"{len(conflicts)} conflict{'s' if len(conflicts) > 1 else ''}"
    said = [f"{_named(other)}: {sets.shown(path)}" for other, path in conflicts]
    text = said[0] if len(said) == 1 else "conflicts " + " ".join(said)
    return Conflict(f"Apply failed with {count}: {text}", reason="Conflict")


def _named(writer: Writer) -> str:
    through = f' with subresource "{writer.subresource}"' if writer.subresource else ""
    return f'conflict with "{writer.manager}"{through}' + (" using v1" if writer.operation == "Update" else "")


def _owned(document: Document) -> Document:
    """The part of a document that managers own."""
    rest = without_fields(document, "apiVersion", "kind", "metadata")
    meta = without_fields(meta_of(document), *_SYSTEM)
    return {"metadata": meta, **rest} if meta else rest


def _shape(kind: Kind) -> Shape:
    return Named() if kind.schema is None else Described(kind.schema)


def _entries(document: Document) -> dict[Writer, tuple[Fields, str]]:
    return dict(_read(document))


def _read(document: Document) -> Iterator[tuple[Writer, tuple[Fields, str]]]:
    for entry in meta_of(document).get("managedFields") or []:
        writer = Writer(entry["manager"], entry["operation"], entry.get("subresource", ""))
        yield writer, (entry.get("fieldsV1") or {}, entry.get("time", ""))


def _with(document: Document, kind: Kind, entries: dict[Writer, tuple[Fields, str]]) -> Document:
    made = [_entry(kind, writer, known, since) for writer, (known, since) in entries.items() if known]
    made.sort(key=_order)
    return with_metadata(document, managedFields=made or None)


def _entry(kind: Kind, writer: Writer, known: Fields, since: str) -> Document:
    return {
        "manager": writer.manager,
        "operation": writer.operation,
        "apiVersion": kind.resource.api_version,
        "time": since,
        "fieldsType": "FieldsV1",
        "fieldsV1": known,
        **({"subresource": writer.subresource} if writer.subresource else {}),
    }


def _is_of(entry: Document, writer: Writer) -> bool:
    has = (entry["manager"], entry["operation"], entry.get("subresource", ""))
    return has == (writer.manager, writer.operation, writer.subresource)


def _order(entry: Document) -> tuple[str, ...]:
    return entry["operation"], entry.get("time", ""), entry["manager"], entry.get("subresource", "")
