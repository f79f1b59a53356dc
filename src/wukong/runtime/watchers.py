"""Who watches a kind, and whom of them a change may concern. Asked by `dispatch` about every change. Without I/O.

Most watchers of pods say by a trait whose pods they mean (`KeysByTrait`): those of Jobs, of StatefulSets, of virtual
machines. They are asked only about changes of such pods, so a change costs as much as it concerns others.
"""

from __future__ import annotations

from typing import NamedTuple

from wukong.api.meta import Object
from wukong.state.controller import IsAlike, KeysByTrait, KeysOf, KeysOfObject, KeysUnlessAlike, Trait


class Watcher(NamedTuple):
    """A controller, and how it finds its keys: by the change; or by the object as it is, where both versions of it are
    alike, and else by the change."""

    controller: str
    by_change: KeysOf
    is_alike: IsAlike | None
    by_object: KeysOfObject | None


class Watchers:
    """The watchers of one kind, in the order in which they were added."""

    def __init__(self) -> None:
        self.all: tuple[Watcher, ...] = ()
        self._wanted: list[tuple[Trait | None, str]] = []  # the trait and its value that each of them asks for
        self._values: dict[Trait, set[str]] = {}  # the values of each trait that somebody asks for
        self._by_values: dict[tuple[str | None, ...], tuple[Watcher, ...]] = {}

    def add(self, controller: str, keys: KeysOf) -> None:
        trait, value = None, ""
        if isinstance(keys, KeysByTrait):
            trait, value, keys = keys.trait, keys.value, keys.keys
            self._values.setdefault(trait, set()).add(value)
        self._wanted.append((trait, value))
        if isinstance(keys, KeysUnlessAlike):
            watcher = Watcher(controller, keys.keys_of_both, keys.is_alike, keys.keys_of_object)
        else:
            watcher = Watcher(controller, keys, None, None)
        self.all = (*self.all, watcher)
        self._by_values.clear()

    def list_concerned(self, old: Object | None, new: Object | None) -> tuple[Watcher, ...]:
        """Those whom a change of an object may concern. Some of them may find no key all the same."""
        values: tuple[str | None, ...] = ()
        for trait, asked_for in self._values.items():
            value = trait(old if new is None else new)  # type: ignore[arg-type]  # one of them is there
            if value is None or (old is not None and new is not None and trait(old) != value):
                return self.all
            values += (value if value in asked_for else None,)
        concerned = self._by_values.get(values)
        return self._choose(values) if concerned is None else concerned

    def _choose(self, values: tuple[str | None, ...]) -> tuple[Watcher, ...]:
        """Those who ask for these values of the traits, or for none; kept, for there are only so many values."""
        by_trait = dict(zip(self._values, values, strict=True))
        chosen = tuple(
            watcher
            for watcher, (trait, value) in zip(self.all, self._wanted, strict=True)
            if trait is None or by_trait[trait] == value
        )
        self._by_values[values] = chosen
        return chosen
