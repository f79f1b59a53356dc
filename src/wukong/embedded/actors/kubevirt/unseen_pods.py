"""Pods that a VirtualMachineInstance names in its status and the mirror has not shown yet: its watch of pods is behind.

Kept by instances.py. An instance whose pods are not seen must not be taken for one that has none: it would be let go,
and its guest started once more. KubeVirt 1.7 knows only what it asked for itself (expectations.py) and trusts its cache
of pods else; a leader that is late with pods alone, and does not know yet that another has taken over, lets such an
instance go. Here it is left alone until the pods are seen, or for as long as expectations are kept.
"""

from __future__ import annotations

from collections.abc import Collection

from wukong.api.resources import Key
from wukong.embedded.actors.kubevirt.expectations import EXPECTATION_SECONDS

_MOST_REMOVED = 1000  # remembered: an instance names a pod for some seconds after that is gone


class UnseenPods:
    def __init__(self) -> None:
        self._unseen: dict[Key, dict[str, None]] = {}  # instance → uids of pods
        self._since: dict[Key, float] = {}  # instance → when this was first asked
        self._removed: dict[str, None] = {}  # uids of pods that were seen to go

    def copy_memory(self, source: UnseenPods) -> None:
        self._unseen = {key: dict(uids) for key, uids in source._unseen.items()}
        self._since, self._removed = dict(source._since), dict(source._removed)

    def observe_named(self, key: Key, uids: Collection[str], shown: Collection[str]) -> None:
        """An instance has begun to name these pods; those that are `shown` are in the mirror."""
        unseen = [uid for uid in sorted(uids) if uid not in shown and uid not in self._removed]
        if unseen:
            self._unseen.setdefault(key, {}).update(dict.fromkeys(unseen))

    def observe_shown(self, key: Key, uid: str, *, is_removed: bool) -> None:
        """A pod of this instance is there, or has gone."""
        if is_removed:
            self._removed[uid] = None
            if len(self._removed) > _MOST_REMOVED:
                del self._removed[next(iter(self._removed))]
        unseen = self._unseen.get(key, {})
        unseen.pop(uid, None)
        if not unseen:
            self.forget(key)

    def forget(self, key: Key) -> None:
        self._unseen.pop(key, None)
        self._since.pop(key, None)

    def seconds_left(self, key: Key, now: float) -> float:
        """How long this instance is left alone unless its pods are seen; 0 if all are."""
        if key not in self._unseen:
            return 0.0
        left = self._since.setdefault(key, now) + EXPECTATION_SECONDS - now
        if left <= 0:
            self.forget(key)
        return max(0.0, left)
