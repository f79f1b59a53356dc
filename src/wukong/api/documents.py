"""Helpers for objects as JSON and YAML have them, shared by every reader of documents. Pure; knows no kinds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import yaml

from wukong.errors import InputError

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_encode = msgspec.json.Encoder().encode


def without_nulls(value: Any) -> Any:
    """Return a copy without nulls: Kubernetes reads an explicit null as an absent field."""
    if isinstance(value, dict):
        return {name: without_nulls(entry) for name, entry in value.items() if entry is not None}
    if isinstance(value, list):
        return [without_nulls(entry) for entry in value if entry is not None]
    return value


def times_as_text(value: Any) -> Any:
    """Return a copy in which times that YAML parsed are texts again."""
    if isinstance(value, dict):
        return {name: times_as_text(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [times_as_text(entry) for entry in value]
    return value.isoformat().replace("+00:00", "Z") if hasattr(value, "isoformat") else value


def as_json(value: Any) -> Any:
    """Return a YAML document as JSON would have it: names are texts, and so are times."""
    if isinstance(value, dict):
        return {str(name): as_json(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [as_json(entry) for entry in value]
    return times_as_text(value)


def load_yaml(data: bytes) -> Any:
    """Return the one document of a YAML text as JSON would have it. Raises InputError that says where it is broken."""
    with raise_yaml_problems():
        return as_json(yaml.load(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


@contextmanager
def raise_yaml_problems() -> Iterator[None]:
    """Turn whatever PyYAML raises for a text into an InputError that says where it is broken."""
    try:
        yield
    except RecursionError:
        raise InputError("broken YAML: nested too deeply, or within itself.") from None
    except (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError) as error:  # the last: !!bool maybe
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise InputError(f"broken YAML: {place}{getattr(error, 'problem', None) or error}.") from None


def path_of(parent: str, key: str) -> str:
    """Return the path of a map's entry, for messages; keys with dots and slashes are quoted."""
    return f"{parent}.{key}" if _PLAIN_KEY.fullmatch(key) else f"{parent}[{json.dumps(key, ensure_ascii=False)}]"


def unfold_list(document: dict[str, Any]) -> list[Any]:
    """Return the items of a List, each with the kind that a list such as NodeList implies; else the document itself."""
    kind = str(document.get("kind") or "")
    items = document.get("items")
    if not kind.endswith("List") or not isinstance(items, list | None):
        return [document]
    implied = {"kind": kind.removesuffix("List"), "apiVersion": document.get("apiVersion")} if kind != "List" else {}
    return [{**implied, **item} if isinstance(item, dict) else item for item in items or ()]


class SharedValues:
    """Makes equal parts of many documents one object: pods of one workload differ in little. None may be changed."""

    def __init__(self) -> None:
        self._values: dict[bytes, Any] = {}

    def share(self, document: dict[str, Any]) -> dict[str, Any]:
        """Share the lists and maps two levels down (labels, containers, conditions); the document is changed."""
        for part in document.values():
            if isinstance(part, dict):
                for name, value in part.items():
                    if isinstance(value, dict | list):
                        part[name] = self._values.setdefault(_encode(value), value)
        return document
