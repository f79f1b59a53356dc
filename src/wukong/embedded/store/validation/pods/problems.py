"""How a problem of a field is worded: its path, the reason, and the detail, as the API server does. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any


def required(path: str, detail: str = "") -> str:
    return f"{path}: Required value" + (f": {detail}" if detail else "")


def invalid(path: str, value: Any, detail: str) -> str:
    return f"{path}: Invalid value: {json.dumps(value, ensure_ascii=False)}: {detail}"


def forbidden(path: str, detail: str) -> str:
    return f"{path}: Forbidden: {detail}"


def duplicate(path: str, value: Any) -> str:
    return f"{path}: Duplicate value: {json.dumps(value, ensure_ascii=False)}"


def not_found(path: str, value: str) -> str:
    return f'{path}: Not found: "{value}"'


def unsupported(path: str, value: Any, choices: Iterable[str]) -> str:
    supported = ", ".join(f'"{choice}"' for choice in choices)
    return f"{path}: Unsupported value: {json.dumps(value, ensure_ascii=False)}: supported values: {supported}"


def find_unsupported(value: Any, choices: tuple[str, ...], path: str) -> Iterator[str]:
    """Check a field that may be absent."""
    if value is not None and value not in choices:
        yield unsupported(path, value, choices)


def find_below(value: int | None, least: int, path: str) -> Iterator[str]:
    """Check a number that may be absent."""
    if value is not None and value < least:
        yield invalid(path, value, f"must be greater than or equal to {least}")


def find_outside(value: int | None, least: int, most: int, path: str) -> Iterator[str]:
    if value is not None and not least <= value <= most:
        yield invalid(path, value, f"must be between {least} and {most}, inclusive")
