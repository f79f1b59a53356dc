"""The pod garbage collector: deletes pods that no kubelet will let go.

These are pods whose node is gone for 40 s, and terminating ones that never had a node or whose node is out of service.
Looks every 20 s, as PodGC does. Finished pods stay, where the real one keeps no more than 12,500 of them.

Chance decides when in the 20 s it looks, for nobody knows when a cluster was started, and whether the round at which
the 40 s are over comes just in time. In the real one (pkg/controller/podgc, 1.35) a delaying queue hands the node over
in the moment in which that round begins. Mostly the round finds it (on the test bed 71 of 71); on a busy machine the
next one did.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from wukong.actions import DONE, Delete, Outcome, Patch
from wukong.api.core import Pod
from wukong.api.kinds import NODES, PODS
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.embedded.actors.node_lifecycle.zones import is_ready
from wukong.embedded.actors.pods import MANAGER
from wukong.embedded.actors.watch_keys import has_same_node, keys_on_node
from wukong.embedded.world.clock import Chance
from wukong.embedded.world.objects import Node
from wukong.ports import PatchBody
from wukong.state import State
from wukong.state.controller import PodRight, Watch, each_side_unless

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
_PERIOD, _QUARANTINE = 20.0, 40.0
_LATE_SHARE = 0.05


def _is_alike(old: Object, new: Object) -> bool:
    assert isinstance(old, Pod)
    assert isinstance(new, Pod)
    return has_same_node(old, new) and old.is_terminating == new.is_terminating


@each_side_unless(_is_alike)
def _key_without_node(pod: Object, state: State) -> Iterable[Key]:
    """The key of a pod whose node is not there, or of a terminating one that has none."""
    assert isinstance(pod, Pod)
    node = pod.spec.node_name
    is_without_node = pod.is_terminating if not node else state.get(Node, Key("", node)) is None
    return (Key(pod.metadata.namespace, pod.metadata.name),) if is_without_node else ()


class PodGarbageCollector:
    name = "podgc"
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset({PodRight.DELETE_FROM_MISSING_NODES})
    watches = (
        Watch(PODS, _key_without_node),
        Watch(NODES, keys_on_node),
    )

    def __init__(self, chance: Chance | None = None) -> None:
        self._chance = chance or Chance()
        self._offset = _PERIOD * self._chance.share("round")
        self._missing_since: dict[str, float] = {}  # node → when it was first found missing

    def copy_memory(self, source: PodGarbageCollector, _: State) -> None:
        self._missing_since = dict(source._missing_since)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        pod = state.get(Pod, key)
        if pod is None:
            return DONE
        node_name = pod.spec.node_name
        if not node_name:
            return Outcome((_force_delete(key, pod),)) if pod.is_terminating else DONE
        node = state.get(Node, Key("", node_name))
        if node is not None:
            self._missing_since.pop(node_name, None)
            return self._collect_out_of_service(key, pod, node, now)
        since = self._missing_since.setdefault(node_name, self._next_round(now))
        is_late = self._chance.share("late", node_name, since) < _LATE_SHARE
        due = since + _QUARANTINE + is_late * _PERIOD
        if now < due:
            return Outcome(requeue_after=due - now)
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
        condition["message"] = "PodGC: node no longer exists"
        return Outcome((*_mark_failed(key, pod, condition), _force_delete(key, pod)))

    def _collect_out_of_service(self, key: Key, pod: Pod, node: Node, now: float) -> Outcome:
        """Delete a terminating pod of an unready node with the out-of-service taint.

        By the taint somebody vouches that nothing runs there any more, so no kubelet needs to confirm it.
        """
        is_out_of_service = any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)
        if not pod.is_terminating or not is_out_of_service or is_ready(node):
            return DONE
        left = self._next_round(now) - now
        return Outcome(requeue_after=left) if left > 0 else Outcome((*_mark_failed(key, pod), _force_delete(key, pod)))

    def _next_round(self, now: float) -> float:
        """When it looks next: now, if this is the moment. In whole milliseconds, for moments are not kept exactly."""
        moment, offset, period = round(now * 1000), round(self._offset * 1000), round(_PERIOD * 1000)
        return (offset - (offset - moment) // period * period) / 1000


def _force_delete(key: Key, pod: Pod) -> Delete:
    return Delete(PODS, key, uid=pod.metadata.uid, grace_seconds=0)


def _mark_failed(key: Key, pod: Pod, *conditions: dict[str, str]) -> tuple[Patch, ...]:
    """Set the phase of a pod that has not finished to Failed, so that whoever counts finished pods sees it."""
    if pod.is_finished:
        return ()
    status = {"phase": "Failed", **({"conditions": [*conditions]} if conditions else {})}
    patch = {"metadata": {"uid": pod.metadata.uid}, "status": status}
    return (Patch(PODS, key, PatchBody("strategic", patch, manager=MANAGER), "status"),)
