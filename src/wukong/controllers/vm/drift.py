"""What a live object lacks of what we want of it. Used before every write, so that none is made that changes nothing.

What is wanted must be there; what else is there is somebody else's: KubeVirt fills in defaults, people add labels.
Lists are atomic, as the API has them: they must be as long as wanted. Quantities count by their value.
"""

from __future__ import annotations

from typing import Any

from wukong.api.quantity import parse_quantity
from wukong.errors import InputError

MOST_PATHS = 5
_AMOUNTS = ("requests", "limits", "capacity")  # whose values are quantities
_AMOUNT_NAMES = ("guest", "storage", "maxGuest")


def find_drift(live: Any, wanted: Any, path: str = "$") -> list[str]:
    """The first few paths at which the live value lacks something, or has another value."""
    paths: list[str] = []
    _collect(live, wanted, path, False, paths)
    return paths


def _collect(live: Any, wanted: Any, path: str, is_amount: bool, paths: list[str]) -> None:
    if len(paths) >= MOST_PATHS:
        return
    if isinstance(wanted, dict) and isinstance(live, dict):
        holds_amounts = path.rpartition(".")[2] in _AMOUNTS
        for name, value in wanted.items():
            _collect(live.get(name), value, f"{path}.{name}", holds_amounts or name in _AMOUNT_NAMES, paths)
    elif isinstance(wanted, list) and isinstance(live, list):
        if len(wanted) != len(live):
            paths.append(path)
            return
        for index, (entry, value) in enumerate(zip(live, wanted, strict=True)):
            _collect(entry, value, f"{path}[{index}]", False, paths)
    elif not _is_same(live, wanted, is_amount):
        paths.append(path)


def _is_same(live: Any, wanted: Any, is_amount: bool) -> bool:
    if live is None:  # absent: the API server leaves out what is empty, but an empty mapping may mean something
        return wanted is None or wanted in ("", False, 0) or wanted == []
    if type(live) is type(wanted) and live == wanted:
        return True
    if is_amount and isinstance(live, str | int | float) and isinstance(wanted, str | int | float):
        try:
            return parse_quantity(live) == parse_quantity(wanted)
        except InputError:
            return False
    return isinstance(live, int | float) and isinstance(wanted, int | float) and live == wanted
