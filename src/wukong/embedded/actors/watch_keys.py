"""Which keys of a controller a changed object stands for: those of its controller, of its owners, or on its node.

Used by the actors' watches.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.api.apps import Workload
from wukong.api.core import Pod
from wukong.api.kinds import KINDS
from wukong.api.meta import Object, controller_of
from wukong.api.resources import Key, Resource, key_of, refers_to
from wukong.embedded.actors.adoption import may_own
from wukong.state import Change, State
from wukong.state.controller import KeysByTrait, KeysOf, controller_kind, each_side_unless


def keys_on_node(change: Change, state: State) -> list[Key]:
    """The pods on a node that changed."""
    return state.pods.on_node(change.key.name)


def controller_key(owned: Object, resource: Resource) -> Key | None:
    """The key of the object's controller, if that is of this kind."""
    owner = controller_of(owned.metadata)
    return Key(owned.metadata.namespace, owner.name) if owner is not None and refers_to(owner, resource) else None


def has_same_node(old: Object, new: Object) -> bool:
    """Whether a pod is on the same node in two versions, or on none."""
    assert isinstance(old, Pod)
    assert isinstance(new, Pod)
    return old.spec is new.spec or old.spec.node_name == new.spec.node_name


def has_same_volumes(old: Object, new: Object) -> bool:
    assert isinstance(old, Pod)
    assert isinstance(new, Pod)
    return old.spec is new.spec or old.spec.volumes is new.spec.volumes


def has_same_labels(old: Object, new: Object) -> bool:
    labels = old.metadata.labels
    return labels is new.metadata.labels or labels == new.metadata.labels


def has_same_owners(old: Object, new: Object) -> bool:
    owners = old.metadata.owner_references
    return owners is new.metadata.owner_references or owners == new.metadata.owner_references


def keys_of_controller(resource: Resource) -> KeysOf:
    """The key of a changed object's controller, if that is of this kind."""

    def find_keys(owned: Object, _: State) -> Iterable[Key]:
        key = controller_key(owned, resource)
        return (key,) if key is not None else ()

    return KeysByTrait(controller_kind, resource.kind, each_side_unless(has_same_owners)(find_keys))


def keys_of_owners(struct: type[Workload]) -> KeysOf:
    """The key of a changed object's controller; if it has none, those of the workloads that may adopt it."""
    entry = KINDS.of_struct(struct)
    assert entry is not None, f"{struct.__name__} is not in the table of kinds"
    resource, kind = entry.resource, entry.resource.kind

    def find_keys(owned: Object, state: State) -> Iterable[Key]:
        for owner in owned.metadata.owner_references:
            if owner.controller:
                is_ours = owner.kind == kind and refers_to(owner, resource)
                return (Key(owned.metadata.namespace, owner.name),) if is_ours else ()
        return tuple(key_of(workload) for workload in state.all(struct) if may_own(workload, owned))

    return KeysByTrait(controller_kind, kind, each_side_unless(_is_owned_alike)(find_keys))


def _is_owned_alike(old: Object, new: Object) -> bool:
    return has_same_owners(old, new) and has_same_labels(old, new)
