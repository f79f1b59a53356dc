"""Which keys of a controller a changed object stands for: those of its controller, of its owners, or on its node.

Used by the actors' watches.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.api.apps import Workload
from wukong.api.kinds import KINDS
from wukong.api.meta import Object, controller_of
from wukong.api.resources import Key, Resource, key_of, refers_to
from wukong.embedded.actors.adoption import may_own
from wukong.state import Change, State
from wukong.state.controller import KeysOf, each_side


def keys_on_node(change: Change, state: State) -> list[Key]:
    """The pods on a node that changed."""
    return state.pods.on_node(change.key.name)


def controller_key(owned: Object, resource: Resource) -> Key | None:
    """The key of the object's controller, if that is of this kind."""
    owner = controller_of(owned.metadata)
    return Key(owned.metadata.namespace, owner.name) if owner is not None and refers_to(owner, resource) else None


def keys_of_controller(resource: Resource) -> KeysOf:
    """The key of a changed object's controller, if that is of this kind."""

    def find_keys(owned: Object, _: State) -> Iterable[Key]:
        key = controller_key(owned, resource)
        return (key,) if key is not None else ()

    return each_side(find_keys)


def keys_of_owners(struct: type[Workload]) -> KeysOf:
    """The key of a changed object's controller; if it has none, those of the workloads that may adopt it."""
    entry = KINDS.of_struct(struct)
    assert entry is not None, f"{struct.__name__} is not in the table of kinds"

    def find_keys(owned: Object, state: State) -> Iterable[Key]:
        controller = controller_of(owned.metadata)
        if controller is None:
            return [key_of(workload) for workload in state.all(struct) if may_own(workload, owned)]
        return (Key(owned.metadata.namespace, controller.name),) if refers_to(controller, entry.resource) else ()

    return each_side(find_keys)
