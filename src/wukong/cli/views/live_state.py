"""What the live view of `wukong sim run` shows of a world just now, as plain data: workloads, nodes, why things wait.

Made by watching.py several times a second, shown by live_view.py. It counts by the statuses of workloads and looks only
at the pods of nodes that are shown, so that a look costs little however large the world is.
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Mapping
from functools import lru_cache
from heapq import nsmallest
from typing import Literal, NamedTuple

from wukong.api.core import Node, Pod
from wukong.api.kinds import REPLICA_SETS
from wukong.api.meta import Object
from wukong.embedded.actors import pods as podlike
from wukong.embedded.actors.deployment import revisions
from wukong.embedded.scenario.play.player import Play
from wukong.embedded.scenario.record import workload_status
from wukong.embedded.world.objects import Deployment, ReplicaSet, StatefulSet
from wukong.placement.capacity import is_spot
from wukong.placement.leaving_nodes import why_leaving
from wukong.runtime.dispatch import Item
from wukong.state import State

Stage = Literal["ready", "starting", "stopping"]


class WorkloadLook(NamedTuple):
    """How many are wanted, and the pods there are: of the latest version and of older ones."""

    name: str
    kind: str
    wanted: int
    available: int
    new_ready: int
    new_starting: int
    old: int
    stopping: int
    is_complete: bool


class PodLook(NamedTuple):
    workload: str
    stage: Stage
    is_old: bool


class NodeLook(NamedTuple):
    name: str
    is_spot: bool
    remarks: tuple[str, ...]
    pods: list[PodLook]


class Look(NamedTuple):
    seconds: float
    nodes_in_all: int
    pods_in_all: int
    writes: int
    workloads: list[WorkloadLook]
    workloads_in_all: int
    nodes: list[NodeLook]
    waiting: list[str]


def look(play: Play, waiting: Mapping[str, tuple[str, str]], seconds: float, most: int) -> Look:
    """`waiting`: uid of a pod → its workload and the scheduler's message. At most `most` workloads, and nodes."""
    state = play.world.state
    found = [
        each
        for kind in workload_status.KINDS
        for each in state.objects.get(kind, {}).values()
        if workload_status.is_top(each)
    ]
    found.sort(
        key=lambda each: (workload_status.counted(each).is_complete, each.key) if len(found) > most else each.key
    )
    nodes = nsmallest(most, state.objects.get("Node", {}).values(), key=lambda node: _by_number(node.metadata.name))
    latest = _latest(state, found)
    return Look(
        seconds=seconds,
        nodes_in_all=len(state.objects.get("Node", {})),
        pods_in_all=len(state.objects.get("Pod", {})),
        writes=play.world.server.database.version - play.version,
        workloads=[_workload(state, each) for each in found[:most]],
        workloads_in_all=len(found),
        nodes=[_node(play, node, latest) for node in nodes if isinstance(node, Node)],
        waiting=[*_pending(waiting), *_troubles(found), *_refused_drains(play)],
    )


@lru_cache(maxsize=100_000)
def _by_number(name: str) -> list[tuple[int, str]]:
    """node-2 before node-10."""
    return [(int(part) if part.isdigit() else -1, part) for part in re.split(r"(\d+)", name)]


def _workload(state: State, found: Object) -> WorkloadLook:
    counted = workload_status.counted(found)
    status = workload_status.document_of(found).get("status") or {}
    there = status.get("replicas", status.get("currentNumberScheduled", 0))
    updated = status.get("updatedReplicas", status.get("updatedNumberScheduled", 0))
    if found.kind == "ReplicaSet":
        updated = there
    ready = min(updated, counted.available)
    if isinstance(found, Deployment) and (newest := _newest(state, found)) is not None:
        updated, ready = newest.status.replicas, newest.status.available_replicas
        there = max(there, updated)
    return WorkloadLook(
        name=found.key,
        kind=found.kind,
        wanted=counted.wanted,
        available=counted.available,
        new_ready=ready,
        new_starting=updated - ready,
        old=max(0, there - updated),
        stopping=status.get("terminatingReplicas") or 0,
        is_complete=counted.is_complete,
    )


def _newest(state: State, deployment: Deployment) -> ReplicaSet | None:
    keys = state.owners.owned_by(deployment.metadata.uid, REPLICA_SETS)
    owned = [each for key in keys if (each := state.get(ReplicaSet, key)) is not None]
    return max(owned, key=revisions.revision_of, default=None)


def _latest(state: State, found: list[Object]) -> dict[str, str]:
    """Workload → the hash that pods of its latest version carry, for those that are on their way to one."""
    latest = {}
    for each in found:
        if isinstance(each, Deployment) and (newest := _newest(state, each)) is not None:
            latest[each.key] = newest.metadata.labels.get(revisions.HASH, "")
        elif isinstance(each, StatefulSet):
            latest[each.key] = each.status.update_revision
    return latest


def _node(play: Play, node: Node, latest: Mapping[str, str]) -> NodeLook:
    remarks = []
    if node.spec.unschedulable:
        remarks.append("cordoned")
    if any(each.type == "Ready" and each.status != "True" for each in node.status.conditions):
        remarks.append("not ready")
    if why_leaving(node):
        remarks.append("leaving")
    on_it = [_pod(play, pod, latest) for pod in play.world.state.pods_on(node.metadata.name) if not pod.is_finished]
    return NodeLook(node.metadata.name, is_spot(node.metadata.labels), tuple(remarks), sorted(on_it))


def _pod(play: Play, pod: Pod, latest: Mapping[str, str]) -> PodLook:
    name = play.recorder.workload_of(pod.metadata.uid)
    labels = pod.metadata.labels
    version = labels.get(revisions.HASH) or labels.get("controller-revision-hash", "")
    stage: Stage = "stopping" if pod.is_terminating else "ready" if podlike.is_ready(pod) else "starting"
    return PodLook(name, stage, version != latest.get(name, version))


def _pending(waiting: Mapping[str, tuple[str, str]]) -> list[str]:
    """The same message of several pods once, with their number."""
    told = Tally(waiting.values())
    return [f"{name}: {number} pending: {_sentence(text)}" for (name, text), number in sorted(told.items())]


def _sentence(text: str) -> str:
    """The first of the scheduler's message: which nodes, and why not."""
    return text.partition(". ")[0].removesuffix(".") + "."


def _troubles(found: list[Object]) -> list[str]:
    return [
        f"{each.key}: {text}"
        for each in found
        if not workload_status.counted(each).is_complete
        for text in workload_status.troubles(each)
    ]


def _refused_drains(play: Play) -> list[str]:
    state, name = play.world.state, play.drains.name
    keys = [key for node in sorted(play.drains.nodes) for key in state.pods.on_node(node)]
    found = ((key, play.world.attempt(Item(name, key))) for key in keys)
    return [f"drain: pod {key}: {attempt.error}" for key, attempt in found if attempt is not None]
