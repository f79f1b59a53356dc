"""Whether a story is over: what will still happen by itself, and how long nothing must have happened. Pure.

Asked by course.py when time is up, and by app/sim_live, which cannot look into a real cluster's queues:

    something is awaited (a deadline, a pod on its way out, a node about to be missed) ─► not over
    every workload complete ─► over after a moment
    given up, or pods that no node takes, or refused evictions ─► over once every scheduler has tried again
    neither (a pod that is slow to get ready) ─► over after a minute without any change
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from wukong.api.resources import Key, key_of
from wukong.embedded.actors import pods as podlike
from wukong.embedded.actors.deployment.rollout_status import AVAILABLE, TIMED_OUT
from wukong.embedded.actors.kubelet.controller import is_silent
from wukong.embedded.actors.taint_eviction.controller import tolerated_seconds
from wukong.embedded.scenario.play.steps import Drains
from wukong.embedded.scenario.record import workload_status
from wukong.embedded.scenario.record.observed_cluster import ObservedCluster
from wukong.embedded.store.documents import condition_of
from wukong.embedded.world.objects import Deployment, Node, Pod
from wukong.runtime.dispatch import Item

COMPLETE_SECONDS = 3.0
STUCK_SECONDS = 12.0  # kube-scheduler tries a pod again within ten
UNCLEAR_SECONDS = 60.0


def is_over(cluster: ObservedCluster, quiet_seconds: float) -> bool:
    """Whether nothing is to be expected after so many seconds without a change."""
    if quiet_seconds < COMPLETE_SECONDS or next(list_awaited(cluster), None) is not None:
        return False
    state = cluster.state
    unplaced = [pod for pod in state.all(Pod) if podlike.is_active(pod) and not pod.spec.node_name]
    incomplete = [
        workload
        for workload in workload_status.top_level_workloads(state)
        if not workload_status.count_replicas(workload).is_complete
    ]
    has_refusals = any(cluster.attempt(Item(Drains.name, key_of(pod))) for pod in state.all(Pod))
    if not (unplaced or incomplete or has_refusals):
        return True
    is_clear = unplaced or all(workload_status.list_failures(workload) for workload in incomplete)
    return quiet_seconds >= (STUCK_SECONDS if is_clear else UNCLEAR_SECONDS)


def list_awaited(cluster: ObservedCluster) -> Iterator[str]:
    """What will happen by itself when its time has come."""
    state = cluster.state
    for workload in workload_status.top_level_workloads(state):
        if isinstance(workload, Deployment) and _awaits_deadline(workload):
            yield f"{workload.kind} {workload.key}: its progress deadline"
    for pod in state.all(Pod):
        node = state.get(Node, Key("", pod.spec.node_name)) if pod.spec.node_name else None
        if pod.spec.node_name and node is None:
            yield f"pod {pod.key}: its node is gone"
        elif node is not None and pod.is_terminating and not is_silent(node):
            yield f"pod {pod.key}: stops"
        elif node is not None and not pod.is_terminating and _evicts(node, pod):
            yield f"pod {pod.key}: driven out by a taint"
    for node in state.all(Node):
        ready = condition_of(node.document, "Ready") or {}
        if is_silent(node) == (ready.get("status") == "True"):
            yield f"node {node.metadata.name}: is about to be missed, or heard of again"


def _awaits_deadline(deployment: Deployment) -> bool:
    if deployment.spec.paused or deployment.spec.progress_deadline_seconds in (None, 2**31 - 1):
        return False
    if workload_status.count_replicas(deployment).is_complete:
        return False
    is_observed = deployment.status.observed_generation >= deployment.metadata.generation
    progressing = condition_of(deployment.document, "Progressing") or {}
    # Once it was complete the clock does not run again, however many pods are lost afterwards.
    return not is_observed or progressing.get("reason") not in (AVAILABLE, TIMED_OUT)


def _evicts(node: Node, pod: Pod) -> bool:
    """Whether a taint of the node will end the pod: not tolerated, or not for ever."""
    return tolerated_seconds(pod, node) != inf
