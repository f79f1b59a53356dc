"""The pods of each DaemonSet by the node they are on or meant for, as a mirror shows them, and how many of them an
update may take away. Asked by pod_creations and pod_deletions.

An index derived from the mirror: thousands of pods of one DaemonSet are not walked for each that comes or goes. It
counts for itself, for checkers share no code with the controllers they judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from math import ceil
from typing import ClassVar

from wukong.api.apps import DaemonSet
from wukong.api.core import Node, Pod
from wukong.api.kinds import DAEMON_SETS, PODS
from wukong.api.meta import Object, controller_of
from wukong.api.resources import Key, refers_to
from wukong.embedded.checkers.active_pods import active_siblings
from wukong.embedded.checkers.pods import is_ready, target_node_of
from wukong.engine.copy_on_write import CopyOnWriteDicts
from wukong.state import State

Place = tuple[str, str]  # uid of a DaemonSet, and a node


class DaemonPods:
    kinds: ClassVar[frozenset[str]] = frozenset({PODS.group_kind})
    pod_controller: ClassVar[str] = DAEMON_SETS.kind

    def __init__(self) -> None:
        self._pods: CopyOnWriteDicts[Place, str, Pod] = CopyOnWriteDicts()  # then by uid
        # uid of a DaemonSet → nodes that have pods of it, but no ready one that stays
        self._unready: CopyOnWriteDicts[str, str, None] = CopyOnWriteDicts()

    def of(self, controller_uid: str, node: str) -> Iterable[Pod]:
        return self._pods.get((controller_uid, node), {}).values()

    def unready_nodes(self, controller_uid: str) -> Set[str]:
        """The nodes that have pods of it, but no ready one that stays."""
        return self._unready.get(controller_uid, {}).keys()

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        if isinstance(old, Pod) and (place := _place_of(old)) is not None:
            del self._pods.own(place)[old.metadata.uid]
            self._pods.drop_if_empty(place)
            self._mark_node(place)
        if isinstance(new, Pod) and (place := _place_of(new)) is not None:
            self._pods.own(place)[new.metadata.uid] = new
            self._mark_node(place)

    def _mark_node(self, place: Place) -> None:
        controller_uid, node = place
        pods = [pod for pod in self._pods.get(place, {}).values() if not (pod.is_terminating and pod.is_finished)]
        if pods and not any(is_ready(pod) and not pod.is_terminating for pod in pods):
            self._unready.own(controller_uid)[node] = None
        elif node in self._unready.get(controller_uid, ()):
            del self._unready.own(controller_uid)[node]
            self._unready.drop_if_empty(controller_uid)

    def fork(self) -> DaemonPods:
        copy = DaemonPods()
        copy._pods, copy._unready = self._pods.fork(), self._unready.fork()
        return copy


def siblings_on_node(pod: Pod, state: State) -> list[Pod]:
    """The other pods of the same DaemonSet that are on the same node or meant for it."""
    place = _place_of(pod)
    siblings = state.index_of(DaemonPods).of(*place) if place is not None else ()
    return [sibling for sibling in siblings if sibling.metadata.uid != pod.metadata.uid]


def may_update_daemon(pod: Pod, owner: DaemonSet, state: State, deleted: Set[str]) -> bool:
    """Whether an update may take this pod, which is outdated. `deleted` are uids of the same decision.

    One that is not ready is no loss. A ready one goes, without surge, while fewer nodes than maxUnavailable are without
    a ready pod; with surge, when another pod on its node is ready. Nodes that have no pod at all are not counted, and
    percentages are of all nodes: the controller allows itself less.
    """
    strategy = owner.spec.update_strategy
    if strategy is not None and strategy.type == "OnDelete":
        return False
    if not is_ready(pod):
        return True
    rolling = strategy.rolling_update if strategy is not None else None
    if surges(owner):
        return any(is_ready(sibling) and not sibling.is_terminating for sibling in siblings_on_node(pod, state))
    active = active_siblings(pod, state)
    unready = {*state.index_of(DaemonPods).unready_nodes(owner.metadata.uid)}
    unready |= {target_node_of(active[uid]) for uid in deleted if uid in active}
    most = rolling.max_unavailable if rolling is not None else None
    if isinstance(most, str):
        most = ceil(int(most.removesuffix("%")) * len(state.of(Node)) / 100)
    return len(unready - {target_node_of(pod)}) < max(1, most or 0)


def surges(owner: DaemonSet) -> bool:
    strategy = owner.spec.update_strategy
    rolling = strategy.rolling_update if strategy is not None else None
    return rolling is not None and rolling.max_surge not in (None, 0, "0%")


def _place_of(pod: Pod) -> Place | None:
    reference = controller_of(pod.metadata)
    if reference is None or not refers_to(reference, DAEMON_SETS):
        return None
    return reference.uid, target_node_of(pod)
