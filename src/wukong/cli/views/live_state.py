"""What the live view of `wukong sim run` shows of a world just now, as plain data: workloads, nodes, why things wait.

Read by spectator.py several times a second, shown by live_view.py. It counts by the statuses of workloads and looks
only at the pods of nodes that are shown, so that it costs little however large the world is.
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
from wukong.api.resources import Key
from wukong.cli.views.recent_changes import RecentChanges
from wukong.embedded.actors import pods as podlike
from wukong.embedded.actors.deployment import revisions
from wukong.embedded.scenario.play.player import WorldPlayer
from wukong.embedded.scenario.record import workload_status
from wukong.embedded.world.objects import Deployment, ReplicaSet, StatefulSet
from wukong.placement.capacity import is_spot
from wukong.placement.leaving_nodes import find_leaving_reason
from wukong.runtime.dispatch import Item
from wukong.state import State

_SHORT_NUMBER = re.compile(r"([0-9]{1,18})")
PodStage = Literal["ready", "starting", "stopping"]


class WorkloadState(NamedTuple):
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
    change: int = 0  # the later it changed the higher; 0: not yet


class PodState(NamedTuple):
    workload: str
    stage: PodStage
    is_old: bool


class NodeState(NamedTuple):
    name: str
    is_spot: bool
    remarks: tuple[str, ...]
    pods: list[PodState]
    change: int = 0  # as of workloads


class LiveState(NamedTuple):
    seconds: float
    total_nodes: int
    total_pods: int
    writes: int
    workloads: list[WorkloadState]
    total_workloads: int
    nodes: list[NodeState]
    reasons: list[str]  # why things wait


def read_live_state(
    player: WorldPlayer,
    pending_pods: Mapping[str, tuple[str, str]],
    seconds: float,
    most_rows: int,
    changes: RecentChanges | None = None,
) -> LiveState:
    """`pending_pods`: uid of a pod → its workload and the scheduler's message. At most so many workloads, and nodes:
    those that are not complete, or that changed last."""
    state, changes = player.world.state, changes or RecentChanges()
    workloads = sorted(workload_status.top_level_workloads(state), key=lambda workload: workload.key)
    if len(workloads) > most_rows:
        workloads.sort(
            key=lambda workload: (
                workload_status.count_replicas(workload).is_complete,
                -changes.rank_workload(workload.key),
            )
        )
    node_objects = state.objects.get("Node", {})
    nodes = _choose_nodes(node_objects, most_rows, changes)
    versions = _latest_versions(state, workloads)
    return LiveState(
        seconds=seconds,
        total_nodes=len(node_objects),
        total_pods=len(state.objects.get("Pod", {})),
        writes=player.world.server.database.version - player.first_version,
        workloads=[_read_workload(state, workload, changes) for workload in workloads[:most_rows]],
        total_workloads=len(workloads),
        nodes=[_read_node(player, node, versions, changes) for node in nodes if isinstance(node, Node)],
        reasons=[*_list_pending(pending_pods), *_list_failures(workloads), *_list_refused_drains(player)],
    )


def _choose_nodes(nodes: Mapping[Key, Object], most: int, changes: RecentChanges) -> list[Object]:
    """By name; of too many those that changed last, and then the first."""
    chosen: dict[Key, Object] = {}
    if len(nodes) > most:
        keys = (Key("", name) for name in changes.list_nodes())
        chosen = dict([(key, nodes[key]) for key in keys if key in nodes][:most])
    others = ((key, node) for key, node in nodes.items() if key not in chosen)
    chosen |= dict(nsmallest(most - len(chosen), others, key=lambda entry: split_numbers(entry[0].name)))
    return sorted(chosen.values(), key=lambda node: split_numbers(node.metadata.name))


@lru_cache(maxsize=100_000)
def split_numbers(name: str) -> list[tuple[int, str]]:
    """node-2 before node-10. Long numbers are compared in pieces."""
    return [(int(part) if part.isascii() and part.isdigit() else -1, part) for part in _SHORT_NUMBER.split(name)]


def _read_workload(state: State, workload: Object, changes: RecentChanges) -> WorkloadState:
    count = workload_status.count_replicas(workload)
    status = workload_status.document_of(workload).get("status") or {}
    present = status.get("replicas", status.get("currentNumberScheduled", 0))
    updated = status.get("updatedReplicas", status.get("updatedNumberScheduled", 0))
    if workload.kind == "ReplicaSet":
        updated = present
    ready = min(updated, count.available)
    if isinstance(workload, Deployment) and (newest := _newest_replica_set(state, workload)) is not None:
        updated, ready = newest.status.replicas, newest.status.available_replicas
        present = max(present, updated)
    return WorkloadState(
        name=workload.key,
        kind=workload.kind,
        wanted=count.wanted,
        available=count.available,
        new_ready=ready,
        new_starting=updated - ready,
        old=max(0, present - updated),
        stopping=status.get("terminatingReplicas") or 0,
        is_complete=count.is_complete,
        change=changes.rank_workload(workload.key),
    )


def _newest_replica_set(state: State, deployment: Deployment) -> ReplicaSet | None:
    keys = state.owners.owned_by(deployment.metadata.uid, REPLICA_SETS)
    replica_sets = [replica_set for key in keys if (replica_set := state.get(ReplicaSet, key)) is not None]
    return max(replica_sets, key=revisions.revision_of, default=None)


def _latest_versions(state: State, workloads: list[Object]) -> dict[str, str]:
    """Workload → the hash that pods of its latest version carry, for those that are on their way to one."""
    versions = {}
    for workload in workloads:
        if isinstance(workload, Deployment) and (newest := _newest_replica_set(state, workload)) is not None:
            versions[workload.key] = newest.metadata.labels.get(revisions.HASH, "")
        elif isinstance(workload, StatefulSet):
            versions[workload.key] = workload.status.update_revision
    return versions


def _read_node(player: WorldPlayer, node: Node, versions: Mapping[str, str], changes: RecentChanges) -> NodeState:
    remarks = []
    if node.spec.unschedulable:
        remarks.append("cordoned")
    if any(condition.type == "Ready" and condition.status != "True" for condition in node.status.conditions):
        remarks.append("not ready")
    if find_leaving_reason(node):
        remarks.append("leaving")
    pods = [pod for pod in player.world.state.pods_on(node.metadata.name) if not pod.is_finished]
    pod_states = sorted(_read_pod(player, pod, versions) for pod in pods)
    name = node.metadata.name
    return NodeState(name, is_spot(node.metadata.labels), tuple(remarks), pod_states, changes.rank_node(name))


def _read_pod(player: WorldPlayer, pod: Pod, versions: Mapping[str, str]) -> PodState:
    name = player.recorder.workload_of(pod.metadata.uid)
    labels = pod.metadata.labels
    version = labels.get(revisions.HASH) or labels.get("controller-revision-hash", "")
    stage: PodStage = "stopping" if pod.is_terminating else "ready" if podlike.is_ready(pod) else "starting"
    return PodState(name, stage, version != versions.get(name, version))


def _list_pending(pending_pods: Mapping[str, tuple[str, str]]) -> list[str]:
    """The same message of several pods once, with their number."""
    messages = Tally(pending_pods.values())
    return [f"{name}: {number} pending: {_first_sentence(text)}" for (name, text), number in sorted(messages.items())]


def _first_sentence(text: str) -> str:
    """Of the scheduler's message: which nodes, and why not."""
    return text.partition(". ")[0].removesuffix(".") + "."


def _list_failures(workloads: list[Object]) -> list[str]:
    return [
        f"{workload.key}: {text}"
        for workload in workloads
        if not workload_status.count_replicas(workload).is_complete
        for text in workload_status.list_failures(workload)
    ]


def _list_refused_drains(player: WorldPlayer) -> list[str]:
    state, name = player.world.state, player.drains.name
    keys = [key for node in sorted(player.drains.nodes) for key in state.pods.on_node(node)]
    attempts = ((key, player.world.attempt(Item(name, key))) for key in keys)
    return [f"drain: pod {key}: {attempt.error}" for key, attempt in attempts if attempt is not None]
