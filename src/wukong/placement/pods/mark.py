"""The mark on a pod that a policy changed: an annotation with the policy, its generation, and what was decided. Pure.

    placement.novasphere.dev/applied: '{"policy":"PlacementPolicy shop/web","generation":3,"capacity":"spot"}'

Written by build.py. Read by whoever must know what a pod was meant for: the next call for the same pod, the extender,
and whoever counts the pods of an owner. A pod's author may write one, too: then it is his decision.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from wukong.placement import pod_annotations
from wukong.placement.compile import Plan

MARK = pod_annotations.MARK
CAPACITIES = ("", "on-demand", "spot")
_LONGEST = 1024  # of a mark: a name of a policy, and little else


class Mark(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was decided for a pod, and by which policy."""

    policy: str  # "PlacementPolicy shop/web"
    generation: int = 0
    capacity: str = ""  # "on-demand" or "spot" where a split decided


_decoder = msgspec.json.Decoder(Mark)


def find_marked_strategy(plan: Plan, annotations: Mapping[str, str] | None) -> str:
    """The strategy that a marked decision amounts to where the plan splits; "" where none is marked."""
    mark = read_mark(annotations) if plan.split is not None else None
    if mark is None or not mark.capacity or not is_of_policy(mark, plan):
        return ""
    if mark.capacity == "on-demand":
        return "on-demand-only"
    return "spot-only" if plan.waits_for_spot else "spot-first"


def is_of_policy(mark: Mark, plan: Plan) -> bool:
    """Whether the policy that left this mark is the plan's. A plan beside a Wukong's is named after both."""
    return plan.name == mark.policy or plan.name.endswith(f" over {mark.policy}")


def format_mark(mark: Mark) -> str:
    return msgspec.json.encode(mark).decode()


def read_mark(annotations: Mapping[str, str] | None) -> Mark | None:
    """The mark among a pod's annotations; None where there is none, or one that cannot be read."""
    text = (annotations or {}).get(MARK)
    if not isinstance(text, str) or len(text) > _LONGEST:
        return None
    try:
        mark = _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return mark if mark.capacity in CAPACITIES else None
