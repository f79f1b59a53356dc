"""When the next pod becomes available, found by a walk over all of them. The tests of indexes compare with it."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from wukong.api.core import Pod
from wukong.embedded.actors import pods as podlike


def seconds_to_next_available(pods: Iterable[Pod], min_ready_seconds: int, now: float) -> float | None:
    """Seconds until the next of these pods becomes available by waiting alone. None if none will."""
    if not min_ready_seconds:
        return None
    waits = [podlike.ready_since(pod) + min_ready_seconds - now for pod in pods if podlike.is_ready(pod)]
    least = min((wait for wait in waits if wait > 0), default=inf)
    return None if least == inf else least
