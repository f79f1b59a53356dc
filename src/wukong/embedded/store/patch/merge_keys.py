"""Which lists are merged by keys, which are sets, and what is one field: what server-side apply must know of a kind.

For Kubernetes' own kinds from the table of field types, for
custom kinds from the `x-kubernetes-…` words of their schema. Used by ownership/.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Protocol

import msgspec

from wukong.api.crds import Schema
from wukong.api.field_types import MAP, STRUCT, Field, Type, struct_named


class Shape(Protocol):
    @property
    def keys(self) -> tuple[str, ...]: ...

    @property
    def is_set(self) -> bool: ...

    @property
    def is_atomic(self) -> bool: ...

    @property
    def is_map(self) -> bool:
        """Whether its names are data, like those of labels."""
        ...

    def child(self, name: str) -> Shape: ...

    def item(self) -> Shape: ...

    def default_of(self, key: str) -> Any: ...


class Typed:
    """A field or an item of one of Kubernetes' own kinds. `type_` is None where nothing is known of it."""

    __slots__ = ("_children", "_item", "is_atomic", "is_map", "is_set", "keys", "type")

    def __init__(self, type_: Type | None, field: Field | None = None) -> None:
        self.type, self.keys = type_, field.keys if field is not None else ()
        self.is_set = field is not None and field.is_set
        is_keyed = self.is_set or bool(self.keys)
        self.is_atomic = (field is not None and field.is_atomic) or (type_ is not None and type_.is_atomic)
        self.is_atomic = self.is_atomic and not is_keyed
        self.is_map = type_ is not None and type_.shape == MAP
        self._children: dict[str, Typed] = {}
        self._item: Typed | None = None

    def child(self, name: str) -> Shape:
        child = self._children.get(name)
        if child is None:
            if self.is_map:  # names are data: not remembered
                return Typed(self.type.inner if self.type is not None else None)
            fields = self.type.fields if self.type is not None and self.type.shape == STRUCT else {}
            field = fields.get(name)
            if field is None:
                return _UNKNOWN
            child = self._children[name] = Typed(field.type, field)
        return child

    def item(self) -> Shape:
        if self._item is None:
            self._item = Typed(self.type.inner if self.type is not None else None)
        return self._item

    def default_of(self, key: str) -> Any:
        inner = self.type.inner if self.type is not None else None
        field = inner.fields.get(key) if inner is not None and inner.shape == STRUCT else None
        return field.default if field is not None else None


_UNKNOWN = Typed(None)


@cache
def typed_shape(type_: Type | None) -> Typed:
    """The shape of a kind, of which there is one."""
    return Typed(type_)


class Described(msgspec.Struct, frozen=True):
    """A field of a custom kind, as its schema describes it."""

    schema: Schema

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self.schema.get("x-kubernetes-list-map-keys") or ())

    @property
    def is_set(self) -> bool:
        return self.schema.get("x-kubernetes-list-type") == "set"

    @property
    def is_atomic(self) -> bool:
        return self.schema.get("x-kubernetes-map-type") == "atomic"

    @property
    def is_map(self) -> bool:
        return "additionalProperties" in self.schema

    def child(self, name: str) -> Shape:
        if name == "metadata":
            return typed_shape(struct_named("ObjectMeta.meta"))
        more = self.schema.get("additionalProperties")
        return Described((self.schema.get("properties") or {}).get(name) or (more if isinstance(more, dict) else {}))

    def item(self) -> Shape:
        return Described(self.schema.get("items") or {})

    def default_of(self, key: str) -> Any:
        return ((self.item_properties()).get(key) or {}).get("default")

    def item_properties(self) -> Schema:
        properties: Schema = (self.schema.get("items") or {}).get("properties") or {}
        return properties
