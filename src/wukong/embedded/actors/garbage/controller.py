"""Who goes with what is gone: the garbage collector, the namespace controller and the pod garbage collector as actors.

What is due is said by store/garbage_collection.py and namespaces.py, which read the database itself; here it is asked
near every change and handed to the world to perform. Garbage's keys are uids: of what changed, and of its owners.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from wukong.actions import DONE, Delete, Outcome, Patch
from wukong.api.core import Pod
from wukong.api.kinds import EVENTS, LEASES, NAMESPACES, NODES, PODS
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.embedded.actors.node_lifecycle.zones import is_ready
from wukong.embedded.actors.pods import keys_on_node
from wukong.embedded.store import Server, garbage_collection, namespaces
from wukong.embedded.world.objects import Node
from wukong.embedded.world.transport import FINALIZE
from wukong.ports import PatchBody
from wukong.state import State
from wukong.state.controller import PodRight, Watch, each_side

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
_PERIOD, _QUARANTINE = 20.0, 40.0


class Garbage:
    name = "garbage"
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset({PodRight.DELETE_DEPENDENTS})

    def __init__(self, server: Server) -> None:
        self.database, self.kinds = server.database, server.kinds
        self._candidates = server.garbage_candidates
        watched = [kind.resource for kind in server.kinds if kind.resource not in (EVENTS, LEASES)]
        self.watches = tuple(Watch(resource, each_side(self._concerned)) for resource in watched)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        refs = self._candidates.list_near(key.name)
        return Outcome(tuple(garbage_collection.plan_actions(self.database, self.kinds, refs))) if refs else DONE

    def _concerned(self, found: Object, _: State) -> Iterable[Key]:
        """The uids of it and its owners that have garbage candidates near. Most changes have none."""
        uids = (found.metadata.uid, *(each.uid for each in found.metadata.owner_references))
        return [Key("", uid) for uid in uids if self._candidates.has_near(uid)]


class Namespaces:
    """Empties a namespace that is being deleted, then ends it. Looks again every second while it is not empty."""

    name = "namespace"
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset({PodRight.DELETE_WITH_NAMESPACE})
    watches = (Watch(NAMESPACES),)

    def __init__(self, server: Server) -> None:
        self.database, self.kinds = server.database, server.kinds

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        if key.name not in namespaces.list_terminating(self.database):
            return DONE
        if namespaces.is_empty(self.database, self.kinds, key.name):
            return Outcome((Patch(NAMESPACES, key, PatchBody("merge", {}), FINALIZE),))
        return Outcome(tuple(namespaces.plan_deletions(self.database, self.kinds, key.name)), requeue_after=1.0)


@each_side
def _abandoned(pod: Object, state: State) -> Iterable[Key]:
    """Only pods whose node is not there, or was never chosen, are of interest."""
    assert isinstance(pod, Pod)
    node = pod.spec.node_name
    is_alone = pod.is_terminating if not node else state.get(Node, Key("", node)) is None
    return (Key(pod.metadata.namespace, pod.metadata.name),) if is_alone else ()


class PodGarbage:
    """Pods whose node is gone for 40 s; terminating ones that never had a node, or whose node is out of service.

    Looks every 20 s, as PodGC does. Finished pods stay, where the real one keeps no more than 12,500 of them.
    """

    name = "podgc"
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset({PodRight.DELETE_FROM_MISSING_NODES})
    watches = (
        Watch(PODS, _abandoned),
        Watch(NODES, keys_on_node),
    )

    def __init__(self) -> None:
        self._missing: dict[str, float] = {}  # node → when it was first found missing

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        pod = state.get(Pod, key)
        if pod is None:
            return DONE
        node = pod.spec.node_name
        if not node:
            return Outcome((_forced(key, pod),)) if pod.is_terminating else DONE
        found = state.get(Node, Key("", node))
        if found is not None:
            self._missing.pop(node, None)
            return _out_of_service(key, pod, found, now)
        since = self._missing.setdefault(node, _next_round(now))
        due = _next_round(since + _QUARANTINE)
        if now < due:
            return Outcome(requeue_after=due - now)
        told = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
        told["message"] = "PodGC: node no longer exists"
        return Outcome((*_failing(key, pod, told), _forced(key, pod)))


def _out_of_service(key: Key, pod: Pod, node: Node, now: float) -> Outcome:
    """Somebody vouches that nothing runs there any more: its pods need not wait for a kubelet to say so."""
    is_vouched = any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)
    if not pod.is_terminating or not is_vouched or is_ready(node):
        return DONE
    left = _next_round(now) - now
    return Outcome(requeue_after=left) if left > 0 else Outcome((*_failing(key, pod), _forced(key, pod)))


def _next_round(now: float) -> float:
    return -(-now // _PERIOD) * _PERIOD


def _forced(key: Key, pod: Pod) -> Delete:
    return Delete(PODS, key, uid=pod.metadata.uid, grace_seconds=0)


def _failing(key: Key, pod: Pod, *conditions: dict[str, str]) -> tuple[Patch, ...]:
    """A pod that ran is failed first, so that whoever counts its end sees it."""
    if pod.is_finished:
        return ()
    status = {"phase": "Failed", **({"conditions": [*conditions]} if conditions else {})}
    patch = {"metadata": {"uid": pod.metadata.uid}, "status": status}
    return (Patch(PODS, key, PatchBody("strategic", patch, manager="kube-controller-manager"), "status"),)
