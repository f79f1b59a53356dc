"""Custom objects against the schema of their CustomResourceDefinition: what is refused, pruned and filled in.

Structural validation: types, required fields, enums, bounds, patterns; unknown fields are pruned; defaults are filled
in. Messages are the API server's. CEL rules are not evaluated here: for our own kinds see policies.py, other kinds'
rules are not kept. Formats are ignored but for the range of int32.
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


def filled(document: Document, schema: Schema) -> Document:
    """A copy, pruned and with the schema's defaults. The head is not the schema's business."""
    inner = _filled({name: value for name, value in document.items() if name not in _HEAD}, schema)
    return {**{name: document[name] for name in document if name in _HEAD}, **inner}


def problems(document: Document, schema: Schema) -> list[str]:
    return list(_problems({name: value for name, value in document.items() if name not in _HEAD}, schema, ""))


def _filled(value: Any, schema: Schema) -> Any:
    if isinstance(value, dict):
        properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
        keeps = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        made = {}
        for name, entry in value.items():
            inner = properties.get(name, more if isinstance(more, dict) else None)
            if inner is not None:
                if entry is None and "default" in inner and not inner.get("nullable"):
                    continue
                made[name] = _filled(entry, inner)
            elif keeps or more is True:
                made[name] = entry
        for name, inner in properties.items():
            if name not in made and "default" in inner:
                made[name] = _filled(msgspec.json.decode(msgspec.json.encode(inner["default"])), inner)
        return made
    if isinstance(value, list):
        return [_filled(item, schema.get("items") or {}) for item in value]
    return value


def _problems(value: Any, schema: Schema, path: str) -> Iterator[str]:
    if value is None:
        if schema.get("type") and not schema.get("nullable"):
            yield _wrong_type(value, schema, path)
        return
    if schema.get("x-kubernetes-int-or-string"):
        if not isinstance(value, int | str) or isinstance(value, bool):
            yield _wrong_type(value, {"type": "integer,string"}, path)
            return
    elif not _is_of_type(value, schema.get("type")):
        yield _wrong_type(value, schema, path)
        return
    if "enum" in schema and value not in schema["enum"]:
        known = ", ".join(f'"{each}"' for each in schema["enum"])
        yield f"{path}: Unsupported value: {_shown(value)}: supported values: {known}"
    if isinstance(value, dict):
        yield from _object_problems(value, schema, path)
    elif isinstance(value, list):
        yield from _list_problems(value, schema, path)
    elif isinstance(value, str):
        yield from _text_problems(value, schema, path)
    elif not isinstance(value, bool):
        yield from _number_problems(value, schema, path)


def _object_problems(value: Document, schema: Schema, path: str) -> Iterator[str]:
    for name in schema.get("required") or []:
        if name not in value:
            yield f"{_below(path, name)}: Required value"
    if len(value) > schema.get("maxProperties", len(value)):
        yield f"{path}: Too many: {len(value)}: must have at most {schema['maxProperties']} items"
    properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, entry in value.items():
        inner = properties.get(name, more if isinstance(more, dict) else None)
        if inner is not None:
            yield from _problems(entry, inner, _below(path, name))


def _list_problems(value: list[Any], schema: Schema, path: str) -> Iterator[str]:
    if len(value) > schema.get("maxItems", len(value)):
        yield f"{path}: Too many: {len(value)}: must have at most {schema['maxItems']} items"
    if len(value) < schema.get("minItems", 0):
        yield f"{path}: Invalid value: {len(value)}: {path} in body should have at least {schema['minItems']} items"
    for index, item in enumerate(value):
        yield from _problems(item, schema.get("items") or {}, f"{path}[{index}]")
    yield from _repeated(value, schema, path)


def _repeated(value: list[Any], schema: Schema, path: str) -> Iterator[str]:
    keys = schema.get("x-kubernetes-list-map-keys") or []
    if schema.get("x-kubernetes-list-type") not in ("map", "set"):
        return
    seen = []
    for index, item in enumerate(value):
        own = [item.get(key) for key in keys] if keys and isinstance(item, dict) else item
        if own in seen:
            yield f"{path}[{index}]: Duplicate value: {_shown(item)}"
        seen.append(own)


def _text_problems(value: str, schema: Schema, path: str) -> Iterator[str]:
    if len(value) > schema.get("maxLength", len(value)):
        yield f"{path}: Too long: may not be more than {schema['maxLength']} bytes"
    if len(value) < schema.get("minLength", 0):
        said = f"{path} in body should be at least {schema['minLength']} chars long"
        yield f"{path}: Invalid value: {_shown(value)}: {said}"
    if "pattern" in schema and re.search(schema["pattern"], value) is None:
        yield f"{path}: Invalid value: {_shown(value)}: {path} in body should match '{schema['pattern']}'"


def _number_problems(value: int | float, schema: Schema, path: str) -> Iterator[str]:
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


def _wrong_type(value: Any, schema: Schema, path: str) -> str:
    found = (
        "null" if value is None else next(name for name, kind in _TYPES.items() if _is_of_type(value, name) and kind)
    )
    return f'{path}: Invalid value: "{found}": {path} in body must be of type {schema["type"]}: "{found}"'


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _shown(value: Any) -> str:
    return msgspec.json.encode(value).decode()
