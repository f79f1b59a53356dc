"""NodeResourcesFit: whether a node has enough left, and how its use scores (least, most, or along a shape).

The scores assume defaults for containers without requests, the filter never does.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from wukong.api.core import Pod
from wukong.api.profile import MAX_SCORE, FitArguments, ShapePoint, WeightedResource
from wukong.rules.cluster import NodeInfo
from wukong.rules.resources import (
    DEFAULT_REQUESTS,
    Amounts,
    add_all,
    allocatable_of,
    count_allowed_pods,
    filter_requests_of,
    fit_score_requests_of,
    is_extended,
    is_scalar,
    placed_nonzero_requests_of,
    placed_requests_of,
)
from wukong.rules.verdict import Rejection

TOO_MANY_PODS = "Too many pods"
_SHAPE_SCALE = 10  # shapes give scores from 0 to 10
_FULL = 100


class Share(NamedTuple):
    """How much of one resource of a node is in use without and with the pod, and how much there is."""

    before: int
    after: int
    offered: int
    weight: int


def reject(
    pod: Pod, info: NodeInfo, arguments: FitArguments, requests_of: Callable[[Pod], Amounts] = placed_requests_of
) -> Rejection | None:
    """Names every resource that is short. One that the node would lack even when empty makes it unresolvable.

    `requests_of` gives what a placed pod takes, for those who remember it.
    """
    offered, taken = allocatable_of(info.node), info.sum_requests(requests_of)
    wanted = _wanted_amounts_of(pod, arguments)
    short = [name for name in wanted if wanted[name] > offered.get(name, 0) - taken.get(name, 0)]
    reasons = [TOO_MANY_PODS] if info.pod_count + 1 > count_allowed_pods(info.node) else []
    reasons += [f"Insufficient {name}" for name in short]
    is_too_small = any(wanted[name] > offered.get(name, 0) for name in short)
    return Rejection(tuple(reasons), is_too_small) if reasons else None


def make_resolvable(rejection: Rejection | None) -> Rejection | None:
    """As before 1.34, which took every node that is short for a candidate of preemption, however small it is."""
    return rejection and Rejection(rejection.reasons, unresolvable=False)


def score(pod: Pod, info: NodeInfo, arguments: FitArguments) -> int:
    shares = shares_of(arguments.resources, fit_score_requests_of(pod), _sum_nonzero(info), allocatable_of(info.node))
    if arguments.strategy == "LeastAllocated":
        return _weighted_mean_of([(_score_least(share), share.weight) for share in shares])
    if arguments.strategy == "MostAllocated":
        return _weighted_mean_of([(_score_most(share), share.weight) for share in shares])
    return _positive_mean_of([(_score_shape(arguments.shape, share), share.weight) for share in shares])


def shares_of(
    resources: tuple[WeightedResource, ...], requested: Amounts, taken: Amounts, offered: Amounts
) -> list[Share]:
    """The resources that count on this node: not what it does not offer, nor scalar ones the pod does not ask for."""
    return [
        Share(taken.get(name, 0), taken.get(name, 0) + requested.get(name, 0), offered[name], weight)
        for name, weight in ((resource.name, resource.weight) for resource in resources)
        if offered.get(name, 0) != 0 and (requested.get(name, 0) != 0 or not is_scalar(name))
    ]


def _sum_nonzero(info: NodeInfo) -> Amounts:
    """What the node's pods use, with defaults for cpu and memory where they do not say."""
    nonzero = add_all(map(placed_nonzero_requests_of, info.pods))
    return add_all(map(placed_requests_of, info.pods)) | {name: nonzero.get(name, 0) for name in DEFAULT_REQUESTS}


def _wanted_amounts_of(pod: Pod, arguments: FitArguments) -> Amounts:
    """What must be free: cpu, memory, ephemeral-storage, then the others by name, without what is to be ignored."""
    first = ("cpu", "memory", "ephemeral-storage")
    amounts = filter_requests_of(pod)
    names = [*(name for name in first if name in amounts), *sorted(name for name in amounts if name not in first)]
    return {name: amounts[name] for name in names if amounts[name] > 0 and not _is_ignored(name, arguments)}


def _is_ignored(name: str, arguments: FitArguments) -> bool:
    group = name.partition("/")[0]
    return is_extended(name) and (name in arguments.ignored_resources or group in arguments.ignored_resource_groups)


def _score_least(share: Share) -> int:
    return max(share.offered - share.after, 0) * MAX_SCORE // share.offered


def _score_most(share: Share) -> int:
    return min(share.after, share.offered) * MAX_SCORE // share.offered


def _score_shape(shape: tuple[ShapePoint, ...], share: Share) -> int:
    """The height of the broken line above this utilisation, in whole numbers, cut towards the earlier point."""
    utilization = min(share.after, share.offered) * _FULL // share.offered
    height = _SHAPE_SCALE * shape[0].score
    for left, right in pairwise(shape):
        if utilization > left.utilization:
            reached = min(utilization, right.utilization) - left.utilization
            rise = _SHAPE_SCALE * (right.score - left.score) * reached
            step = abs(rise) // (right.utilization - left.utilization)
            height = _SHAPE_SCALE * left.score + (step if rise >= 0 else -step)
    return height


def _weighted_mean_of(scores: list[tuple[int, int]]) -> int:
    weights = sum(weight for _, weight in scores)
    return sum(score * weight for score, weight in scores) // weights if weights else 0


def _positive_mean_of(scores: list[tuple[int, int]]) -> int:
    """Rounded to the nearest, and without the resources that score 0: they do not even count in the weights."""
    positive = [(score, weight) for score, weight in scores if score > 0]
    weights = sum(weight for _, weight in positive)
    points = sum(score * weight for score, weight in positive)
    return (2 * points + weights) // (2 * weights) if weights else 0
