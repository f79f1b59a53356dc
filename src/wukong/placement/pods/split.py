"""Which pods of an owner are on demand and which on spot nodes: `onDemandBase` and `spotPercent` as one function. Pure.

Of n pods

    on demand = max(base(n), n − floor(n · spotPercent / 100)), at most n      base: a number, or a share rounded up
    spot      = n − on demand

Both grow with n, by at most one of them for each pod. So whoever gives every new pod to the side that lacks one gets
these numbers exactly, in whatever order pods come and go. spotPercent is a share of all pods, not of those beyond the
base; where the two disagree the base counts. Called at admission for a new pod, and by who mends a group as it stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wukong.placement.compile import Plan, Split

SPOT, ON_DEMAND = "spot", "on-demand"


class CapacityCounts(NamedTuple):
    """How many pods of one owner there are, by where they run, or are to run if they do not yet."""

    on_demand: int = 0
    spot: int = 0

    @property
    def total(self) -> int:
        return self.on_demand + self.spot


def divide(rule: Split, total: int) -> CapacityCounts:
    """How many of so many pods belong on demand, and how many on spot nodes."""
    most_spot = total * rule.spot_percent // 100
    on_demand = min(total, max(rule.on_demand_base.count_of(total), total - most_spot))
    return CapacityCounts(on_demand, total - on_demand)


def split(plan: Plan, counts: CapacityCounts) -> str:
    """Where the next pod of an owner shall run: "on-demand" or "spot"; "" where the plan does not split.

    Where the group is not as it should be, the base comes first: a pod is on demand while that lacks one.
    """
    if plan.split is None:
        return ""
    return ON_DEMAND if counts.on_demand < divide(plan.split, counts.total + 1).on_demand else SPOT


def find_misplaced(plan: Plan, capacities: Sequence[str]) -> list[int]:
    """The positions of the pods that must move for a group to be as it should be: the last of the side that has too
    many. `capacities` has "spot" or "on-demand" for each pod of one owner, in the order in which they are to stay.

    Nothing for a plan that does not split. What is given back is all on one side, and no more than is needed.
    """
    if plan.split is None:
        return []
    positions = {
        side: [position for position, capacity in enumerate(capacities) if capacity == side]
        for side in (ON_DEMAND, SPOT)
    }
    wanted = divide(plan.split, len(positions[ON_DEMAND]) + len(positions[SPOT]))
    surplus_on_demand = positions[ON_DEMAND][wanted.on_demand :]
    return surplus_on_demand or positions[SPOT][wanted.spot :]
