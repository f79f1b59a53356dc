"""What the loop needs from a follower: the news it brings. The loop is handed one and imports none.

`wukong.cluster.list_watch.follow` is the real one; its Synced and Changed are recognized by what they carry.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol, runtime_checkable

from wukong.api.meta import Object
from wukong.api.resources import Resource
from wukong.ports import Cluster, Event, Selection


@runtime_checkable
class Listed(Protocol):
    """A follower's news: this is all there is, first or again."""

    @property
    def items(self) -> Sequence[Any]: ...


@runtime_checkable
class Changed(Protocol):
    """A follower's news: one watch event."""

    @property
    def event(self) -> Event[Any]: ...


class WatchSource(Protocol):
    """Lists and watches for ever, whatever happens in between; `wukong.cluster.list_watch.follow` is one."""

    def __call__(
        self, cluster: Cluster, resource: Resource, read: type[Object], selection: Selection
    ) -> AsyncIterator[Listed | Changed]: ...
