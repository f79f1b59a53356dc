"""Conditions on a status: what is to be said, and the list as it is then written. Used by controllers of our kinds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from wukong.api.policy_status import Condition
from wukong.api.times import format_time

LONGEST_MESSAGE = 4096  # characters; an object with its status must stay small enough to be read


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
    present: list[Condition], claims: Iterable[Claim], generation: int, now: float, longest: int = LONGEST_MESSAGE
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
            message=cut(claim.message, longest),
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
