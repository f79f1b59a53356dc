"""Percentages and shares as policies write them: "70%", or 2 pods."""

from __future__ import annotations

import re

import msgspec

from wukong.api.placement import THRESHOLD
from wukong.api.policy_parts import LARGEST_COUNT, SHARE

_FORM = re.compile(THRESHOLD)
_SHARE_FORM = re.compile(SHARE, re.ASCII)


class Share(msgspec.Struct, frozen=True):
    """So many pods, or so many in a hundred of them."""

    count: int = 0
    percent: int = 0

    def count_of(self, total: int) -> int:
        """How many of so many pods. A share is rounded up, as minAvailable of a PodDisruptionBudget is."""
        return self.count if not self.percent else -(-total * self.percent // 100)


def parse_percent(text: str) -> float | None:
    """70.0 for "70%"; None for what is no percentage from 0% to 100%."""
    number = float(text[:-1]) if _FORM.fullmatch(text) else None
    return number if number is not None and number <= 100 else None


def parse_share(value: int | str) -> Share | None:
    """A number of pods, or a whole percentage in quotes; None for anything else."""
    if isinstance(value, int):
        return Share(count=value) if 0 <= value <= LARGEST_COUNT else None
    return Share(percent=int(value[:-1])) if _SHARE_FORM.fullmatch(value) else None
