"""Which keys of an object's document are names of fields, and which are data: label keys, resources, zones.

Used by anonymize.py and public_vocabulary.py, from the structs of the table of kinds. Lists are looked through: the
shape of a list of containers is that of a container.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from msgspec import Struct, inspect

from wukong.api.core import PodTemplateSpec
from wukong.api.kinds import KINDS
from wukong.placement.rules import BUILT_IN
from wukong.ports import Document

DATA: Final = "data"  # a map whose keys are data, and its values, if they are maps, too
UNKNOWN: Final = "unknown"  # a text or number, or something that no struct describes
Shape: TypeAlias = "dict[str, Shape] | str"  # field → the shape of what it holds; or DATA or UNKNOWN
_LABEL_MAPS = frozenset({"labels", "matchLabels", "nodeSelector"})  # also where no struct says so
_shapes: dict[type[Any], Shape] = {}  # one per struct ever asked for


def shape_of_document(document: Document) -> Shape:
    kind = KINDS.of_document(str(document.get("kind") or ""), str(document.get("apiVersion") or ""))
    return shape_of_struct(kind.struct) if kind is not None else UNKNOWN


def shape_of_struct(struct: type[Any]) -> Shape:
    if struct not in _shapes:
        _shapes[struct] = _shape_of(inspect.type_info(struct))
    return _shapes[struct]


def shape_within(shape: Shape, document: Document, field: str) -> Shape:
    """The shape of what `field` holds, in a document of this shape."""
    if field == "config" and document.get("name") in BUILT_IN:
        return shape_of_struct(BUILT_IN[document["name"]].config)
    inner = shape.get(field, UNKNOWN) if isinstance(shape, dict) else UNKNOWN
    if inner == UNKNOWN and field == "template":  # of Jobs and revisions
        return shape_of_struct(PodTemplateSpec)
    return DATA if inner == UNKNOWN and field in _LABEL_MAPS else inner


def fields_of_struct(struct: type[Struct]) -> Iterator[str]:
    """The names of the fields of a struct, and of those in it."""
    yield from _fields_of(shape_of_struct(struct))


def values_of_struct(struct: type[Struct]) -> Iterator[str]:
    """The texts that a struct names itself: those of its Literals, and of those in it."""
    yield from _values_of(inspect.type_info(struct))


def _shape_of(info: inspect.Type) -> Shape:
    for part in _parts_of(info):
        if isinstance(part, inspect.StructType):
            return {field.encode_name: _shape_of(field.type) for field in part.fields}
        if isinstance(part, inspect.DictType):
            holds_anything = isinstance(part.value_type, inspect.AnyType | inspect.CustomType)  # Any, object
            return UNKNOWN if holds_anything else DATA
        if isinstance(part, inspect.ListType):
            return _shape_of(part.item_type)
    return UNKNOWN


def _fields_of(shape: Shape) -> Iterator[str]:
    if isinstance(shape, dict):
        for field, inner in shape.items():
            yield field
            yield from _fields_of(inner)


def _values_of(info: inspect.Type) -> Iterator[str]:
    for part in _parts_of(info):
        if isinstance(part, inspect.LiteralType):
            yield from (value for value in part.values if isinstance(value, str))
        elif isinstance(part, inspect.ListType):
            yield from _values_of(part.item_type)
        elif isinstance(part, inspect.StructType):
            for field in part.fields:
                yield from _values_of(field.type)


def _parts_of(info: Any) -> Iterator[inspect.Type]:
    """A type without what is said about it, and each of a union's."""
    if isinstance(info, inspect.Metadata):
        yield from _parts_of(info.type)
    elif isinstance(info, inspect.UnionType):
        for part in info.types:
            yield from _parts_of(part)
    else:
        yield info
