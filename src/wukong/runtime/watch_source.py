"""What the loop needs from a follower of a kind. The loop is handed one and imports none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from wukong.api.meta import Object
from wukong.api.resources import Resource
from wukong.ports import Cluster, Selection, WatchUpdate


class WatchSource(Protocol):
    """Lists and watches for ever, whatever happens in between; `wukong.cluster.list_watch.follow` is one.

    An `optional` kind may be missing from the cluster: that is reported as KindMissing instead of raised.
    """

    def __call__(
        self, cluster: Cluster, resource: Resource, read: type[Object], selection: Selection, optional: bool
    ) -> AsyncIterator[WatchUpdate[Object]]: ...
