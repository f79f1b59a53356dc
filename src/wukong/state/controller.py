"""What a controller is: what it watches, and one pure function from a key to what should be done about it.

Implemented by controllers/ and by the actors of the embedded cluster, called by `runtime.dispatch`. A controller keeps
nothing between calls that it could not lose: what it knows is in the state, what it wants is in the Outcome, and the
same key may come any time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from wukong.actions import Outcome
from wukong.api.kinds import KINDS
from wukong.api.meta import Object
from wukong.api.resources import Key, Resource
from wukong.state.mirror import Change, State

KeysOf = Callable[[Change, State], Iterable[Key]]


def own_key(change: Change, _: State) -> Iterable[Key]:
    return (change.key,)


def each_side(keys: Callable[[Object, State], Iterable[Key]]) -> KeysOf:
    """The keys of an object as it was and those of it as it is, where what they are depends on what it says."""

    def keys_of_both(change: Change, state: State) -> Iterable[Key]:
        if change.old is not None:
            yield from keys(change.old, state)
        if change.new is not None and change.new is not change.old:
            yield from keys(change.new, state)

    return keys_of_both


def no_keys(_: Change, __: State) -> Iterable[Key]:
    """For kinds that are looked up and not acted upon."""
    return ()


class Watch(NamedTuple):
    """A kind whose changes concern a controller, and which of its keys a change stands for.

    `read` is for kinds that the table of kinds does not have.
    """

    resource: Resource
    keys: KeysOf = own_key
    read: type[Object] | None = None

    @property
    def struct(self) -> type[Object]:
        if self.read is not None:
            return self.read
        entry = KINDS.of_resource(self.resource)
        return Object if entry is None else entry.struct


class Controller(Protocol):
    @property
    def name(self) -> str:
        """Short and constant: names attempts, metrics and log lines."""
        ...

    @property
    def watches(self) -> tuple[Watch, ...]: ...

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        """What to do about this key, seen as a whole. Called again whenever in doubt: it must be safe to repeat."""
        ...
