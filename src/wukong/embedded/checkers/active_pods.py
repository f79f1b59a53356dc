"""The active pods of each controller, as a mirror shows them: neither terminating nor finished. Asked by pod_creations
and pod_deletions.

An index derived from the mirror: thousands of pods of one controller are not walked for each that comes or goes. It
counts for itself, for checkers share no code with the controllers they judge.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from wukong.api.core import Pod
from wukong.api.kinds import PODS
from wukong.api.meta import Object, controller_of
from wukong.api.resources import Key
from wukong.embedded.checkers.pods import is_active
from wukong.engine.copy_on_write import CopyOnWriteDicts
from wukong.state import State

_NONE: Mapping[str, Pod] = {}


class ActivePods:
    kinds: ClassVar[frozenset[str]] = frozenset({PODS.group_kind})

    def __init__(self) -> None:
        # uid of a controller → uid of a pod → the pod
        self._active: CopyOnWriteDicts[str, str, Pod] = CopyOnWriteDicts()

    def of(self, controller_uid: str) -> Mapping[str, Pod]:
        return self._active.get(controller_uid, _NONE)

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        before = _controller_uid_of(old) if old is not None else ""
        after = _controller_uid_of(new) if new is not None else ""
        if old is not None and before and (before != after or new is None or old.metadata.uid != new.metadata.uid):
            del self._active.own(before)[old.metadata.uid]
            self._active.drop_if_empty(before)
        if after and isinstance(new, Pod):
            self._active.own(after)[new.metadata.uid] = new

    def fork(self) -> ActivePods:
        copy = ActivePods()
        copy._active = self._active.fork()
        return copy


def active_siblings(pod: Pod, state: State) -> Mapping[str, Pod]:
    """The active pods of the same controller, by uid. The pod itself may be among them."""
    reference = controller_of(pod.metadata)
    return _NONE if reference is None else state.index_of(ActivePods).of(reference.uid)


def _controller_uid_of(pod: Object) -> str:
    """The uid of an active pod's controller; empty for other pods."""
    if not isinstance(pod, Pod) or not is_active(pod):
        return ""
    reference = controller_of(pod.metadata)
    return reference.uid if reference is not None else ""
