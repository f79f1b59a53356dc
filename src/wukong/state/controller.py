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
from wukong.ports import EVERYTHING, Selection
from wukong.state.mirror import State

KeysOf = Callable[[Object, State], Iterable[Key]]


def own_key(found: Object, _: State) -> Iterable[Key]:
    return (Key(found.metadata.namespace, found.metadata.name),)


class Watch(NamedTuple):
    """A kind whose changes concern a controller, and which of its keys a changed object stands for.

    `keys` is asked about an object as it was and as it is now. `read` is for kinds that api.kinds does not list. Only
    the objects of the `selection` are mirrored. An `optional` kind may not be installed: then there are none of it.
    """

    resource: Resource
    keys: KeysOf = own_key
    read: type[Object] | None = None
    selection: Selection = EVERYTHING
    optional: bool = False

    @property
    def struct(self) -> type[Object]:
        return self.read or KINDS.get(self.resource.kind, Object)


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
