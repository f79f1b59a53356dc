"""Taint eviction: deletes pods from nodes with a NoExecute taint, when the time for which they tolerate it is over.

This is a plain deletion: budgets are not asked. The taints are set by node_lifecycle/, or by people.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import ClassVar

from wukong.actions import DONE, Outcome, Patch
from wukong.api.core import Taint
from wukong.api.kinds import NODES, PODS
from wukong.api.meta import Object
from wukong.api.resources import Key, key_of
from wukong.embedded.actors import pods
from wukong.embedded.actors.events import note_about_pod
from wukong.embedded.actors.watch_keys import has_same_node, keys_on_node
from wukong.embedded.store.documents import parse_time, value_at
from wukong.embedded.world.objects import Node, Pod
from wukong.ports import PatchBody
from wukong.semantics.tolerations import is_tolerated
from wukong.state import State
from wukong.state.controller import PodRight, Watch, each_side_unless


@each_side_unless(has_same_node)
def _key_on_tainted_node(pod: Object, state: State) -> Iterable[Key]:
    """The key of a pod whose node has a NoExecute taint."""
    assert isinstance(pod, Pod)
    node = state.get(Node, Key("", pod.spec.node_name))
    if node is None or not node.spec.taints:
        return ()
    return (key_of(pod),) if any(taint.effect == "NoExecute" for taint in node.spec.taints) else ()


class TaintEviction:
    name = "tainteviction"
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset({PodRight.DELETE_FROM_TAINTED_NODES})
    watches = (
        Watch(PODS, _key_on_tainted_node),
        Watch(NODES, keys_on_node),
    )

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        pod = state.get(Pod, key)
        if pod is None or pod.is_terminating or not pod.spec.node_name:
            return DONE
        node = state.get(Node, Key("", pod.spec.node_name))
        left = inf if node is None else seconds_left(pod, node, now)
        if left == inf:
            return DONE
        if left > 0:
            return Outcome(requeue_after=left)
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
        condition["message"] = "Taint manager: deleting due to NoExecute taint"
        body = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}
        patch = PatchBody("strategic", body, manager=pods.MANAGER)
        note = note_about_pod(pod, "TaintManagerEviction", f"Marking for deletion Pod {key}")
        return Outcome((note, Patch(PODS, key, patch, "status"), pods.delete_pod(pod)))


def seconds_left(pod: Pod, node: Node, now: float) -> float:
    """Seconds until the pod must leave: 0 where a taint is not tolerated, else the shortest time it tolerates one."""
    left = inf
    for document in value_at(node.document, "spec.taints") or ():
        if document.get("effect") != "NoExecute":
            continue
        taint = Taint(key=document["key"], value=document.get("value", ""), effect="NoExecute")
        matching = [toleration for toleration in pod.spec.tolerations if is_tolerated(taint, [toleration])]
        if not matching:
            return 0.0
        limits = [limit for toleration in matching if (limit := toleration.toleration_seconds) is not None]
        if limits:
            since = parse_time(document["timeAdded"]) if document.get("timeAdded") else now
            left = min(left, max(0.0, since + max(0, min(limits)) - now))
    return left
