"""What happened to an object, put together from the two sides of it that dispatch asks about.

Dispatch asks `Watch.keys` about an object as it was, then as it is. The state holds the newer side already, so the two
can be told apart. Used by controllers.scheduler.controller, whose hints want to know both.
"""

from __future__ import annotations

from typing import NamedTuple

from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.state import State
from wukong.state.mirror import key_of, kind_of


class Happened(NamedTuple):
    """An object came (no `old`), changed, or went (no `new`). One that is told again has come again."""

    old: Object | None
    new: Object | None


class Changes:
    def __init__(self) -> None:
        self._before: dict[tuple[str, Key], Object] = {}  # objects as they were, until we are asked how they are

    def whole(self, side: Object, state: State) -> Happened | None:
        """The change, once both its sides are known; None after the first of two."""
        kind, key = place = kind_of(side), key_of(side)
        held = state.objects.get(kind, {}).get(key)
        if side is held:
            return Happened(self._before.pop(place, None), side)
        if held is not None and held.metadata.uid == side.metadata.uid:
            self._before.setdefault(place, side)  # of several changes at once, the first and the last side
            return None
        self._before.pop(place, None)
        return Happened(side, None)
