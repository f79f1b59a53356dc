"""Conditions of a Wukong: what is to be said, and the list as it is then written. Used by status.py and controller.py.

Accepted         it is understood; else every problem with its path, and nothing of what runs is changed
Bootable         there is a disk to start from
Placed           every virtual machine that is to run has a node; else why not, and the smallest change that helps
Ready            every virtual machine that it asks for is ready
RestartRequired  a change waits for a restart, or for the next pod of a virtual machine
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from wukong.api.placement import Condition
from wukong.api.times import format_time

ACCEPTED, BOOTABLE, PLACED, READY = "Accepted", "Bootable", "Placed", "Ready"
RESTART_REQUIRED = "RestartRequired"
LONGEST_MESSAGE = 4096  # characters; a Wukong with its status must stay small enough to be read


class Claim(NamedTuple):
    """A condition as it should be, whenever it became so."""

    type: str
    is_true: bool
    reason: str
    message: str = ""

    @property
    def status(self) -> str:
        return "True" if self.is_true else "False"


def update_conditions(
    present: list[Condition], claims: Iterable[Claim], generation: int, now: float
) -> list[Condition]:
    """The list with these claims in it. The time of one changes with its status; what others wrote in it stays."""
    by_type = {condition.type: condition for condition in present}
    for claim in claims:
        before = by_type.get(claim.type)
        is_unchanged = before is not None and before.status == claim.status
        by_type[claim.type] = Condition(
            type=claim.type,
            status=claim.status,
            reason=claim.reason,
            message=cut(claim.message, LONGEST_MESSAGE),
            last_transition_time=before.last_transition_time if before and is_unchanged else format_time(now),
            observed_generation=generation,
        )
    return list(by_type.values())


def is_turned(present: list[Condition], wanted: list[Condition]) -> bool:
    """Whether a condition came, or has another status or reason: what should be told at once."""
    before = {condition.type: (condition.status, condition.reason) for condition in present}
    return before != {condition.type: (condition.status, condition.reason) for condition in wanted}


def cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
