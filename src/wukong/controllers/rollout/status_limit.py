"""How often the status of a Rollout is written: a burst of changes at once, then one a second. Pure but for its memory.

What turns is written at once, always: the phase, a condition, the version or step at hand, all that the controller
remembers. Counts alone may wait a second: pods that come and go in thousands are not a write each. What is kept here
may be lost; then a few more are written. Used by controller.py.
"""

from __future__ import annotations

from wukong.api.resources import Key
from wukong.api.rollout import RolloutStatus

STATUS_SECONDS = 1.0  # between two writes about counts, after a burst
MOST_AT_ONCE = 10


class StatusLimit:
    def __init__(self) -> None:
        self._quiet_at: dict[Key, float] = {}  # when all writes so far would have been due, one in STATUS_SECONDS

    def copy_memory(self, source: StatusLimit) -> None:
        self._quiet_at = dict(source._quiet_at)

    def forget(self, key: Key) -> None:
        self._quiet_at.pop(key, None)

    def find_wait(self, key: Key, before: RolloutStatus, after: RolloutStatus, now: float) -> float | None:
        """Seconds until this change may be written; None: now, and then it counts as written."""
        most = MOST_AT_ONCE * STATUS_SECONDS
        quiet_at = max(now, min(self._quiet_at.get(key, now), now + most))  # a clock may be set back
        wait = quiet_at + STATUS_SECONDS - now - most
        if wait > 0 and read_state(before) == read_state(after):
            return wait
        self._quiet_at[key] = quiet_at + STATUS_SECONDS
        return None


def read_state(status: RolloutStatus) -> tuple[object, ...]:
    """All of a status but counts, messages and the time of the last progress."""
    return (
        status.observed_generation,
        status.selector,
        status.phase,
        status.stable,
        status.previous,
        status.current,
        status.revision,
        status.step,
        status.paused_at,
        status.promoted_at,
        [(condition.type, condition.status, condition.reason) for condition in status.conditions],
        [(version.hash, version.revision, version.role) for version in status.versions],
    )
