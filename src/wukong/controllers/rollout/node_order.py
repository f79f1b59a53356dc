"""Old pods of a canary leave node by node, so that whole nodes come free for the new version. Pure.

A required rule keeps new pods off every node that has an old one. A ReplicaSet that shrinks takes pods from its fullest
nodes first: on two nodes with four pods each both keep one to the end, and the last new pods need a node more. So
pods of the stable version get deletion costs: one cost per node, the lowest where the fewest are. They are written when
the new version begins, long before a pod has to go, and taken away if it is aborted. Called by writes.py.

What somebody else has set stays: where one pod has a cost that is not ours, none gets one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from wukong.actions import Patch
from wukong.api.core import Pod
from wukong.api.kinds import PODS
from wukong.api.resources import key_of
from wukong.api.rollout import HOSTNAME, NODE_ORDER, VersionAntiAffinity
from wukong.controllers.rollout.decision import Decision
from wukong.controllers.rollout.versions import Look
from wukong.ports import PatchBody
from wukong.semantics.label_syntax import parse_integer

COST = "controller.kubernetes.io/pod-deletion-cost"
MOST_PODS = 500  # of a version: each costs a write


def write_node_order(look: Look, decision: Decision) -> Iterator[Patch]:
    """The writes that put the costs of the stable version's pods right."""
    stable = look.find_live(decision.stable)
    if stable is None or look.rollout.spec.strategy.canary is None:
        return
    if _is_needed(look, decision):
        costs = find_costs(stable.pods)
        for pod in stable.pods:
            cost = costs.get(pod.spec.node_name)
            if cost is not None and COST not in pod.metadata.annotations:
                yield _patch(pod, str(cost))
    else:
        yield from (_patch(pod, None) for pod in stable.pods if _is_ours(pod))


def find_costs(pods: tuple[Pod, ...]) -> dict[str, int]:
    """Node → the cost of the pods on it, below 0; the node that is emptied last has none. {}: all is left alone.

    An order that some pods have already is kept: counts change while they leave.
    """
    if len(pods) > MOST_PODS or any(COST in pod.metadata.annotations and not _is_ours(pod) for pod in pods):
        return {}
    known = {
        pod.spec.node_name: cost
        for pod in pods
        if _is_ours(pod) and (cost := parse_integer(pod.metadata.annotations[COST])) is not None
    }
    if known:
        return known
    counts = Counter(pod.spec.node_name for pod in pods if pod.spec.node_name)
    order = sorted(counts, key=lambda node: (counts[node], node))
    return {node: place - len(order) for place, node in enumerate(order[:-1])}


def _is_needed(look: Look, decision: Decision) -> bool:
    if decision.stable == look.current.hash or decision.is_aborted or decision.deadlock is not None:
        return False
    return _separates_nodes(decision.separation)


def _separates_nodes(separation: VersionAntiAffinity | None) -> bool:
    if separation is None or separation.required is None:
        return False
    return (separation.topology_key or HOSTNAME) == HOSTNAME


def _is_ours(pod: Pod) -> bool:
    cost = pod.metadata.annotations.get(COST)
    return cost is not None and cost == pod.metadata.annotations.get(NODE_ORDER)


def _patch(pod: Pod, cost: str | None) -> Patch:
    """Of this very pod: the API server refuses another uid."""
    meta = {"uid": pod.metadata.uid, "annotations": {COST: cost, NODE_ORDER: cost}}
    return Patch(PODS, key_of(pod), PatchBody("merge", {"metadata": meta}))
