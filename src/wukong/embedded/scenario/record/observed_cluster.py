"""What recorders need to know of the cluster that a scenario is played on: its mirror, changes, time, and failures.

An embedded World is one; so is the RealCluster of app/sim_live. So one Recorder serves both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from wukong.api.resources import Key
from wukong.ports import Clock
from wukong.runtime.dispatch import Item
from wukong.state import Change, State
from wukong.state.attempts import Attempt


class ObservedCluster(Protocol):
    @property
    def state(self) -> State: ...

    @property
    def clock(self) -> Clock: ...

    def listen(self, hear: Callable[[Change], None]) -> None:
        """`hear` is called with every change of the mirror, in order."""
        ...

    def failing_keys(self, controller: str) -> list[Key]:
        """The keys that this controller has failed at since it last succeeded. Sorted."""
        ...

    def attempt(self, item: Item) -> Attempt | None:
        """The failures of an item since it last succeeded."""
        ...
