"""NodeResourcesBalancedAllocation: how evenly a node's resources would be used.

Works with real requests, never with the defaults NodeResourcesFit assumes. The fractions are floating point numbers,
as in kube-scheduler, and added in its order.
"""

from __future__ import annotations

from math import sqrt

from wukong.api.core import Pod
from wukong.api.profile import MAX_SCORE, Profile
from wukong.rules.cluster import NodeInfo
from wukong.rules.fit import shares_of
from wukong.rules.resources import add_all, allocatable_of, placed_requests_of


def is_skipped(pod: Pod, profile: Profile) -> bool:
    """A pod that asks for none of the resources is not scored: all such pods would gather on one node."""
    requested = placed_requests_of(pod)
    return all(requested.get(resource.name, 0) == 0 for resource in profile.balanced_resources)


def score(pod: Pod, info: NodeInfo, profile: Profile) -> int:
    taken = add_all(map(placed_requests_of, info.pods))
    shares = shares_of(profile.balanced_resources, placed_requests_of(pod), taken, allocatable_of(info.node))
    after = _score_evenness([(share.after, share.offered) for share in shares])
    if not profile.version.balance_rewards_improvement:
        return after
    before = _score_evenness([(share.before, share.offered) for share in shares])
    return MAX_SCORE // 2 + (MAX_SCORE // 2 + after - before) // 2


def _score_evenness(uses: list[tuple[int, int]]) -> int:
    """100 where every resource is used to the same fraction, less by their standard deviation."""
    fractions = [min(float(used) / float(offered), 1.0) for used, offered in uses]
    return int((1 - _compute_deviation(fractions)) * MAX_SCORE)


def _compute_deviation(fractions: list[float]) -> float:
    if len(fractions) < 2:
        return 0.0
    if len(fractions) == 2:
        return abs((fractions[0] - fractions[1]) / 2)
    mean = _add_in_order(fractions) / len(fractions)
    return sqrt(_add_in_order([(fraction - mean) * (fraction - mean) for fraction in fractions]) / len(fractions))


def _add_in_order(numbers: list[float]) -> float:
    """Plain left-to-right addition. Python's own sum compensates rounding errors since 3.12; Go does not."""
    result = 0.0
    for number in numbers:
        result += number
    return result
