"""Which fields of a document no struct knows: for files that people write, where such a field is a typo.

Our structs ignore what they do not know, as reading what an API server stores must; `unknown_fields` tells it apart.
Pure: takes the document as YAML or JSON gave it and the struct it is meant for, gives the problems.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

import msgspec
from msgspec import inspect

from wukong.errors import nearest

# What the API server adds to metadata and our structs leave out.
_METADATA = frozenset({"managedFields", "selfLink", "deletionGracePeriodSeconds", "clusterName"})
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def unknown_fields(document: object, struct: type[msgspec.Struct]) -> list[str]:
    """`$.spec.capcity: unknown field. Did you mean "capacity"?`, for each there is. The status is the server's own."""
    described = _described(struct)
    return [
        problem
        for problem in _problems(document, described, "$")
        if not problem.startswith(("$.status.", *(f"$.metadata.{field}:" for field in _METADATA)))
    ]


@cache
def _described(struct: type[msgspec.Struct]) -> inspect.Type:
    return inspect.type_info(struct)


def _problems(value: object, described: inspect.Type, path: str) -> Iterator[str]:
    described = _bare(described)
    if isinstance(described, inspect.UnionType):
        for option in described.types:
            if _is_container(_bare(option)):
                yield from _problems(value, option, path)
    elif isinstance(described, inspect.StructType) and isinstance(value, Mapping):
        yield from _struct_problems(value, described, path)
    elif isinstance(described, inspect.DictType) and isinstance(value, Mapping):
        for key, entry in value.items():
            yield from _problems(entry, described.value_type, _at(path, str(key)))
    elif isinstance(described, inspect.ListType) and isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _problems(entry, described.item_type, f"{path}[{index}]")


def _struct_problems(value: Mapping[object, object], described: inspect.StructType, path: str) -> Iterator[str]:
    known = {field.encode_name: field.type for field in described.fields}
    for key, entry in value.items():
        field = str(key)
        if field in known:
            yield from _problems(entry, known[field], f"{path}.{field}")
        else:
            hint = nearest(field, known) or f" Known here: {', '.join(known) or 'none'}."
            yield f"{_at(path, field)}: unknown field.{hint}"


def _bare(described: inspect.Type) -> inspect.Type:
    return described.type if isinstance(described, inspect.Metadata) else described


def _is_container(described: inspect.Type) -> bool:
    return isinstance(described, inspect.StructType | inspect.DictType | inspect.ListType)


def _at(path: str, key: str) -> str:
    return f"{path}.{key}" if _PLAIN_KEY.fullmatch(key) else f"{path}[{msgspec.json.encode(key).decode()}]"
