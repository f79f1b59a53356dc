"""Which keys a changed pod stands for, asked of virt-launcher pods alone: of others only their labels are looked at.

Used by the watches of this package. KubeVirt never changes the label, nor whose pod one is.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.api.kinds import VIRTUAL_MACHINE_INSTANCES
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.embedded.actors.watch_keys import controller_key
from wukong.embedded.store.kubevirt import names
from wukong.state import Change, State
from wukong.state.controller import KeysByTrait, KeysOf, KeysOfObject


def is_launcher(pod: Object) -> bool:
    return pod.metadata.labels.get(names.LAUNCHER_LABEL) == names.LAUNCHER


def of_launchers(find_keys: KeysOfObject) -> KeysOf:
    """The keys of a changed virt-launcher pod, as it is, or was last; none of any other pod."""

    def keys_of_launcher(change: Change, state: State) -> Iterable[Key]:
        pod = change.new if change.new is not None else change.old
        if pod is None or pod.metadata.labels.get(names.LAUNCHER_LABEL) != names.LAUNCHER:
            return ()
        return find_keys(pod, state)

    return KeysByTrait(launcher_label, names.LAUNCHER, keys_of_launcher)


def launcher_label(pod: Object) -> str:
    """The trait of virt-launcher pods."""
    return pod.metadata.labels.get(names.LAUNCHER_LABEL, "")


def key_of_instance(pod: Object, _: State) -> Iterable[Key]:
    """The instance whose virt-launcher pod this is."""
    key = controller_key(pod, VIRTUAL_MACHINE_INSTANCES)
    return (key,) if key is not None else ()


keys_of_launchers = of_launchers(key_of_instance)
