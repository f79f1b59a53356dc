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
from wukong.state.mirror import State

KeysOf = Callable[[Object, State], Iterable[Key]]


def own_key(found: Object, _: State) -> Iterable[Key]:
    return (Key(found.metadata.namespace, found.metadata.name),)


class Watch(NamedTuple):
    """A kind whose changes concern a controller, and which of its keys a changed object stands for.

    `keys` is asked about an object as it was and as it is now. `read` is for kinds that api.kinds does not list.
    """

    resource: Resource
    keys: KeysOf = own_key
    read: type[Object] | None = None

    @property
    def struct(self) -> type[Object]:
        return self.read or KINDS.get(self.resource.kind, Object)


class PodRight(Enum):
    """By what right a controller creates or deletes pods. Controllers declare it; checkers judge what they do by it."""

    CREATE_REPLICAS = "creates pods until their owner has as many as its spec.replicas says"
    CREATE_ONE_PER_NODE = "creates one pod of a DaemonSet for each node"
    CREATE_ORDINALS = "creates a StatefulSet's pods, one for each ordinal that its spec.replicas asks for"
    CREATE_JOB_PODS = "creates a Job's pods, no more at a time than its spec.parallelism"
    DELETE_SURPLUS_REPLICAS = "deletes pods where their owner has more than its spec.replicas says"
    DELETE_ORDINALS = "deletes a StatefulSet's pods that have ended, are outdated, or whose ordinal is not asked for"
    DELETE_DAEMON_PODS = "deletes a DaemonSet's pods that have ended, are outdated, or are not wanted on their node"
    DELETE_JOB_PODS = "deletes a Job's pods"
    DELETE_FROM_TAINTED_NODES = "deletes pods from nodes with a NoExecute taint"
    DELETE_FROM_MISSING_NODES = "deletes pods whose node is gone, or that have none"
    DELETE_DEPENDENTS = "deletes pods whose owner is gone or being deleted"
    DELETE_WITH_NAMESPACE = "deletes the pods of a namespace that is gone or being deleted"
    PREEMPT = "deletes pods that are marked as preempted by the scheduler"
    EVICT = "deletes pods by the eviction API alone"


class Controller(Protocol):
    """One that creates, evicts or deletes pods also declares by what right, as a class attribute:

        pod_rights: ClassVar[frozenset[PodRight]]

    Others declare nothing: see `pod_rights_of`.
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


def pod_rights_of(controller: Controller) -> frozenset[PodRight]:
    """The rights that a controller declares; none where it declares nothing."""
    rights: frozenset[PodRight] = getattr(controller, "pod_rights", frozenset())
    return rights
