"""What a controller of virt-controller has asked the API server for and its mirror has not shown yet.

Follows ControllerExpectations of KubeVirt 1.7 (pkg/controller/expectations.go): a key whose creations have not all been
seen is left alone, for five minutes at most. The runtime's own rest of a key after a write is over after some seconds,
which is enough for objects whose names are known beforehand: who creates them twice is refused. What must not be taken
for absent as long as it may merely be unseen needs more: an instance without a pod is let go. As in KubeVirt nobody
waits for what a process before this one asked for: a process that starts lists everything.
"""

from __future__ import annotations

from typing import NamedTuple

from wukong.api.resources import Key
from wukong.state.attempts import Attempt

EXPECTATION_SECONDS = 300.0


class Expected(NamedTuple):
    number: int
    at: float
    uid: str


class Expectations:
    """By key. With a uid of what the key names, one that has its name later is not left alone for it."""

    def __init__(self) -> None:
        self._by_key: dict[Key, Expected] = {}

    def copy_memory(self, source: Expectations) -> None:
        self._by_key = dict(source._by_key)

    def expect(self, key: Key, count: int, now: float, *, uid: str = "") -> None:
        """So many objects are being created for this key."""
        self._by_key[key] = Expected(count, now, uid)

    def observe(self, key: Key, *, uid: str = "") -> None:
        """An object of this key has been seen for the first time."""
        expected = self._by_key.get(key)
        if expected is None or expected.uid != uid:
            return
        if expected.number > 1:
            self._by_key[key] = expected._replace(number=expected.number - 1)
        else:
            self.forget(key)

    def forget(self, key: Key) -> None:
        self._by_key.pop(key, None)

    def seconds_left(self, key: Key, attempt: Attempt | None, now: float, *, uid: str = "") -> float:
        """How long this key is left alone unless the rest is seen; 0 if nothing is missing.

        `attempt` is how it last failed, if it did: what was refused is not waited for.
        """
        expected = self._by_key.get(key)
        if expected is None:
            return 0.0
        left = expected.at + EXPECTATION_SECONDS - now
        has_failed = attempt is not None and attempt.at >= expected.at
        if left <= 0 or has_failed or expected.uid != uid:
            self.forget(key)
            return 0.0
        return left
