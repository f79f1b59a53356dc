"""The pods of each StatefulSet by ordinal, as a mirror shows them, and the order in which they may come and go.

Asked by pod_creations and pod_deletions.

    OrderedReady   a pod is created when all below it are ready, and scaled away when all that stay are ready and none
                   that must go is above it
    any policy     a pod is replaced by an update when all above it are ready and the next is of another revision

An index derived from the mirror: thousands of pods of one StatefulSet are not walked for each that comes or goes. It
counts for itself, for checkers share no code with the controllers they judge. What is ready here may not be available
yet (minReadySeconds): the controllers wait longer than is asked of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import ClassVar

from wukong.api.apps import StatefulSet
from wukong.api.core import Pod
from wukong.api.kinds import PODS, STATEFUL_SETS
from wukong.api.meta import Object, controller_of
from wukong.api.resources import Key, refers_to
from wukong.embedded.checkers.active_pods import active_siblings
from wukong.embedded.checkers.pods import is_active, is_ready, ordinal_of, ordinals_of, revision_of
from wukong.engine.copy_on_write import CopyOnWriteDicts
from wukong.state import State

_NONE: Mapping[int, bool] = {}


class OrdinalPods:
    kinds: ClassVar[frozenset[str]] = frozenset({PODS.group_kind})
    pod_controller: ClassVar[str] = STATEFUL_SETS.kind

    def __init__(self) -> None:
        # uid of a StatefulSet → ordinal → whether its pod is ready, and neither terminating nor finished
        self._ready: CopyOnWriteDicts[str, int, bool] = CopyOnWriteDicts()

    def of(self, controller_uid: str) -> Mapping[int, bool]:
        """Of each ordinal that has a pod."""
        return self._ready.get(controller_uid, _NONE)

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        if isinstance(old, Pod) and (place := _place_of(old)) is not None:
            controller_uid, ordinal = place
            self._ready.own(controller_uid).pop(ordinal, None)
            self._ready.drop_if_empty(controller_uid)
        if isinstance(new, Pod) and (place := _place_of(new)) is not None:
            controller_uid, ordinal = place
            self._ready.own(controller_uid)[ordinal] = is_active(new) and is_ready(new)

    def fork(self) -> OrdinalPods:
        copy = OrdinalPods()
        copy._ready = self._ready.fork()
        return copy


def may_create(pod: Pod, owner: StatefulSet, state: State) -> bool:
    """Whether a StatefulSet asks for this pod, and it is its turn."""
    ordinal, wanted = ordinal_of(pod, owner), ordinals_of(owner)
    if ordinal is None or ordinal not in wanted:
        return False
    return not _is_ordered(owner) or _are_ready(range(wanted.start, ordinal), owner, state)


def may_scale_down(pod: Pod, owner: StatefulSet, state: State) -> bool:
    """Whether a StatefulSet does not ask for this pod, and it is its turn to go."""
    ordinal, wanted = ordinal_of(pod, owner), ordinals_of(owner)
    if ordinal in wanted:
        return False
    if ordinal is None or not _is_ordered(owner):
        return True
    present = state.index_of(OrdinalPods).of(owner.metadata.uid)
    is_highest = not any(number > ordinal and number not in wanted for number in present)
    return is_highest and _are_ready(wanted, owner, state)


def may_update(pod: Pod, owner: StatefulSet, state: State, deleted: Set[str]) -> bool:
    """Whether an update has come as far as this pod, which is outdated. `deleted` are uids of the same decision."""
    strategy = owner.spec.update_strategy
    if strategy is not None and strategy.type == "OnDelete":
        return False
    ordinal, wanted = ordinal_of(pod, owner), ordinals_of(owner)
    rolling = strategy.rolling_update if strategy is not None else None
    if ordinal is None or ordinal < wanted.start + ((rolling.partition or 0) if rolling is not None else 0):
        return False
    above = state.get(Pod, Key(pod.metadata.namespace, f"{owner.metadata.name}-{ordinal + 1}"))
    if above is not None and ordinal + 1 in wanted and revision_of(above) == revision_of(pod):
        return False
    siblings = active_siblings(pod, state)
    leaving = (ordinal_of(siblings[uid], owner) for uid in deleted if uid in siblings)
    has_leaving_above = any(number is not None and number > ordinal for number in leaving)
    return not has_leaving_above and _are_ready(range(ordinal + 1, wanted.stop), owner, state)


def _are_ready(ordinals: Iterable[int], owner: StatefulSet, state: State) -> bool:
    ready = state.index_of(OrdinalPods).of(owner.metadata.uid)
    return all(ready.get(ordinal) for ordinal in ordinals)


def _is_ordered(owner: StatefulSet) -> bool:
    return owner.spec.pod_management_policy != "Parallel"


def _place_of(pod: Pod) -> tuple[str, int] | None:
    """The uid of a pod's StatefulSet and its ordinal there."""
    reference = controller_of(pod.metadata)
    if reference is None or not refers_to(reference, STATEFUL_SETS):
        return None
    name, _, number = pod.metadata.name.rpartition("-")
    if name != reference.name or not number.isdecimal() or str(int(number)) != number:
        return None
    return reference.uid, int(number)
