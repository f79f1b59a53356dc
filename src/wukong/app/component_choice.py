"""Components chosen by name: those that users may name, and what is said to a name that is none of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wukong.app.component import Component
from wukong.app.components import COMPONENTS
from wukong.errors import InputError, nearest

EMBEDDED_COMPONENTS = {name: component for name, component in COMPONENTS.items() if component.is_named}
LIVE_COMPONENTS = {name: component for name, component in EMBEDDED_COMPONENTS.items() if not component.is_embedded_only}


def split_names(text: str) -> tuple[str, ...]:
    """The names of a list such as "load,policy"."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def choose_components(
    names: Sequence[str], place: str, offered: Mapping[str, Component[Any]] = LIVE_COMPONENTS
) -> list[Component[Any]]:
    """The components of these names, each once. Raises InputError that names the `place` where they stand."""
    if not names:
        raise InputError(f"{place}: expected some of {', '.join(offered)}, got none.")
    if problems := list(find_unknown_names(names, place, offered)):
        raise InputError(*problems)
    return [offered[name] for name in dict.fromkeys(names)]


def find_unknown_names(names: Iterable[str], place: str, offered: Mapping[str, Component[Any]]) -> Iterable[str]:
    for name in names:
        if name not in offered:
            known = ", ".join(offered)
            yield f"{place}: unknown component {name!r}.{nearest(name, offered)} Known: {known}."
