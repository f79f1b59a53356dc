"""What placed pods take from their nodes, by the rules, worked out once for pods that hold the same parts.

Kept by the bindings checker and shared with its forks. Objects of a mirror are never changed in place, and pods made
alike share what their specs hold, as the very same objects: so an answer is remembered by the identity of all that it
depends on. Whoever has been resized is asked for anew each time.
"""

from __future__ import annotations

from wukong.api.core import Pod
from wukong.rules.resources import Amounts, placed_requests_of

MOST = 4096  # remembered
Parts = tuple[object, object, object, object]


class PlacedRequests:
    def __init__(self) -> None:
        # ids of the parts of a spec → the parts, so that nothing else gets these ids, and what they ask for
        self._by_parts: dict[tuple[int, int, int, int], tuple[Parts, Amounts]] = {}

    def of(self, pod: Pod) -> Amounts:
        """What `placed_requests_of` returns. Nobody may change it."""
        if may_be_resized(pod):
            return placed_requests_of(pod)
        spec = pod.spec
        place = (id(spec.containers), id(spec.init_containers), id(spec.resources), id(spec.overhead))
        known = self._by_parts.get(place)
        if known is None:
            if len(self._by_parts) >= MOST:
                self._by_parts.clear()
            parts = (spec.containers, spec.init_containers, spec.resources, spec.overhead)
            known = self._by_parts[place] = parts, placed_requests_of(pod)
        return known[1]


def may_be_resized(pod: Pod) -> bool:
    """Whether its status says what containers have been given."""
    for statuses in (pod.status.container_statuses, pod.status.init_container_statuses):
        for entry in statuses:
            if entry.resources is not None:
                return True
    return False
