"""Whether a story is over: what will still happen by itself, and how long nothing must have happened. Pure.

Asked by playing.py when time is up, and by app/sim_live, which cannot look into a real cluster's queues:

    something is awaited (a deadline, a pod on its way out, a node about to be missed) ─► not over
    every workload complete ─► over after a moment
    given up, or pods that no node takes, or refused evictions ─► over once every scheduler has tried again
    neither (a pod that is slow to get ready) ─► over after a minute without any change
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from wukong.api.meta import Object
from wukong.api.resources import Key, key_of
from wukong.embedded.actors import pods as podlike
from wukong.embedded.actors.deployment.rollout_status import AVAILABLE, TIMED_OUT
from wukong.embedded.actors.kubelet.controller import is_silent
from wukong.embedded.actors.node_lifecycle.controller import seconds_left
from wukong.embedded.scenario.play.steps import Drains
from wukong.embedded.scenario.record import workload_status
from wukong.embedded.scenario.record.observed_cluster import ObservedCluster
from wukong.embedded.store.documents import condition_of
from wukong.embedded.world.objects import Deployment, Node, Pod
from wukong.runtime.dispatch import Item
from wukong.state import State

COMPLETE_SECONDS = 3.0
STUCK_SECONDS = 12.0  # kube-scheduler tries a pod again within ten
UNCLEAR_SECONDS = 60.0


def is_over(scene: ObservedCluster, quiet_seconds: float) -> bool:
    """Whether nothing is to be expected after so many seconds without a change."""
    if quiet_seconds < COMPLETE_SECONDS or next(awaited(scene), None) is not None:
        return False
    state = scene.state
    unplaced = [pod for pod in state.all(Pod) if podlike.is_active(pod) and not pod.spec.node_name]
    missing = [each for each in _tops(state) if not workload_status.counted(each).is_complete]
    refused = any(scene.attempt(Item(Drains.name, key_of(pod))) for pod in state.all(Pod))
    if not (unplaced or missing or refused):
        return True
    is_clear = unplaced or all(workload_status.troubles(each) for each in missing)
    return quiet_seconds >= (STUCK_SECONDS if is_clear else UNCLEAR_SECONDS)


def awaited(scene: ObservedCluster) -> Iterator[str]:
    """What happens by itself when its time has come."""
    state = scene.state
    for each in _tops(state):
        if isinstance(each, Deployment) and _has_time(each):
            yield f"{each.kind} {each.key}: its progress deadline"
    for pod in state.all(Pod):
        node = state.get(Node, Key("", pod.spec.node_name)) if pod.spec.node_name else None
        if pod.spec.node_name and node is None:
            yield f"pod {pod.key}: its node is gone"
        elif node is not None and pod.is_terminating and not is_silent(node):
            yield f"pod {pod.key}: stops"
        elif node is not None and not pod.is_terminating and _drives_out(node, pod):
            yield f"pod {pod.key}: driven out by a taint"
    for found in state.all(Node):
        ready = condition_of(found.document, "Ready") or {}
        if is_silent(found) == (ready.get("status") == "True"):
            yield f"node {found.metadata.name}: is about to be missed, or heard of again"


def _tops(state: State) -> list[Object]:
    found = [each for kind in workload_status.KINDS for each in state.objects.get(kind, {}).values()]
    return [each for each in found if workload_status.is_top(each)]


def _has_time(deployment: Deployment) -> bool:
    if deployment.spec.paused or deployment.spec.progress_deadline_seconds in (None, 2**31 - 1):
        return False
    if workload_status.counted(deployment).is_complete:
        return False
    is_seen = deployment.status.observed_generation >= deployment.metadata.generation
    progressing = condition_of(deployment.document, "Progressing") or {}
    # Once it was complete the clock does not run again, however many pods are lost afterwards.
    return not is_seen or progressing.get("reason") not in (AVAILABLE, TIMED_OUT)


def _drives_out(node: Node, pod: Pod) -> bool:
    """Whether a taint of the node will end the pod: not tolerated, or not for ever."""
    return seconds_left(pod, node, 0.0) != inf
