"""What failed lately: per controller and key, how often in a row, why, and when. Kept by the runtime's dispatch.

Controllers read it to explain themselves (a condition, a Note) or to try another way. It decides nothing: when a key
comes back is the queue's business.
"""

from __future__ import annotations

import msgspec

from wukong.api.resources import Key


class Attempt(msgspec.Struct, frozen=True):
    """`count` failures in a row, the last of them with `error` at `at`."""

    count: int
    error: str
    at: float


class Attempts:
    def __init__(self, failed: dict[tuple[str, Key], Attempt] | None = None) -> None:
        self._failed = failed or {}

    def get(self, controller: str, key: Key) -> Attempt | None:
        """The failures since the last success; None if there were none."""
        return self._failed.get((controller, key))

    def list_failing(self, controller: str) -> list[Key]:
        """The keys that this controller has failed at since it last succeeded. Sorted."""
        return sorted(key for name, key in self._failed if name == controller)

    def record_failure(self, controller: str, key: Key, error: str, now: float) -> Attempt:
        before = self._failed.get((controller, key))
        attempt = Attempt(before.count + 1 if before else 1, error, now)
        self._failed[controller, key] = attempt
        return attempt

    def record_success(self, controller: str, key: Key) -> None:
        self._failed.pop((controller, key), None)

    def __len__(self) -> int:
        return len(self._failed)

    def fork(self) -> Attempts:
        return Attempts(dict(self._failed))
