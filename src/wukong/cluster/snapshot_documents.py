"""Reads the objects of a snapshot as documents, for a simulation that starts from it.

Called by `wukong sim run -s`. Takes the same files as files.py and reports the same problems. It also reads Jobs
and ControllerRevisions, which Kubernetes' own controllers read. Never writes.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator
from typing import Any

import msgspec

from wukong.api.decode import decode_objects, find_kind, is_json
from wukong.api.documents import SharedValues, unfold_list, without_nulls
from wukong.api.json_values import decode_json, load_json
from wukong.api.kinds import KINDS
from wukong.api.resources import group_of
from wukong.api.yaml_values import load_documents
from wukong.cluster.checks import problems_of
from wukong.cluster.document_shapes import find_shape_problems, is_time
from wukong.cluster.files import SNAPSHOT_COMMAND, files_of, pause_garbage_collector, place_name, read_text
from wukong.errors import InputError
from wukong.placement.node_groups.cluster import tells_node_groups
from wukong.ports import Document

MARK = "wukongSnapshot"  # on a List that `wukong snapshot` wrote: not whole objects, only what decides


class Documents(msgspec.Struct):
    """The objects of a snapshot. `is_reduced`: fields that do not decide placement are not in it."""

    items: list[Document] = []
    node_groups: list[Document] = []  # what tells of the groups that nodes come from; no part of the cluster itself
    is_reduced: bool = False
    taken_at: str = ""  # when, if it says


def read_documents(path: str, skipped: Tally[str]) -> Documents:
    """Return every object of a snapshot. Kinds that no actor reads are counted in `skipped`. Raises InputError."""
    documents = Documents()
    problems: list[str] = []
    with pause_garbage_collector():
        for file in files_of(path):
            data = bytes(read_text(file))
            try:
                _check(data)
                _read(data, documents, skipped)
            except InputError as error:
                problems += error.at(place_name(file)).problems
    problems += [
        f"{place_name(path)}: {name} is there twice. Remove one of the two."
        for name in _find_duplicates(documents.items)
    ]
    if problems:
        raise InputError(*problems)
    if not documents.items:
        raise InputError(f"{place_name(path)}: expected Kubernetes objects, found none. Take one: {SNAPSHOT_COMMAND}")
    return documents


def _check(data: bytes) -> None:
    """Raise InputError with every problem of the objects by themselves."""
    problems = [
        f"{subject.kind} {subject.key}: {problem}"
        for subject in decode_objects(data, skipped=Tally())
        for problem in problems_of(subject, thorough=True)
    ]
    if problems:
        raise InputError(*problems)


def _find_duplicates(items: list[Document]) -> list[str]:
    """Return the objects that are there twice, as `Kind key`. Kinds of other groups may have the same names."""
    names = [(group_of(str(item.get("apiVersion") or "")), item["kind"], _key_of(item)) for item in items]
    if len(set(names)) == len(names):
        return []
    return [f"{kind} {key}" for (_, kind, key), number in Tally(names).items() if number > 1]


def _key_of(document: Document) -> str:
    meta = document.get("metadata")
    if not isinstance(meta, dict):
        return ""
    kind = KINDS.of_document(document["kind"], document.get("apiVersion") or "")
    namespace = (meta.get("namespace") or "default") if kind is None or kind.resource.namespaced else ""
    name = meta.get("name")
    return f"{namespace}/{name}" if namespace and name else str(namespace or name or "")


def _read(data: bytes, documents: Documents, skipped: Tally[str]) -> None:
    values = SharedValues()
    problems: list[str] = []
    for document in _parse(data):
        if not isinstance(document, dict):
            raise InputError(f"expected a Kubernetes object (a mapping with kind and metadata), got {document!r:.200}.")
        if isinstance(mark := document.get(MARK), dict):
            documents.is_reduced, documents.taken_at = True, str(mark.get("takenAt") or "")
            if documents.taken_at and not is_time(documents.taken_at):
                expected = 'expected a time such as "2026-01-01T00:00:00Z"'
                raise InputError(f"$.{MARK}.takenAt: {expected}, got {documents.taken_at!r:.60}. Mend it.")
        for item in unfold_list(document):
            if isinstance(item, dict) and tells_node_groups(item):
                documents.node_groups.append(item)
            elif is_known(item, skipped):
                shape_problems = find_shape_problems(item, is_decoded=True)
                problems += [f"{item['kind']} {_key_of(item)}: {problem}" for problem in shape_problems]
                documents.items.append(item if problems else values.share(item))
    if problems:
        raise InputError(*problems)


class _RawList(msgspec.Struct):
    """A List of which the items are not read yet."""

    kind: str
    api_version: str | None = msgspec.field(name="apiVersion", default=None)
    items: list[msgspec.Raw] | None = None
    mark: Document | None = msgspec.field(name=MARK, default=None)


_raw_list_decoder = msgspec.json.Decoder(_RawList)


def _parse(data: bytes) -> Iterator[Any]:
    """Give each document of a text; the items of a large List one by one, as Lists of their own."""
    if is_json(data):
        try:
            raw = decode_json(data, _raw_list_decoder)
        except msgspec.ValidationError:
            raw = None
        if raw is not None and raw.kind.endswith("List"):
            head = {"kind": raw.kind, "apiVersion": raw.api_version}
            yield {**head, MARK: raw.mark}
            for item in raw.items or ():
                yield {**head, "items": [load_json(item)]}
            return
    yield from _parse_whole(data)


def _parse_whole(data: bytes) -> list[Any]:
    if is_json(data):
        return [load_json(data)]
    return [without_nulls(document) for document in load_documents(data) if document is not None]


def is_known(document: Document, skipped: Tally[str]) -> bool:
    """Tell whether a forecast loads the object. Other kinds are counted in `skipped`, or refused like in decode."""
    name, version = str(document.get("kind") or ""), str(document.get("apiVersion") or "")
    kind = KINDS.of_document(name, version)
    if kind is not None and kind.loads and version in ("", kind.resource.api_version):
        return True
    return find_kind(name, version, skipped) is not None
