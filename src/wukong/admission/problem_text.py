"""How a problem in a manifest is worded: the JSON path, what was expected, what was found, and the fix.

Used by the validation modules and by whoever else reports problems of a document. Decides nothing.
"""

from __future__ import annotations

import json
import re

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def describe_problem(path: str, expected: str, got: object, fix: str) -> str:
    """`$.spec.x: expected 1 to 100, got 0. Give it a weight such as 50.`"""
    return f"{path}: expected {expected}, got {format_value(got)}. {fix}"


def path_of(parent: str, key: str) -> str:
    """The path of a map's entry; keys with dots and slashes are quoted."""
    return f"{parent}.{key}" if _PLAIN_KEY.fullmatch(key) else f"{parent}[{json.dumps(key, ensure_ascii=False)}]"


def format_value(value: object) -> str:
    """The value as JSON; None and an empty list are "nothing"."""
    return "nothing" if value is None or value == [] else json.dumps(value, ensure_ascii=False, default=str)


def format_choices(choices: tuple[str, ...]) -> str:
    """`a, b or c`"""
    return f"{', '.join(choices[:-1])} or {choices[-1]}"
