"""What a controller is: what it watches, and one pure function from a key to what should be done about it.

Implemented by controllers/ and by the actors of the embedded cluster, called by `runtime.dispatch`. A controller keeps
nothing between calls that it could not lose: what it knows is in the state, what it wants is in the Outcome, and the
same key may come any time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import NamedTuple, Protocol

from wukong.actions import Outcome
from wukong.api.kinds import KINDS
from wukong.api.meta import Object
from wukong.api.resources import Key, Resource
from wukong.ports import EVERYTHING, Selection
from wukong.state.mirror import Change, State

KeysOf = Callable[[Change, State], Iterable[Key]]
KeysOfObject = Callable[[Object, State], Iterable[Key]]
IsAlike = Callable[[Object, Object], bool]  # two versions of an object
Trait = Callable[[Object], str | None]  # what tells whom an object concerns; None: it does not tell


def own_key(change: Change, _: State) -> Iterable[Key]:
    return (change.key,)


def each_side(keys: KeysOfObject) -> KeysOf:
    """The keys of an object as it was and those of it as it is, where what they are depends on what it says."""

    def keys_of_both(change: Change, state: State) -> Iterable[Key]:
        _, _, _, old, new = change
        if old is None or new is None or old is new:
            subject = old if new is None else new
            return keys(subject, state) if subject is not None else ()
        before, after = keys(old, state), keys(new, state)
        return after if before == after else (*before, *after)

    return keys_of_both


def each_side_unless(is_alike: IsAlike) -> Callable[[KeysOfObject], KeysUnlessAlike]:
    """Like `each_side`, but only the object as it is is asked where both are alike in all that its keys depend on."""
    return lambda keys: KeysUnlessAlike(is_alike, keys)


class KeysUnlessAlike:
    """What `each_side_unless` makes. Whoever asks many of them about one change asks each `is_alike` only once."""

    __slots__ = ("is_alike", "keys_of_both", "keys_of_object")

    def __init__(self, is_alike: IsAlike, keys: KeysOfObject) -> None:
        self.is_alike, self.keys_of_object, self.keys_of_both = is_alike, keys, each_side(keys)

    def __call__(self, change: Change, state: State) -> Iterable[Key]:
        old, new = change.old, change.new
        if old is None or new is None:
            subject = old if new is None else new
            return self.keys_of_object(subject, state) if subject is not None else ()
        return self.keys_of_object(new, state) if self.is_alike(old, new) else self.keys_of_both(change, state)


class KeysByTrait:
    """Keys that only objects with this value of a trait have. Whoever asks many of them about one change reads each
    trait once, and asks those alone whose value it is, or all where the trait does not tell."""

    __slots__ = ("keys", "trait", "value")

    def __init__(self, trait: Trait, value: str, keys: KeysOf) -> None:
        self.trait, self.value, self.keys = trait, value, keys

    def __call__(self, change: Change, state: State) -> Iterable[Key]:
        return self.keys(change, state)


def controller_kind(subject: Object) -> str | None:
    """The trait of an object that has a controller: the kind of that, without its group."""
    for owner in subject.metadata.owner_references:
        if owner.controller:
            return owner.kind
    return None


def no_keys(_: Change, __: State) -> Iterable[Key]:
    """For kinds that are looked up and not acted upon."""
    return ()


class Watch(NamedTuple):
    """A kind whose changes concern a controller, and which of its keys a change stands for.

    `read` is for kinds that the table of kinds does not have. Only the objects of the `selection` are mirrored. An
    `optional` kind may not be installed: then there are none of it. `is_secondary`: its keys are those of objects that
    the controller watches, too, so that nobody need ask for them when all objects are new.
    """

    resource: Resource
    keys: KeysOf = own_key
    read: type[Object] | None = None
    selection: Selection = EVERYTHING
    optional: bool = False
    is_secondary: bool = False

    @property
    def struct(self) -> type[Object]:
        if self.read is not None:
            return self.read
        entry = KINDS.of_resource(self.resource)
        return Object if entry is None else entry.struct


class PodRight(Enum):
    """By what right a controller creates or deletes pods. Controllers declare it; checkers judge what they do by it."""

    CREATE_REPLICAS = "creates pods until their owner has as many as its spec.replicas says"
    CREATE_ONE_PER_NODE = "creates one pod of a DaemonSet for each node"
    CREATE_ORDINALS = "creates a StatefulSet's pods, one for each ordinal that its spec.replicas asks for"
    CREATE_JOB_PODS = "creates a Job's pods, no more at a time than its spec.parallelism"
    CREATE_LAUNCHERS = "creates the virt-launcher pod of a VirtualMachineInstance that has not had one"
    CREATE_MIGRATION_TARGETS = "creates the target pod of a live migration, one for each"
    DELETE_SURPLUS_REPLICAS = "deletes pods where their owner has more than its spec.replicas says"
    DELETE_ORDINALS = "deletes a StatefulSet's pods that have ended, are outdated, or whose ordinal is not asked for"
    DELETE_DAEMON_PODS = "deletes a DaemonSet's pods that have ended, are outdated, or are not wanted on their node"
    DELETE_JOB_PODS = "deletes a Job's pods"
    DELETE_LAUNCHERS = "deletes the pods of a VirtualMachineInstance that is being deleted"
    DELETE_MIGRATION_TARGETS = "deletes the target pod of a migration that was cancelled, or waited too long for a node"
    DELETE_FROM_TAINTED_NODES = "deletes pods from nodes with a NoExecute taint"
    DELETE_FROM_MISSING_NODES = "deletes pods whose node is gone, or that have none"
    DELETE_DEPENDENTS = "deletes pods whose owner is gone or being deleted"
    DELETE_WITH_NAMESPACE = "deletes the pods of a namespace that is gone or being deleted"
    PREEMPT = "deletes pods that are marked as preempted by the scheduler"
    DELETE_AT_DEADLINE = "deletes pods from nodes whose machine goes before long, where their policy says so"
    DELETE_UNPLACED = "deletes pods that no node takes, so that their ReplicaSet makes others"
    EVICT = "deletes pods by the eviction API alone"
    EVICT_FROM_WHOLE = "evicts a pod whose owner has all the pods that it asks for, the others ready: one at a time"


class NodeRight(Enum):
    """By what right a controller asks for, creates or deletes nodes. Declared and judged like a PodRight."""

    REQUEST_OF_GROUP = "asks for nodes of a group, no more than the group may have"
    CREATE_REQUESTED = "creates nodes that were asked for"
    DELETE_EMPTY = "deletes nodes of a group that all pods have left but daemons, not below the group's minimum"


class Controller(Protocol):
    """One that creates, evicts or deletes pods also declares by what right, as a class attribute:

        pod_rights: ClassVar[frozenset[PodRight]]

    One that does so to nodes declares `node_rights`, others nothing: see `pod_rights_of`. One that comes back after a
    failure sooner or later than others has a class attribute `backoff` (runtime/queue.py).
    """

    @property
    def name(self) -> str:
        """Short and constant: names attempts, metrics and log lines."""
        ...

    @property
    def watches(self) -> tuple[Watch, ...]: ...

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        """What to do about this key, seen as a whole. Called again whenever in doubt: it must be safe to repeat."""
        ...


def copy_memory(source: Controller, target: Controller, state: State) -> None:
    """Have `target`, made anew for this copy of the state, remember all that `source` does.

    Only controllers that remember something between decisions have a method `copy_memory`.
    """
    if (copy := getattr(target, "copy_memory", None)) is not None:
        copy(source, state)


def pod_rights_of(controller: Controller) -> frozenset[PodRight]:
    """The rights that a controller declares; none where it declares nothing."""
    rights: frozenset[PodRight] = getattr(controller, "pod_rights", frozenset())
    return rights


def node_rights_of(controller: Controller) -> frozenset[NodeRight]:
    """The rights to nodes that a controller declares; none where it declares nothing."""
    rights: frozenset[NodeRight] = getattr(controller, "node_rights", frozenset())
    return rights
