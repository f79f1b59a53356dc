"""Taint eviction: deletes pods from nodes with a NoExecute taint, when the time for which they tolerate it is over.

This is a plain deletion: budgets are not asked. The taints are set by node_lifecycle/, or by people. As in
kube-controller-manager 1.35 (pkg/controller/tainteviction):

- A pod that is terminating already is marked DisruptionTarget all the same, so a daemon is marked whether its own
  controller deletes it first or not.
- The time that a pod is given begins when it is first seen on the tainted node, whatever the taint's timeAdded says. A
  time that runs is not shortened by a further taint; it ends when there is no taint left that ends it.
- Of several tolerations that match a taint the first counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import ClassVar, NamedTuple

from wukong.actions import DONE, Action, Outcome, Patch
from wukong.api.core import Taint
from wukong.api.kinds import NODES, PODS
from wukong.api.meta import Object
from wukong.api.resources import Key, key_of
from wukong.embedded.actors import pods
from wukong.embedded.actors.events import note_about_pod
from wukong.embedded.actors.watch_keys import has_same_node, keys_on_node
from wukong.embedded.world.objects import Node, Pod
from wukong.ports import PatchBody
from wukong.semantics.tolerations import is_tolerated
from wukong.state import State
from wukong.state.controller import PodRight, Watch, each_side_unless

REASON, MESSAGE = "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"


@each_side_unless(has_same_node)
def _key_on_tainted_node(pod: Object, state: State) -> Iterable[Key]:
    """The key of a pod whose node has a NoExecute taint."""
    assert isinstance(pod, Pod)
    node = state.get(Node, Key("", pod.spec.node_name))
    return (key_of(pod),) if node is not None and _no_execute_taints(node) else ()


class Timer(NamedTuple):
    """When a pod will be deleted."""

    uid: str
    at: float


class TaintEviction:
    name = "tainteviction"
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset({PodRight.DELETE_FROM_TAINTED_NODES})
    watches = (
        Watch(PODS, _key_on_tainted_node),
        Watch(NODES, keys_on_node),
    )

    def __init__(self) -> None:
        self._timers: dict[Key, Timer] = {}

    def copy_memory(self, source: TaintEviction, _: State) -> None:
        self._timers = dict(source._timers)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        pod = state.get(Pod, key)
        node = state.get(Node, Key("", pod.spec.node_name)) if pod is not None else None
        tolerated = inf if pod is None or node is None else tolerated_seconds(pod, node)
        if pod is None or tolerated == inf:
            self._timers.pop(key, None)
            return DONE
        left = self._seconds_left(key, pod, tolerated, now)
        return Outcome(requeue_after=left) if left > 0 else Outcome(_evict(key, pod))

    def _seconds_left(self, key: Key, pod: Pod, tolerated: float, now: float) -> float:
        """Seconds until the pod is deleted. Sets its timer, unless it runs already or there is nothing to wait for."""
        timer = self._timers.get(key)
        if tolerated <= 0:
            self._timers.pop(key, None)
            return 0.0
        if timer is None or timer.uid != pod.metadata.uid:
            timer = self._timers[key] = Timer(pod.metadata.uid, now + tolerated)
        return timer.at - now


def _evict(key: Key, pod: Pod) -> tuple[Action, ...]:
    """Mark the pod and delete it; what of that is done already is not done again."""
    actions: list[Action] = []
    target = pods.condition(pod, "DisruptionTarget")
    if target is None or target.reason != REASON:
        condition = {"type": "DisruptionTarget", "status": "True", "reason": REASON, "message": MESSAGE}
        body = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}
        actions.append(note_about_pod(pod, "TaintManagerEviction", f"Marking for deletion Pod {key}"))
        actions.append(Patch(PODS, key, PatchBody("strategic", body, manager=pods.MANAGER), "status"))
    if not pod.is_terminating:
        actions.append(pods.delete_pod(pod))
    return tuple(actions)


def tolerated_seconds(pod: Pod, node: Node) -> float:
    """For how long the pod tolerates the node's NoExecute taints: 0 where it does not, infinity if for ever."""
    tolerated = inf
    for taint in _no_execute_taints(node):
        toleration = next((entry for entry in pod.spec.tolerations if is_tolerated(taint, [entry])), None)
        if toleration is None:
            return 0.0
        if toleration.toleration_seconds is not None:
            tolerated = min(tolerated, max(0, toleration.toleration_seconds))
    return tolerated


def _no_execute_taints(node: Node) -> list[Taint]:
    return [taint for taint in node.spec.taints if taint.effect == "NoExecute"]
