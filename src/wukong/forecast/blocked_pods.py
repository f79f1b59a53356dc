"""What blocks in the end, by pod, rule and node; and how many nodes more it would take. Called by play.py.

Reads a world that has been played to its end, and decides on forks of its snapshot; never changes it.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Iterator

import msgspec

from wukong.api.kinds import DAEMON_SETS, DEPLOYMENTS, group_kind_of
from wukong.api.meta import Object
from wukong.embedded.actors import pods as podlike
from wukong.embedded.scenario.record import workload_status
from wukong.embedded.scenario.record.recorder import Recorder
from wukong.embedded.world.objects import Pod
from wukong.engine import Scheduler, Snapshot
from wukong.engine.explain import NodeGroup, group_nodes
from wukong.engine.new_nodes import NewNode, add_new_node, list_fitting, list_new_nodes
from wukong.forecast.course import list_active_pods, version_of
from wukong.forecast.fields import BlockedPod, NeededNodes, NodeReason
from wukong.placement.prices import instance_type_of
from wukong.state import State

_MOST_WORKLOADS = 20
_MOST_EXAMPLES = 3
_MOST_SIZES = 24  # of nodes of which it is counted how many it takes; those that take the pods are chosen from all
_MOST_NODES = 200  # beyond which nobody asks how many it takes
_MOST_MIXED, _MOST_MIXED_SHAPES = 30, 8  # nodes of several shapes, which are chosen one after the other
_ZONE = "topology.kubernetes.io/zone"


def list_blocked(state: State, recorder: Recorder, workloads: Iterable[str]) -> list[BlockedPod]:
    """Of each of these workloads the first pod without a node, and why each node refuses it."""
    pods = _list_unbound_pods(state, recorder)
    return [_describe(name, pods[name], state) for name in sorted(workloads) if name in pods][:_MOST_WORKLOADS]


def _list_unbound_pods(state: State, recorder: Recorder) -> dict[str, list[Pod]]:
    by_workload: dict[str, list[Pod]] = {}
    for key in state.pods.on_node(""):
        pod = state.get(Pod, key)
        if pod is not None and podlike.is_active(pod):
            name = recorder.workload_of(pod.metadata.uid) or f"pod {pod.key}"
            by_workload.setdefault(name, []).append(pod)
    return by_workload


def _describe(name: str, pods: list[Pod], state: State) -> BlockedPod:
    pod = pods[0]
    scheduled = podlike.condition(pod, "PodScheduled")
    scheduler = Scheduler(state.snapshot.fork())
    decision = scheduler.decide(pod)
    return BlockedPod(
        workload=name,
        pod=pod.key,
        message=(scheduled.message if scheduled is not None else "") or decision.message or "not scheduled",
        reasons=_list_reasons(group_nodes(scheduler.view_of(pod), decision)),
        others=len(pods) - 1,
    )


def _list_reasons(groups: Iterable[NodeGroup]) -> list[NodeReason]:
    """The rules that refuse nodes, those that refuse most first."""
    nodes: dict[tuple[str, str, str], list[str]] = {}
    for group in groups:
        for plugin, texts in group.refusals.items():
            detail = "; ".join(detail.describe() for detail in group.details if detail.plugin == plugin)
            nodes.setdefault((plugin, "; ".join(texts), detail), []).extend(group.nodes)
    reasons = [
        NodeReason(
            plugin=plugin, reason=reason, detail=detail, nodes=len(names), examples=sorted(names)[:_MOST_EXAMPLES]
        )
        for (plugin, reason, detail), names in nodes.items()
    ]
    return sorted(reasons, key=lambda reason: (-reason.nodes, reason.plugin, reason.reason, reason.detail))


def count_needed_nodes(
    state: State, recorder: Recorder, workloads: Iterable[str], own: frozenset[str]
) -> list[NeededNodes]:
    """The nodes without which what these workloads should be in the end does not fit: of one shape, where that helps.

    Of those that the change is not about (`own` are the others) it is enough that they have as many as before. None
    where all would fit: then only the way there is barred. None, too, where no node like those of the cluster helps.
    """
    names, snapshot, missing = sorted(workloads), state.snapshot.fork(), list[tuple[Pod, int]]()
    unbound = _list_unbound_pods(state, recorder)
    for name in names:
        workload = recorder.find_named(name)
        if workload is not None:
            missing += _clear_way(workload, _count_wanted(name, workload, recorder, own), state, snapshot)
        elif name.startswith("pod ") and name in unbound:
            missing.append((unbound[name][0], 1))
    left = _place(snapshot, missing)
    if not left:
        return []
    fewest: list[NeededNodes] = []
    for shape in _list_helpful_shapes(snapshot, left):
        most = fewest[0].count - 1 if fewest else _MOST_NODES
        fewest = _try_shape(snapshot, shape, left, most) or fewest
    return fewest or _mix_shapes(snapshot, left)


def _count_wanted(name: str, workload: Object, recorder: Recorder, own: frozenset[str]) -> int:
    wanted, summary = workload_status.count_replicas(workload).wanted, recorder.workloads.get(name)
    if name in own or summary is None or summary.before is msgspec.UNSET:
        return wanted
    return min(wanted, summary.before.available)


def _clear_way(workload: Object, wanted: int, state: State, snapshot: Snapshot) -> Iterator[tuple[Pod, int]]:
    """Take away pods of other versions than the one that waits, and say of which pod how many are missing then."""
    if group_kind_of(workload) == DAEMON_SETS.group_kind:  # each is made for its own node
        return
    pods = list(list_active_pods(workload, state))
    waiting = next((pod for pod in pods if not pod.spec.node_name), None)
    if waiting is None:
        return
    is_versioned = group_kind_of(workload) == DEPLOYMENTS.group_kind
    kept = 0
    for pod in pods:
        if not pod.spec.node_name:
            continue
        if not is_versioned or version_of(pod) == version_of(waiting):
            kept += 1
        elif pod.key in snapshot.pods:
            snapshot.forget(pod.key)
    if wanted > kept:
        yield waiting, wanted - kept


def _place(snapshot: Snapshot, missing: Iterable[tuple[Pod, int]]) -> list[tuple[Pod, int]]:
    """Place as many as fit; give those that do not."""
    left = []
    for pod, count in missing:
        number = len(snapshot.pods)
        placed = len(Scheduler(snapshot).place_many(pod, count, f"{pod.key}-missing-{number}"))
        if placed < count:
            left.append((pod, count - placed))
    return left


def _list_helpful_shapes(snapshot: Snapshot, missing: list[tuple[Pod, int]]) -> list[NewNode]:
    """The shapes of which one more node takes at least one of these pods, the commonest first.

    Every shape is asked. Of those that take the same pods, have the same room and are in the same zone one stands for
    all: where each node has labels of its own there are as many shapes as nodes.
    """
    shapes, scheduler = list_new_nodes(snapshot), Scheduler(snapshot)
    pods_by_name: dict[str, list[int]] = {}
    for number, (pod, _) in enumerate(missing):
        for shape in list_fitting(scheduler, pod, shapes):
            pods_by_name.setdefault(shape.example.name, []).append(number)
    helpful: dict[object, NewNode] = {}
    for shape in shapes:
        if numbers := pods_by_name.get(shape.example.name):
            room = (*sorted(shape.example.allocatable.items()), shape.example.allowed_pods)
            daemons = tuple(sorted(daemon.number for daemon in shape.daemons))
            helpful.setdefault((*numbers, room, daemons, shape.example.labels.get(_ZONE, "")), shape)
    return list(helpful.values())[:_MOST_SIZES]


def _try_shape(snapshot: Snapshot, shape: NewNode, missing: list[tuple[Pod, int]], most: int) -> list[NeededNodes]:
    """How many nodes of this shape it takes; empty if they do not help, or if it takes more than the `most`."""
    number = 1
    while number <= most:
        left = _sum_up(_place_on_more(snapshot, [shape] * number, missing))
        if not left:
            example = shape.example
            return [NeededNodes(like=example.name, type=instance_type_of(example.labels), count=number)]
        fitting = _sum_up(missing) - left
        if fitting < number:  # one of them takes nobody: more of them would not, either
            return []
        number += max(1, left * number // max(1, fitting) // 2)
    return []


def _mix_shapes(snapshot: Snapshot, missing: list[tuple[Pod, int]]) -> list[NeededNodes]:
    """Nodes of several shapes, as in two zones over which pods are spread: always one more that takes the most pods.

    Empty if that comes to an end before all have a place.
    """
    shapes, chosen, left = _list_mixed_shapes(snapshot, missing), list[NewNode](), _sum_up(missing)
    while left and len(chosen) < _MOST_MIXED:
        trials = [(_sum_up(_place_on_more(snapshot, [*chosen, shape], missing)), shape) for shape in shapes]
        fewest, shape = min(trials, key=lambda trial: trial[0], default=(left, None))
        if shape is None or fewest >= left:
            return []
        left = fewest
        chosen.append(shape)
    counts = Tally(shape.example.name for shape in chosen)
    types = {shape.example.name: instance_type_of(shape.example.labels) for shape in chosen}
    return [] if left else [NeededNodes(like=like, type=types[like], count=counts[like]) for like in counts]


def _list_mixed_shapes(snapshot: Snapshot, missing: list[tuple[Pod, int]]) -> list[NewNode]:
    """The first that helps each pod, and the commonest of each zone, where any helps."""
    helpful = [shape for entry in missing for shape in _list_helpful_shapes(snapshot, [entry])[:1]]
    by_zone: dict[str, NewNode] = {}
    for shape in list_new_nodes(snapshot) if helpful else ():
        by_zone.setdefault(shape.example.labels.get(_ZONE, ""), shape)
    by_name = {shape.example.name: shape for shape in (*helpful, *by_zone.values())}
    return list(by_name.values())[:_MOST_MIXED_SHAPES]


def _place_on_more(snapshot: Snapshot, shapes: list[NewNode], missing: list[tuple[Pod, int]]) -> list[tuple[Pod, int]]:
    """Who has no place though such nodes came."""
    fork = snapshot.fork()
    add_new_node(fork, *shapes)
    return _place(fork, missing)


def _sum_up(missing: Iterable[tuple[Pod, int]]) -> int:
    return sum(count for _, count in missing)
