"""Wukongs of a text that people wrote: those that can be read, and what is wrong with the others. Pure.

Called by `wukong lint`. Reading is strict: a field that nobody knows is a typo.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from wukong.api.decode import readable
from wukong.api.documents import unfold_list, without_nulls
from wukong.api.strict import unknown_fields
from wukong.api.vm import VM_GROUP, VM_VERSION, Wukong
from wukong.api.yaml_values import load_documents
from wukong.placement.vm.finding import Finding

API_VERSION = f"{VM_GROUP}/{VM_VERSION}"


def read_wukongs(
    data: bytes, choose_namespace: Callable[[str, str], str]
) -> tuple[list[Wukong], list[Finding], list[str]]:
    """The Wukongs of a text, findings about what is written wrongly, and the kinds of other objects in it.

    Raises InputError where the text itself is broken. `choose_namespace` makes of the one a Wukong names, or "", and of
    what it is called, its namespace.
    """
    wukongs: list[Wukong] = []
    findings: list[Finding] = []
    other_kinds: list[str] = []
    for document in _list_documents(data):
        if document.get("kind") != "Wukong":
            other_kinds.append(str(document.get("kind") or "nothing"))
            continue
        wukong, problems = _read_wukong(document, choose_namespace)
        findings += problems
        if wukong is not None:
            wukongs.append(wukong)
    return wukongs, findings, other_kinds


def _read_wukong(
    document: dict[str, Any], choose_namespace: Callable[[str, str], str]
) -> tuple[Wukong | None, list[Finding]]:
    metadata = document.get("metadata")
    name = str(metadata.get("name") or "") if isinstance(metadata, dict) else ""
    named = dict(metadata) if isinstance(metadata, dict) else {}
    if isinstance(namespace := named.get("namespace") or "", str):
        named["namespace"] = choose_namespace(namespace, f"Wukong {name}")
    subject = f"{named['namespace']}/{name}"
    problems = list(_find_head_problems(document, name))
    problems += unknown_fields(document, Wukong)
    findings = [_finding_of(subject, problem) for problem in problems]
    try:
        wukong = msgspec.convert(without_nulls({**document, "metadata": named}), Wukong)
    except msgspec.ValidationError as error:
        return None, [*findings, _finding_of(subject, readable(error))]
    return wukong, findings


def _find_head_problems(document: dict[str, Any], name: str) -> Iterator[str]:
    if document.get("apiVersion") != API_VERSION:
        yield f"$.apiVersion: expected {API_VERSION}, got {document.get('apiVersion')!r}. Write it so."
    if not name:
        yield "$.metadata.name: expected a name, got none. Give it one."
    if "spec" not in document:
        yield "$.spec: expected what the machines are, got nothing. Add a spec, if only {}."


def _finding_of(subject: str, problem: str) -> Finding:
    path, _, text = problem.partition(": ")
    what, _, fix = text.partition(". ")
    return Finding("error", subject, path, f"{what.rstrip('.')}.", fix)


def _list_documents(data: bytes) -> Iterator[dict[str, Any]]:
    for document in load_documents(data):
        if isinstance(document, dict):
            items = unfold_list(document) if "items" in document else [document]
            yield from (item for item in items if isinstance(item, dict))
