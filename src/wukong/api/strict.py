"""Finds fields of a document that its struct does not have: in files that people write, such a field is a typo.

Our structs ignore unknown fields, as reading what an API server stores must; `unknown_fields` reports them.
Pure: takes the document as YAML or JSON has it and the struct it is meant for, returns the problems.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

import msgspec
from msgspec import inspect

from wukong.api.documents import path_of
from wukong.errors import nearest

# What the API server adds to metadata and our structs leave out.
_METADATA = frozenset({"managedFields", "selfLink", "deletionGracePeriodSeconds", "clusterName"})


def unknown_fields(document: object, struct: type[msgspec.Struct]) -> list[str]:
    """Return `$.spec.capcity: unknown field. Did you mean "capacity"?` for each. The status is left out."""
    field_type = _type_of(struct)
    return [
        problem
        for problem in _find_problems(document, field_type, "$")
        if not problem.startswith(("$.status.", *(f"$.metadata.{field}{end}" for field in _METADATA for end in ":[")))
    ]


@cache
def _type_of(struct: type[msgspec.Struct]) -> inspect.Type:
    return inspect.type_info(struct)


def _find_problems(value: object, field_type: inspect.Type, path: str) -> Iterator[str]:
    field_type = _without_metadata(field_type)
    if isinstance(field_type, inspect.UnionType):
        for option in field_type.types:
            if _is_container(_without_metadata(option)):
                yield from _find_problems(value, option, path)
    elif isinstance(field_type, inspect.StructType) and isinstance(value, Mapping):
        yield from _find_struct_problems(value, field_type, path)
    elif isinstance(field_type, inspect.DictType) and isinstance(value, Mapping):
        for key, entry in value.items():
            yield from _find_problems(entry, field_type.value_type, path_of(path, str(key)))
    elif isinstance(field_type, inspect.ListType) and isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _find_problems(entry, field_type.item_type, f"{path}[{index}]")


def _find_struct_problems(value: Mapping[object, object], field_type: inspect.StructType, path: str) -> Iterator[str]:
    known = {field.encode_name: field.type for field in field_type.fields}
    for key, entry in value.items():
        field = str(key)
        if field in known:
            yield from _find_problems(entry, known[field], f"{path}.{field}")
        else:
            hint = nearest(field, known) or f" Known here: {', '.join(known) or 'none'}."
            yield f"{path_of(path, field)}: unknown field.{hint}"


def _without_metadata(field_type: inspect.Type) -> inspect.Type:
    return field_type.type if isinstance(field_type, inspect.Metadata) else field_type


def _is_container(field_type: inspect.Type) -> bool:
    return isinstance(field_type, inspect.StructType | inspect.DictType | inspect.ListType)
