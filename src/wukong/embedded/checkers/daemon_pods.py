"""The pods of each DaemonSet by the node they are on or meant for, as a mirror shows them. Asked by pod_creations and
pod_deletions.

An index derived from the mirror: thousands of pods of one DaemonSet are not walked for each that comes or goes. It
counts for itself, for checkers share no code with the controllers they judge.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from wukong.api.core import Pod
from wukong.api.kinds import DAEMON_SETS, PODS
from wukong.api.meta import Object, controller_of
from wukong.api.resources import Key, refers_to
from wukong.embedded.checkers.pods import target_node_of
from wukong.engine.copy_on_write import CopyOnWriteDicts
from wukong.state import State

Place = tuple[str, str]  # uid of a DaemonSet, and a node


class DaemonPods:
    kinds: ClassVar[frozenset[str]] = frozenset({PODS.group_kind})

    def __init__(self) -> None:
        self._pods: CopyOnWriteDicts[Place, str, Pod] = CopyOnWriteDicts()  # then by uid

    def of(self, controller_uid: str, node: str) -> Iterable[Pod]:
        return self._pods.get((controller_uid, node), {}).values()

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        if isinstance(old, Pod) and (place := _place_of(old)) is not None:
            del self._pods.own(place)[old.metadata.uid]
            self._pods.drop_if_empty(place)
        if isinstance(new, Pod) and (place := _place_of(new)) is not None:
            self._pods.own(place)[new.metadata.uid] = new

    def fork(self) -> DaemonPods:
        copy = DaemonPods()
        copy._pods = self._pods.fork()
        return copy


def siblings_on_node(pod: Pod, state: State) -> list[Pod]:
    """The other pods of the same DaemonSet that are on the same node or meant for it."""
    place = _place_of(pod)
    siblings = state.index_of(DaemonPods).of(*place) if place is not None else ()
    return [sibling for sibling in siblings if sibling.metadata.uid != pod.metadata.uid]


def _place_of(pod: Pod) -> Place | None:
    reference = controller_of(pod.metadata)
    if reference is None or not refers_to(reference, DAEMON_SETS):
        return None
    return reference.uid, target_node_of(pod)
