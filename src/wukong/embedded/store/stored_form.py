"""Brings a document of a built-in kind into the form in which the API server stores it.

    unknown fields dropped ─► types checked ─► nulls, empty lists and plain zeros left out ─► defaults filled in

In one walk along the types of api/field_types.py. Called by writes.py on every write of a built-in kind, and by
embedded/snapshot for what it loads. Returns a new document, which shares with the given one what needed no change.
"""

from __future__ import annotations

from typing import Any

from wukong.api.field_types import ANY, LIST, MAP, STRUCT, ZEROS, Field, Type
from wukong.embedded.store import defaults
from wukong.embedded.store.api_errors import bad_request
from wukong.embedded.store.documents import has_same_items, has_same_values
from wukong.embedded.store.normalize import format_stored_quantity
from wukong.errors import InputError
from wukong.ports import Document

_OPAQUE = "managedFields"  # worked out when it is read (ownership/managed_fields.py)
_INTEGER_BITS = {"int32": 31, "int64": 63}


def store_form_of(type_: Type, document: Document, known: Document | None = None) -> Document:
    """Return the document as it is stored. Raises Invalid (400) where a value has another type than its field.

    What it shares with `known`, a stored document, is as it should be already and is not looked at.
    """
    if not isinstance(document, dict):
        raise bad_request(f"{type_.name.partition('.')[0]} cannot be read: expected an object")
    return _Walk(document).struct(type_, document, known, ())


def complete_parts(type_: Type, document: Document, known: Document, names: tuple[str, ...]) -> Document:
    """Return the document with these parts of it as they are stored; all else of it is so already."""
    walk = _Walk(document)
    parts = {
        name: walk.struct(type_.fields[name].type, document[name], known.get(name), (name,))
        for name in names
        if name in type_.fields and name in document and document[name] is not known.get(name)
    }
    return {**document, **parts}


def find_unknown_path(type_: Type, value: Any, path: str = "") -> str:
    """Return the path of the first field that the type does not have; "" if there is none."""
    if type_.shape == STRUCT and isinstance(value, dict):
        entries = [(name, type_.fields.get(name), entry) for name, entry in value.items()]
        if unknown := next((name for name, field, _ in entries if field is None), None):
            return f"{path}.{unknown}"
        inner = ((field.type, entry, f"{path}.{name}") for name, field, entry in entries if field is not None)
    elif type_.inner is not None and isinstance(value, list):
        item_type = type_.inner
        inner = ((item_type, entry, f"{path}[{index}]") for index, entry in enumerate(value))
    else:
        return ""
    return next((found for arguments in inner if (found := find_unknown_path(*arguments))), "")


class _Walk:
    """One document on its way. `path` are the names of the fields above."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def struct(self, type_: Type, value: Any, known: Any, path: tuple[str, ...]) -> Document:
        if value.__class__ is not dict:
            raise self._wrong_type(value, type_.name.partition(".")[0], type_, path)
        known = known if known.__class__ is dict else None
        fields, result = type_.fields, {}
        for name, entry in value.items():
            field = fields.get(name)
            if field is None or entry is None:
                continue
            before = known.get(name) if known is not None else None
            if entry is before or name == _OPAQUE:
                result[name] = entry
            elif entry.__class__ is field.plain:
                if entry or field.keeps_zero:
                    result[name] = entry
                elif field.has_default and field.default:
                    result[name] = field.default
            elif (stored := self.field(field, entry, before, type_, (*path, name))) is not None:
                result[name] = stored
        has_more = defaults.has_more(type_.name)
        if has_more:
            defaults.fill_fields(type_.name, result)
        for name, field in type_.shown_fields.items():
            if name not in result:
                result[name] = self._first_value(field, (*path, name))
        if has_more:
            defaults.compute_fields(type_.name, result)
        return known if known is not None and has_same_values(known, result) else result

    def field(self, field: Field, value: Any, known: Any, parent: Type, path: tuple[str, ...]) -> Any:
        """Return the value as it is stored, or None where it is left out."""
        stored = self.value(field.type, value, known, parent, path)
        if stored:
            return stored
        if field.keeps_zero or field.type.shape in (STRUCT, ANY):
            return None if field.type.shape in (LIST, MAP) and stored in ([], {}) else stored
        return field.default if field.has_default and field.default else None

    def value(self, type_: Type, value: Any, known: Any, parent: Type, path: tuple[str, ...]) -> Any:
        shape = type_.shape
        if shape == STRUCT:
            return self.struct(type_, value, known, path)
        if shape == LIST:
            return self._list(type_, value, known, parent, path)
        if shape == MAP:
            return self._map(type_, value, parent, path)
        return value if shape == ANY else self._scalar(shape, value, parent, path)

    def _list(self, type_: Type, value: Any, known: Any, parent: Type, path: tuple[str, ...]) -> list[Any]:
        inner = type_.inner
        assert inner is not None
        if value.__class__ is not list:
            raise self._wrong_type(value, f"[]{_go_name(inner)}", parent, path)
        before: list[Any] = known if known.__class__ is list else []
        shared = {id(item) for item in before}
        items = []
        for index, item in enumerate(value):
            if id(item) in shared and item.__class__ is dict:
                items.append(item)
            elif item is None:
                items.append(self.value(inner, {}, None, parent, path) if inner.shape == STRUCT else ZEROS[inner.shape])
            else:
                known_item = before[index] if index < len(before) else None
                items.append(self.value(inner, item, known_item, parent, path))
        return before if before and has_same_items(before, items) else items

    def _map(self, type_: Type, value: Any, parent: Type, path: tuple[str, ...]) -> Document:
        inner = type_.inner
        assert inner is not None
        if value.__class__ is not dict:
            raise self._wrong_type(value, f"map[string]{_go_name(inner)}", parent, path)
        if inner.shape == "quantity":
            return {key: self._quantity(entry, key, path) for key, entry in value.items()}
        return {
            key: ZEROS.get(inner.shape) if entry is None else self.value(inner, entry, None, parent, (*path, key))
            for key, entry in value.items()
            if entry is not None or inner.shape in ("string", "bytes")
        }

    def _scalar(self, shape: str, value: Any, parent: Type, path: tuple[str, ...]) -> Any:
        kind = value.__class__
        if shape in ("string", "time", "bytes"):
            if kind is str:
                return value
        elif shape == "bool":
            if kind is bool:
                return value
        elif shape in _INTEGER_BITS:
            if kind is float and value.is_integer():
                kind, value = int, int(value)
            bits = _INTEGER_BITS[shape]
            if kind is int and -(1 << bits) <= value < 1 << bits:
                return value
        elif shape == "float":
            if kind in (int, float):
                return value
        elif shape == "quantity":
            return self._quantity(value, path[-1], path[:-1], is_rounded=False)
        elif kind is str or (kind is int and -(1 << 31) <= value < 1 << 31):  # int-or-string
            return value
        raise self._wrong_type(value, shape, parent, path)

    def _quantity(self, value: Any, key: str, path: tuple[str, ...], *, is_rounded: bool = True) -> str:
        if value is None:
            return "0"
        if value.__class__ not in (str, int, float):
            raise self._refuse(f"{'.'.join((*path, key))}: a quantity cannot be {_json_type(value)}")
        try:
            return format_stored_quantity(value, is_rounded)
        except InputError as error:
            raise self._refuse(f"{'.'.join((*path, key))}: {error}") from None

    def _first_value(self, field: Field, path: tuple[str, ...]) -> Any:
        """The value of a field that nobody set and that is there all the same."""
        if field.has_default and (field.default or field.is_pointer):
            return field.default
        if field.type.shape == STRUCT:
            return self.struct(field.type, {}, None, path)
        return ZEROS[field.type.shape]

    def _wrong_type(self, value: Any, wanted: str, parent: Type, path: tuple[str, ...]) -> Exception:
        place = f"Go struct field {parent.name.partition('.')[0]}.{'.'.join(path)}"
        return self._refuse(f"json: cannot unmarshal {_json_type(value)} into {place} of type {wanted}")

    def _refuse(self, problem: str) -> Exception:
        kind, version = self.document.get("kind", ""), str(self.document.get("apiVersion", "v1")).rpartition("/")[2]
        return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {problem}')


def _go_name(type_: Type) -> str:
    return type_.name.partition(".")[0] or type_.shape


def _json_type(value: object) -> str:
    match value:
        case bool():
            return "bool"
        case float():
            return f"number {value}"
        case int():
            return f"number {value}" if abs(value) >= 1 << 31 else "number"
        case str():
            return "string"
    return "array" if isinstance(value, list) else "object" if isinstance(value, dict) else "null"
