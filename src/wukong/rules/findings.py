"""How a problem in a manifest is worded: the JSON path, what was expected, what was found, and the fix.

Used by the validate modules. Decides nothing.
"""

from __future__ import annotations

import json
import re

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def finding(path: str, expected: str, got: object, fix: str) -> str:
    """`$.spec.x: expected 1 to 100, got 0. Give it a weight such as 50.`"""
    return f"{path}: expected {expected}, got {shown(got)}. {fix}"


def at(path: str, key: str) -> str:
    """The path of a map's entry; keys with dots and slashes are quoted."""
    return f"{path}.{key}" if _PLAIN_KEY.fullmatch(key) else f"{path}[{json.dumps(key, ensure_ascii=False)}]"


def shown(value: object) -> str:
    """A value the way it is written in JSON; nothing at all is called nothing."""
    return "nothing" if value is None or value == [] else json.dumps(value, ensure_ascii=False, default=str)


def one_of(known: tuple[str, ...]) -> str:
    return f"{', '.join(known[:-1])} or {known[-1]}"
