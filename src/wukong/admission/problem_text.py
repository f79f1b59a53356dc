"""How a problem in a manifest is worded: the JSON path, what was expected, what was found, and the fix.

Used by the validation modules and by whoever else reports problems of a document. Decides nothing.
"""

from __future__ import annotations

import json


def describe_problem(path: str, expected: str, got: object, fix: str) -> str:
    """`$.spec.x: expected 1 to 100, got 0. Give it a weight such as 50.`"""
    return f"{path}: expected {expected}, got {format_value(got)}. {fix}"


def format_value(value: object) -> str:
    """The value as JSON; None and an empty list are "nothing"."""
    return "nothing" if value is None or value == [] else json.dumps(value, ensure_ascii=False, default=str)


def format_choices(choices: tuple[str, ...]) -> str:
    """`a, b or c`"""
    return f"{', '.join(choices[:-1])} or {choices[-1]}"
