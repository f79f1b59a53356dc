"""Which fields Kubernetes' own kinds have, of which types, and how lists and maps of them are merged.

Read from field_types_data.py, each type when it is first asked for. Used by the embedded API server (to drop unknown
fields, check types, fill in zeros and defaults, and merge), and by whoever warns of unknown fields. Knows no values
beyond the defaults that Kubernetes declares beside its types; those it computes are in embedded/store/defaults.py.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any, Final, TypeAlias

import msgspec

from wukong.api.field_types_data import TABLE
from wukong.api.json_values import load_json
from wukong.api.resources import Resource

STRUCT, LIST, MAP, ANY = "struct", "list", "map", "any"  # the others are scalars: string, int32, quantity …
ZEROS: Final[dict[str, Any]] = {
    "string": "", "bool": False, "int32": 0, "int64": 0, "float": 0, "quantity": "0", "int-or-string": 0,
}  # fmt: skip
Class: TypeAlias = type[Any]
_PLAIN: Final[dict[str, Class]] = {"string": str, "time": str, "bytes": str, "bool": bool}
_ALWAYS_SHOWN = frozenset({"quantity", "int-or-string"})  # structs in Go: never left out unless they are pointers


class Type:
    """A type of a field or an item. `shape` is STRUCT, LIST, MAP, ANY or the name of a scalar."""

    __slots__ = ("__dict__", "inner", "is_atomic", "name", "shape")

    def __init__(self, shape: str, name: str = "", inner: Type | None = None, is_atomic: bool = False) -> None:
        self.shape, self.name, self.inner, self.is_atomic = shape, name, inner, is_atomic

    @cached_property
    def fields(self) -> dict[str, Field]:
        """The fields of a struct by their names in JSON."""
        return {field.name: field for field in map(_read_field, _lines()[self.name][1:])}

    @cached_property
    def shown_fields(self) -> dict[str, Field]:
        """The fields of a struct that are never left out, or have a declared default."""
        return {name: field for name, field in self.fields.items() if field.is_shown or field.is_filled}


class Field(msgspec.Struct, frozen=True):
    """A field of a struct."""

    name: str
    type: Type
    is_pointer: bool = False  # tells zero from absent: a zero stays
    is_always: bool = False  # not left out when it is zero
    is_atomic: bool = False  # to server-side apply one value, with all that is in it
    is_set: bool = False
    keys: tuple[str, ...] = ()  # of a list's items, to server-side apply
    merge_key: str | None = None  # to a strategic patch; "" for a list of plain values that is merged
    is_replaced: bool = False  # by a strategic patch, not merged, although it is a map
    retains_keys: bool = False  # a strategic patch made by `kubectl apply` keeps none but the keys it names
    default: Any = None
    has_default: bool = False
    plain: Class | None = None  # of values that are stored as they are unless they are zero; None: it depends

    @property
    def is_shown(self) -> bool:
        """Whether it is there in every stored object, zero or not. Lists, maps and times without a value are not."""
        if self.is_pointer:
            return False
        if self.type.shape == STRUCT or self.type.shape in _ALWAYS_SHOWN:
            return True
        return self.is_always and self.type.shape in ZEROS

    @property
    def is_filled(self) -> bool:
        """Whether it is there because it has a default. A zero by default is left out like any other."""
        return self.has_default and (bool(self.default) or self.is_pointer)

    @property
    def keeps_zero(self) -> bool:
        return self.is_pointer or self.is_always or self.type.shape in _ALWAYS_SHOWN


def type_of(resource: Resource) -> Type | None:
    """The type of one of Kubernetes' kinds, or None where the table does not have it."""
    name = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    lines = _lines().get(name)
    return struct_named(name) if lines is not None and "kind" in lines[0].split()[1:] else None


@cache
def struct_named(name: str) -> Type:
    """The struct of this name: `PodSpec`, `DeploymentSpec.apps`, `ObjectMeta.meta`. Raises KeyError."""
    return Type(STRUCT, name, is_atomic="atomic" in _lines()[name][0].split()[1:])


@cache
def _lines() -> dict[str, list[str]]:
    """The lines of each type, of which the first is its own."""
    types: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in TABLE.splitlines():
        if not line.startswith(" "):
            lines = types[line.split(" ", 1)[0]] = []
        lines.append(line)
    return types


def _read_field(line: str) -> Field:
    name, type_text, *words = line.split()
    values = dict(word.partition("=")[::2] for word in words)
    type_ = _read_type(type_text)
    return Field(
        name,
        type_,
        is_pointer="pointer" in values,
        is_always="always" in values,
        is_atomic="atomic" in values or type_.is_atomic,
        is_set="set" in values,
        keys=tuple(values["keys"].split(",")) if "keys" in values else (),
        merge_key=values.get("merge"),
        is_replaced="replace" in values,
        retains_keys="retainKeys" in values,
        default=load_json(values["default"].encode()) if "default" in values else None,
        has_default="default" in values,
        plain=_PLAIN.get(type_.shape),
    )


@cache
def _read_type(text: str) -> Type:
    if text[0] == "[":
        return Type(LIST, inner=_read_type(text[1:-1]))
    if text[0] == "{":
        return Type(MAP, inner=_read_type(text[1:-1]))
    return struct_named(text) if text[0].isupper() else Type(text)
