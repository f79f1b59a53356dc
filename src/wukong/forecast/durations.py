"""Seconds as people say them. Used by verdicts and views."""

from __future__ import annotations


def format_about(seconds: float) -> str:
    """`in about 40 s`; `in less than 1 s`."""
    text = format_seconds(seconds)
    return f"in {text}" if text.startswith("less") else f"in about {text}"


def format_seconds(seconds: float) -> str:
    """`less than 1 s`, `40 s`, `3 min 20 s`, `1 h 5 min`."""
    whole = round(seconds)
    if whole < 1:
        return "less than 1 s"
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    if hours:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    if minutes:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return f"{rest} s"
