"""Validates, prunes and defaults custom objects by the schema of their CustomResourceDefinition.

Checks types, required fields, enums, bounds and patterns; prunes unknown fields; fills in defaults. Messages are the
API server's. CEL rules are not evaluated here: for our own kinds see own_kinds.py, the rules of other kinds
are ignored. So are formats, but for the range of int32. Called by objects.py and writes.py; pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from wukong.api.crds import Schema
from wukong.ports import Document

_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}
_HEAD = frozenset({"apiVersion", "kind", "metadata"})
_INT32 = (-(2**31), 2**31 - 1)


def prune_and_default(document: Document, schema: Schema) -> Document:
    """Return a copy that is pruned and has the schema's defaults. The schema says nothing about the metadata."""
    inner = _fill({name: value for name, value in document.items() if name not in _HEAD}, schema)
    return {**{name: document[name] for name in document if name in _HEAD}, **inner}


def find_schema_problems(document: Document, schema: Schema) -> list[str]:
    return list(_find_problems({name: value for name, value in document.items() if name not in _HEAD}, schema, ""))


def _fill(value: Any, schema: Schema) -> Any:
    if isinstance(value, dict):
        properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
        keeps_unknown = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        result = {}
        for name, entry in value.items():
            inner = properties.get(name, more if isinstance(more, dict) else None)
            if inner is not None:
                if entry is None and "default" in inner and not inner.get("nullable"):
                    continue
                result[name] = _fill(entry, inner)
            elif keeps_unknown or more is True:
                result[name] = entry
        for name, inner in properties.items():
            if name not in result and "default" in inner:
                result[name] = _fill(msgspec.json.decode(msgspec.json.encode(inner["default"])), inner)
        return result
    if isinstance(value, list):
        return [_fill(item, schema.get("items") or {}) for item in value]
    return value


def _find_problems(value: Any, schema: Schema, path: str) -> Iterator[str]:
    if value is None:
        if schema.get("type") and not schema.get("nullable"):
            yield _describe_wrong_type(value, schema, path)
        return
    if schema.get("x-kubernetes-int-or-string"):
        if not isinstance(value, int | str) or isinstance(value, bool):
            yield _describe_wrong_type(value, {"type": "integer,string"}, path)
            return
    elif not _is_of_type(value, schema.get("type")):
        yield _describe_wrong_type(value, schema, path)
        return
    if "enum" in schema and value not in schema["enum"]:
        supported = ", ".join(f'"{option}"' for option in schema["enum"])
        yield f"{path}: Unsupported value: {_format_value(value)}: supported values: {supported}"
    if isinstance(value, dict):
        yield from _find_object_problems(value, schema, path)
    elif isinstance(value, list):
        yield from _find_list_problems(value, schema, path)
    elif isinstance(value, str):
        yield from _find_text_problems(value, schema, path)
    elif not isinstance(value, bool):
        yield from _find_number_problems(value, schema, path)


def _find_object_problems(value: Document, schema: Schema, path: str) -> Iterator[str]:
    for name in schema.get("required") or []:
        if name not in value:
            yield f"{_join_path(path, name)}: Required value"
    if len(value) > schema.get("maxProperties", len(value)):
        yield f"{path}: Too many: {len(value)}: must have at most {schema['maxProperties']} items"
    properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, entry in value.items():
        inner = properties.get(name, more if isinstance(more, dict) else None)
        if inner is not None:
            yield from _find_problems(entry, inner, _join_path(path, name))


def _find_list_problems(value: list[Any], schema: Schema, path: str) -> Iterator[str]:
    if len(value) > schema.get("maxItems", len(value)):
        yield f"{path}: Too many: {len(value)}: must have at most {schema['maxItems']} items"
    if len(value) < schema.get("minItems", 0):
        yield f"{path}: Invalid value: {len(value)}: {path} in body should have at least {schema['minItems']} items"
    for index, item in enumerate(value):
        yield from _find_problems(item, schema.get("items") or {}, f"{path}[{index}]")
    yield from _find_duplicates(value, schema, path)


def _find_duplicates(value: list[Any], schema: Schema, path: str) -> Iterator[str]:
    keys = schema.get("x-kubernetes-list-map-keys") or []
    if schema.get("x-kubernetes-list-type") not in ("map", "set"):
        return
    seen = []
    for index, item in enumerate(value):
        identity = [item.get(key) for key in keys] if keys and isinstance(item, dict) else item
        if identity in seen:
            yield f"{path}[{index}]: Duplicate value: {_format_value(item)}"
        seen.append(identity)


def _find_text_problems(value: str, schema: Schema, path: str) -> Iterator[str]:
    if len(value) > schema.get("maxLength", len(value)):
        yield f"{path}: Too long: may not be more than {schema['maxLength']} bytes"
    if len(value) < schema.get("minLength", 0):
        requirement = f"{path} in body should be at least {schema['minLength']} chars long"
        yield f"{path}: Invalid value: {_format_value(value)}: {requirement}"
    if "pattern" in schema and re.search(schema["pattern"], value) is None:
        yield f"{path}: Invalid value: {_format_value(value)}: {path} in body should match '{schema['pattern']}'"


def _find_number_problems(value: int | float, schema: Schema, path: str) -> Iterator[str]:
    least, most = _INT32 if schema.get("format") == "int32" else (None, None)
    least, most = schema.get("minimum", least), schema.get("maximum", most)
    if least is not None and value < least:
        yield f"{path}: Invalid value: {value}: {path} in body should be greater than or equal to {least}"
    if most is not None and value > most:
        yield f"{path}: Invalid value: {value}: {path} in body should be less than or equal to {most}"


def _is_of_type(value: Any, type_: str | None) -> bool:
    if type_ is None:
        return True
    if isinstance(value, bool):
        return type_ == "boolean"
    if type_ == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[type_])


def _describe_wrong_type(value: Any, schema: Schema, path: str) -> str:
    actual = (
        "null" if value is None else next(name for name, kind in _TYPES.items() if _is_of_type(value, name) and kind)
    )
    return f'{path}: Invalid value: "{actual}": {path} in body must be of type {schema["type"]}: "{actual}"'


def _join_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _format_value(value: Any) -> str:
    return msgspec.json.encode(value).decode()
