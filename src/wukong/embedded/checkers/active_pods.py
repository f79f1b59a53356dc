"""The pods of each controller that neither stop nor have ended, in the eyes of a mirror. Asked by arrivals, departures.

A follower of the mirror: thousands of pods of one controller are not walked for each that comes or goes. It counts for
itself, for checkers share no code with who decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from wukong.api.core import Pod
from wukong.api.meta import Object, controller_of
from wukong.api.resources import Key
from wukong.state import State

_NONE: Mapping[str, Pod] = {}


class ActivePods:
    kinds: ClassVar[frozenset[str]] = frozenset({"Pod"})

    def __init__(self) -> None:
        self._active: dict[str, dict[str, Pod]] = {}  # uid of a controller → uid of a pod → the pod

    def of(self, controller: str) -> Mapping[str, Pod]:
        return self._active.get(controller, _NONE)

    def note(self, kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        if old is not None and (maker := _maker(old)):
            there = self._active[maker]
            del there[old.metadata.uid]
            if not there:
                del self._active[maker]
        if isinstance(new, Pod) and (maker := _maker(new)):
            self._active.setdefault(maker, {})[new.metadata.uid] = new


def active_siblings(pod: Pod, state: State) -> Mapping[str, Pod]:
    """Of the same controller, by uid. The pod itself may be among them."""
    reference = controller_of(pod.metadata)
    return _NONE if reference is None else state.derived(ActivePods).of(reference.uid)


def _maker(found: Object) -> str:
    """The uid of the controller of a pod that counts."""
    if not isinstance(found, Pod) or found.is_terminating or found.is_finished:
        return ""
    reference = controller_of(found.metadata)
    return reference.uid if reference is not None else ""
