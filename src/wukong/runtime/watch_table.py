"""Which kinds a process watches, each once: the watches of all its controllers merged. Pure.

Used by `loop` and by the embedded world, so that what cannot be watched together is refused in both alike. A kind has
one place in the mirror: one version of it is read into one struct, and one selection of it is there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from wukong.api.resources import Resource
from wukong.errors import InputError
from wukong.ports import EVERYTHING, Selection
from wukong.state.controller import Watch

BESIDE = "what is watched beside the controllers"


class Watcher(Protocol):
    """A controller, or anything else with watches and a name for messages."""

    @property
    def name(self) -> str: ...

    @property
    def watches(self) -> tuple[Watch, ...]: ...


def merge_watches(watchers: Iterable[Watcher], also: Iterable[Watch] = ()) -> dict[Resource, Watch]:
    """Each kind with how it is watched. It is optional only if all who watch it say so.

    `also` are watches of nobody in particular. Raises InputError, with both names, where two of them differ.
    """
    named_watches = [(BESIDE, watch) for watch in also]
    named_watches += [(watcher.name, watch) for watcher in watchers for watch in watcher.watches]
    table: dict[str, Watch] = {}  # group and kind → how it is watched
    first_names: dict[str, str] = {}
    for name, watch in named_watches:
        group_kind = watch.resource.group_kind
        known = table.get(group_kind)
        if known is None:
            table[group_kind], first_names[group_kind] = watch, name
            continue
        _check(known, first_names[group_kind], watch, name)
        table[group_kind] = known._replace(optional=known.optional and watch.optional)
    return {watch.resource: watch for watch in table.values()}


def _check(known: Watch, known_name: str, watch: Watch, name: str) -> None:
    kind = watch.resource.kind
    if known.resource != watch.resource:
        raise InputError(
            f"{kind} is watched in two ways: {known_name} watches {known.resource.api_version}, "
            f"{name} {watch.resource.api_version}. Have both watch the same version."
        )
    if known.struct is not watch.struct:
        raise InputError(
            f"{kind} is watched in two ways: {known_name} reads it as {_describe_struct(known)}, "
            f"{name} as {_describe_struct(watch)}. Have both read the same struct."
        )
    if known.selection != watch.selection:
        raise InputError(
            f"{kind} is watched in two ways: {known_name} selects {_describe_selection(known.selection)}, "
            f"{name} {_describe_selection(watch.selection)}. Have both select the same."
        )


def _describe_struct(watch: Watch) -> str:
    return f"{watch.struct.__module__}.{watch.struct.__qualname__}"


def _describe_selection(selection: Selection) -> str:
    if selection == EVERYTHING:
        return "everything"
    parts = {"namespace": selection.namespace, "labels": selection.labels, "fields": selection.fields}
    return ", ".join(f"{name} {text!r}" for name, text in parts.items() if text)
