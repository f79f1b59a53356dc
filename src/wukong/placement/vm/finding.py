"""What `wukong lint` says of a Wukong: how bad, where, what, and what to do about it."""

from __future__ import annotations

from typing import Literal

import msgspec

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")  # the worst first


class Finding(msgspec.Struct, frozen=True):
    """error: it will not work. warning: it will fail some day. note: it may mean something else than it seems to."""

    severity: Severity
    subject: str  # namespace/name of the Wukong
    path: str
    text: str
    fix: str = ""
