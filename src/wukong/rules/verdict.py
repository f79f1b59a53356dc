"""What a filter says about a node it rejects. Filters return a Rejection, decide.py adds which plugin spoke.

Plain values; no rule lives here.
"""

from __future__ import annotations

from typing import NamedTuple


class Rejection(NamedTuple):
    """Why a node will not do. Unresolvable: evicting pods from it would not help, so preemption passes it by."""

    reasons: tuple[str, ...]
    unresolvable: bool = False


class Verdict(NamedTuple):
    """A rejection and the first plugin that spoke it."""

    plugin: str
    reasons: tuple[str, ...]
    unresolvable: bool


def build_rejection(reason: str) -> Rejection:
    return Rejection((reason,))


def build_unresolvable(reason: str) -> Rejection:
    return Rejection((reason,), unresolvable=True)
