"""Finds and drops the fields of a manifest that Kubernetes does not know: an API server drops them, so they are slips.

Called by whoever reads or applies manifests of people. Pure. Kinds that are not in the table of field types have none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wukong.api.documents import path_of
from wukong.api.field_types import LIST, MAP, STRUCT, Type, type_of
from wukong.api.kinds import KINDS
from wukong.errors import nearest


def find_unknown_fields(document: dict[str, Any]) -> list[str]:
    """Return `$.spec.replica: unknown field. Did you mean "replicas"?` for each."""
    type_ = _type_of(document)
    return [] if type_ is None else list(_find(document, type_, "$"))


def drop_unknown_fields(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document without them; itself if it has none."""
    type_ = _type_of(document)
    if type_ is None or next(_find(document, type_, "$"), None) is None:
        return document
    dropped: dict[str, Any] = _drop(document, type_)
    return dropped


def _type_of(document: dict[str, Any]) -> Type | None:
    kind = KINDS.of_document(str(document.get("kind") or ""), str(document.get("apiVersion") or ""))
    return type_of(kind.resource) if kind is not None and kind.is_built_in else None


def _drop(value: Any, type_: Type) -> Any:
    if type_.shape == STRUCT and isinstance(value, dict):
        return {name: _drop(entry, type_.fields[name].type) for name, entry in value.items() if name in type_.fields}
    if type_.shape == LIST and isinstance(value, list):
        assert type_.inner is not None
        return [_drop(entry, type_.inner) for entry in value]
    if type_.shape == MAP and isinstance(value, dict):
        assert type_.inner is not None
        return {name: _drop(entry, type_.inner) for name, entry in value.items()}
    return value


def _find(value: Any, type_: Type, path: str) -> Iterator[str]:
    if type_.shape == STRUCT and isinstance(value, dict):
        for name, entry in value.items():
            field = type_.fields.get(name) if isinstance(name, str) else None
            if field is not None:
                yield from _find(entry, field.type, f"{path}.{name}")
            else:
                hint = nearest(str(name), type_.fields)
                yield f"{path_of(path, str(name))}: unknown field.{hint}"
    elif type_.shape == LIST and isinstance(value, list):
        assert type_.inner is not None
        for index, entry in enumerate(value):
            yield from _find(entry, type_.inner, f"{path}[{index}]")
    elif type_.shape == MAP and isinstance(value, dict):
        assert type_.inner is not None
        for name, entry in value.items():
            yield from _find(entry, type_.inner, path_of(path, str(name)))
