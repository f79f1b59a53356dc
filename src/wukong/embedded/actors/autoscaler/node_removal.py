"""Removes a node that the autoscaler has tainted: evicts its pods, waits until they are gone, and deletes it.

    tainted ─► 5 s ─► pods evicted, refused ones again every 10 s ─► all gone ─► deleted
                                       └─► still refused after 2 min, or a pod that keeps its node ─► taint removed

Keys are pods and nodes; a node's has no namespace. Budgets are respected: pods go by the eviction API alone. As
actuation and drain of cluster-autoscaler 1.35.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from wukong.actions import DONE, Delete, Evict, Outcome
from wukong.api.core import Pod as AnyPod
from wukong.api.kinds import NODES, PODS
from wukong.api.meta import Object
from wukong.api.resources import Key, key_of
from wukong.embedded.actors.autoscaler.pod_rules import find_blocker, goes_with_node, list_moving
from wukong.embedded.actors.autoscaler.taints import is_leaving, leaving_since, untaint_node
from wukong.embedded.actors.events import note_about
from wukong.embedded.actors.watch_keys import has_same_node
from wukong.embedded.world.objects import Node, Pod
from wukong.runtime.queue import Backoff
from wukong.state import Change, State
from wukong.state.controller import NodeRight, PodRight, Watch, each_side_unless

AFTER_TAINT = 5.0  # node-delete-delay-after-taint
EVICTING_SECONDS = 120.0  # max-pod-eviction-time
STOPPING_SECONDS = 600.0  # max-graceful-termination-sec


def _is_alike(old: Object, new: Object) -> bool:
    return has_same_node(old, new)


@each_side_unless(_is_alike)
def _keys_on_leaving_node(pod: Object, state: State) -> Iterable[Key]:
    """The pod and its node, where that is about to go."""
    assert isinstance(pod, AnyPod)
    node = state.get(Node, Key("", pod.spec.node_name))
    return (key_of(pod), key_of(node)) if node is not None and is_leaving(node) else ()


def _keys_of_node(change: Change, state: State) -> Iterable[Key]:
    """The node, and its pods when it is about to go."""
    node = change.new
    pods = state.pods.on_node(change.key.name) if isinstance(node, Node) and is_leaving(node) else ()
    return (change.key, *pods)


class NodeRemoval:
    name = "node-removal"
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset({PodRight.EVICT})
    node_rights: ClassVar[frozenset[NodeRight]] = frozenset({NodeRight.DELETE_EMPTY})
    backoff: ClassVar[Backoff] = Backoff(first=10.0, cap=10.0, spread=0.0)  # EvictionRetryTime
    watches = (Watch(PODS, _keys_on_leaving_node), Watch(NODES, _keys_of_node))

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        if not key.namespace:
            node = state.get(Node, key)
            return self._remove_node(node, state, now) if node is not None else DONE
        pod = state.get(Pod, key)
        node = state.get(Node, Key("", pod.spec.node_name)) if pod is not None else None
        if pod is None or node is None or pod.is_terminating or goes_with_node(pod):
            return DONE
        begin = _begin_of(node)
        if begin is None or _find_keeper(node, state):
            return DONE
        return Outcome(requeue_after=begin - now) if now < begin else Outcome((Evict(key, pod.metadata.uid),))

    def _remove_node(self, node: Node, state: State, now: float) -> Outcome:
        begin = _begin_of(node)
        if begin is None:
            return DONE
        if now < begin:
            return Outcome(requeue_after=begin - now)
        pods = list_moving(state, node.metadata.name)
        if not pods:
            note = note_about(NODES, node, "ScaleDown", "node removed by cluster autoscaler")
            return Outcome((Delete(NODES, key_of(node), uid=node.metadata.uid), note))
        end = begin + EVICTING_SECONDS
        if all(pod.is_terminating for pod in pods):
            end += STOPPING_SECONDS
        if now < end and not _find_keeper(node, state):
            return Outcome(requeue_after=end - now)
        note = note_about(NODES, node, "ScaleDownFailed", "failed to drain the node, aborting ScaleDown")
        return Outcome((untaint_node(node), note))


def _begin_of(node: Node) -> float | None:
    """When its pods may be evicted; None where it is not about to go."""
    since = leaving_since(node)
    return None if since is None else since + AFTER_TAINT


def _find_keeper(node: Node, state: State) -> Pod | None:
    """A pod that came to the node in the last moment and that keeps it."""
    pods = (pod for pod in list_moving(state, node.metadata.name) if not pod.is_terminating)
    return next((pod for pod in pods if find_blocker(pod, state)), None)
