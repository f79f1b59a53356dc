"""Helpers for objects as JSON and YAML have them, shared by every reader of documents. Pure; knows no kinds."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from wukong.api.yaml_values import load_documents
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


def load_yaml(data: bytes | str) -> Any:
    """Return the one document of a YAML or JSON text. Raises InputError that says where it is broken."""
    documents = load_documents(data)
    if len(documents) > 1:
        raise InputError(f"expected one YAML document, found {len(documents)}. Keep one of them.")
    return documents[0] if documents else None


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
