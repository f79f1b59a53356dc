"""Mutants that no test can notice, each with its reason: equivalents.toml. Called by __main__.py.

They are known by file and text, not by line, so that an entry holds when code around it moves.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec

FILE = Path(__file__).with_name("equivalents.toml")


class Equivalent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`before` and `after` are the changed lines, without what surrounds them, as the tool prints them."""

    file: str
    before: str
    after: str
    reason: str


class _Equivalents(msgspec.Struct, forbid_unknown_fields=True):
    equivalent: list[Equivalent] = []


def read_equivalents(file: Path = FILE) -> list[Equivalent]:
    return msgspec.convert(tomllib.loads(file.read_text("utf-8")), _Equivalents).equivalent


def find_reason(equivalents: list[Equivalent], path: str, before: str, after: str) -> str:
    """Why such a mutant is equivalent; "" if it is not listed."""
    change = (path, before, after)
    return next((entry.reason for entry in equivalents if (entry.file, entry.before, entry.after) == change), "")
