"""What is decided about a Rollout, as a value: sizes, selectors, and what its status remembers. Pure.

Made by blue_green.py and canary.py, carried out by writes.py, told by status.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from wukong.api.core import Pod
from wukong.api.rollout import ABORT, PROMOTE, VersionAntiAffinity
from wukong.api.times import parse_time
from wukong.controllers.rollout.versions import Look, Version

FULL = "full"


class Deadlock(NamedTuple):
    """The version that gets the traffic cannot replace pods because the new version's pods keep it away."""

    version: str  # the hash of the one that cannot be placed
    woken: tuple[Pod, ...] = ()  # that wait although the new version has gone: they are made anew


class Decision(NamedTuple):
    sizes: Mapping[str, int]  # hash → replicas; whoever is not named keeps its size
    selectors: Mapping[str, str]  # Service → the hash that it is to select
    roles: Mapping[str, str]  # hash → what the version is
    serving: Sequence[str]  # hashes of the versions that get traffic
    separation: VersionAntiAffinity | None
    stable: str
    previous: str = ""
    step: int = 0
    paused_at: float | None = None
    promoted_at: float | None = None
    waiting: str = ""  # for what somebody must do, or a time must pass: then it is Paused
    is_aborted: bool = False
    is_complete: bool = False
    deadlock: Deadlock | None = None
    again_after: float | None = None


class Memory(NamedTuple):
    """What the status remembers, as far as it is about the revision at hand."""

    step: int
    paused_at: float | None
    promoted_at: float | None
    is_yielding: bool
    yielded_at: float


def read_memory(look: Look) -> Memory:
    status = look.rollout.status
    separated = next((condition for condition in status.conditions if condition.type == "Separated"), None)
    is_yielding = separated is not None and separated.reason == "Yielded" and look.is_known
    return Memory(
        step=max(0, status.step) if look.is_known else 0,
        paused_at=parse_time(status.paused_at) if look.is_known else None,
        promoted_at=parse_time(status.promoted_at),
        is_yielding=is_yielding,
        yielded_at=(parse_time(separated.last_transition_time) if separated is not None else None) or 0.0,
    )


def is_aborted(look: Look) -> bool:
    return look.rollout.metadata.annotations.get(ABORT) == str(look.revision)


def is_promoted(look: Look, step: int | None = None) -> bool:
    """Whether somebody asks that this revision goes on: from this step of a canary, or altogether."""
    asked = look.rollout.metadata.annotations.get(PROMOTE)
    return asked in (f"{look.revision}/{FULL}", f"{look.revision}" if step is None else f"{look.revision}/{step}")


def is_fully_promoted(look: Look) -> bool:
    return look.rollout.metadata.annotations.get(PROMOTE) == f"{look.revision}/{FULL}"


def find_soonest(*waits: float | None) -> float | None:
    return min((wait for wait in waits if wait is not None), default=None)


def list_superseded(look: Look, kept: Sequence[str]) -> list[Version]:
    """Versions that nobody needs: neither the current one nor one of those kept."""
    return [version for version in look.others if version.hash not in kept]
