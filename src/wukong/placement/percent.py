"""Percentages as policies write them: "70%"."""

from __future__ import annotations

import re

from wukong.api.placement import THRESHOLD

_FORM = re.compile(THRESHOLD)


def parse_percent(text: str) -> float | None:
    """70.0 for "70%"; None for what is no percentage from 0% to 100%."""
    number = float(text[:-1]) if _FORM.fullmatch(text) else None
    return number if number is not None and number <= 100 else None
