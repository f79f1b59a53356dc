"""Sources: what comes from outside the cluster, handed to the loop as objects of an internal kind.

A source runs beside the loop and hands over all objects of its kind whenever it has heard of them. The loop turns that
into changes, and controllers watch them like any other. No API server has these kinds, so nobody follows them there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from wukong.api.kinds import KINDS
from wukong.api.meta import Object
from wukong.api.resources import Resource

HandOver = Callable[[Sequence[Object]], None]


class Source(Protocol):
    @property
    def resource(self) -> Resource:
        """The kind of its objects."""
        ...

    async def run(self, hand_over: HandOver) -> None:
        """For ever. Each call of `hand_over` gives everything there is: what is not in it is gone."""
        ...


def is_from_outside(resource: Resource) -> bool:
    """Whether objects of this kind come from a source, not from an API server."""
    entry = KINDS.of_resource(resource)
    return entry is not None and entry.origin == "internal"
