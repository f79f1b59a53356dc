"""Reads a snapshot as it is: whole documents, for those who play on with it instead of only deciding on it.

Called by `wukong sim run -s`. Takes the same files as files.py and complains in the same words. It knows two kinds
more, by which Kubernetes' own controllers remember: Job and ControllerRevision. Never writes.
"""

from __future__ import annotations

from collections import Counter as Tally
from typing import Any

import msgspec
import yaml

from wukong.api.decode import decode_objects, find_kind
from wukong.api.documents import as_json, unfold_list, without_nulls
from wukong.api.kinds import KINDS
from wukong.api.resources import group_of
from wukong.cluster.checks import problems_of
from wukong.cluster.files import SNAPSHOT_COMMAND, collector_paused, files_of, place_name, read_text
from wukong.errors import InputError
from wukong.ports import Document

MARK = "wukongSnapshot"  # on a List that `wukong snapshot` wrote: not whole objects, only what decides


class Documents(msgspec.Struct):
    """The objects of a snapshot. `is_reduced`: fields that do not decide placement are not in it."""

    items: list[Document] = []
    is_reduced: bool = False
    taken_at: str = ""  # when, if it says


def read_documents(path: str, skipped: Tally[str]) -> Documents:
    """Every object of a snapshot; kinds that nobody acts on are counted in `skipped`. Raises InputError."""
    found = Documents()
    problems: list[str] = []
    with collector_paused():
        for file in files_of(path):
            data = bytes(read_text(file))
            try:
                _check(data)
                _read(data, found, skipped)
            except InputError as error:
                problems += error.at(place_name(file)).problems
    problems += [f"{place_name(path)}: {each} is there twice. Remove one of the two." for each in _twice(found.items)]
    if problems:
        raise InputError(*problems)
    if not found.items:
        raise InputError(f"{place_name(path)}: expected Kubernetes objects, found none. Take one: {SNAPSHOT_COMMAND}")
    return found


def _check(data: bytes) -> None:
    """What is wrong with the objects by themselves, all at once."""
    found = ((each, problems_of(each, thorough=True)) for each in decode_objects(data, skipped=Tally()))
    problems = [f"{each.kind} {each.key}: {problem}" for each, wrong in found for problem in wrong]
    if problems:
        raise InputError(*problems)


def _twice(items: list[Document]) -> list[str]:
    """The objects of which there are two, by kind and key; kinds of other groups may have the same names."""
    counts = Tally((group_of(str(item.get("apiVersion") or "")), item["kind"], _key(item)) for item in items)
    return [f"{kind} {key}" for (_, kind, key), number in counts.items() if number > 1]


def _key(document: Document) -> str:
    meta = document.get("metadata") or {}
    kind = KINDS.of_document(document["kind"], document.get("apiVersion") or "")
    namespace = (meta.get("namespace") or "default") if kind is None or kind.resource.namespaced else ""
    return "/".join(filter(None, (namespace, meta.get("name"))))


def _read(data: bytes, found: Documents, skipped: Tally[str]) -> None:
    for document in _parsed(data):
        if not isinstance(document, dict):
            raise InputError(f"expected a Kubernetes object (a mapping with kind and metadata), got {document!r:.200}.")
        if isinstance(mark := document.get(MARK), dict):
            found.is_reduced, found.taken_at = True, str(mark.get("takenAt") or "")
        for each in unfold_list(document):
            if is_known(each, skipped):
                found.items.append(each)


def _parsed(data: bytes) -> list[Any]:
    try:
        if data.lstrip()[:1] == b"{":
            return [msgspec.json.decode(data)]
    except msgspec.DecodeError:
        pass  # {kind: Pod} is YAML
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        documents = [each for each in yaml.load_all(data, Loader=loader) if each is not None]
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(f"broken YAML: {error}") from None
    return [without_nulls(as_json(each)) for each in documents]


def is_known(document: Document, skipped: Tally[str]) -> bool:
    """Whether a forecast loads it. Other kinds are counted in `skipped`, or refused as decode_objects does."""
    name, version = str(document.get("kind") or ""), str(document.get("apiVersion") or "")
    kind = KINDS.of_document(name, version)
    if kind is not None and kind.loads and not kind.decides:
        return version == kind.resource.api_version
    return find_kind(name, version, skipped) is not None
