"""How many pods each side has at a step of a canary, and how long a pause lasts. Numbers in, numbers out. Pure.

Used by controllers/rollout and problems.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from wukong.api.rollout import MOST_SECONDS, CanaryStep, Pause

_DURATION = re.compile(r"([0-9]{1,7})([smh])", re.ASCII)
_UNITS = {"s": 1, "m": 60, "h": 3600}


class CanaryTarget(NamedTuple):
    """How many pods the new version is to have, and how many the stable one."""

    canary: int
    stable: int


def find_target(steps: Sequence[CanaryStep], step: int, replicas: int, surge: int) -> CanaryTarget:
    """The sizes at a step: those of the last step so far that set some; none are new before the first of them.

    Between 0 and 100 per cent both sides have a pod, where there are two pods, or one may come on top.
    """
    if step >= len(steps) or replicas == 0:
        return CanaryTarget(replicas, 0)
    weight, count = 0, None
    for entry in steps[: step + 1]:
        if entry.set_weight is not None:
            weight, count = entry.set_weight, None
        elif entry.set_replicas is not None:
            count = entry.set_replicas
    if count is not None:
        canary = min(count, replicas)
        return CanaryTarget(canary, replicas - canary)
    if weight <= 0:
        return CanaryTarget(0, replicas)
    if weight >= 100:
        return CanaryTarget(replicas, 0)
    if replicas == 1:
        return CanaryTarget(1, 1 if surge else 0)
    canary = min(max(1, (replicas * weight + 50) // 100), replicas - 1)
    return CanaryTarget(canary, replicas - canary)


def pause_seconds_of(pause: Pause) -> float | None:
    """How long it lasts; None: until somebody promotes."""
    return None if pause.duration is None else parse_duration(pause.duration)


def parse_duration(value: int | str) -> float | None:
    """Seconds; None for what is no duration."""
    if isinstance(value, int):
        return float(value) if 0 <= value <= MOST_SECONDS else None
    match = _DURATION.fullmatch(value)
    return float(int(match[1]) * _UNITS[match[2]]) if match is not None else None
