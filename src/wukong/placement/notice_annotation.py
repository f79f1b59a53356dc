"""The notice on a Node, `placement.novasphere.dev/notice`, as people and as programs write it. Pure.

People write a duration (2m), a moment, or anything. Programs (`wukong agent`, the hook) write who says so, what will
become of the machine, and when:

    {"source":"agent aws","course":"Reclaim","action":"terminate","deadline":"2026-11-18T10:02:00Z"}

Read by controllers/spot/notices.py. `update_annotation` is what the agent and the hook write by: each takes away only
what it wrote itself; a notice of somebody else is replaced only by a graver or a sooner one, and comes back when that
is withdrawn.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

import msgspec

from wukong.api.json_values import decode_json
from wukong.api.times import format_time, parse_time
from wukong.errors import InputError

RECLAIM, RECOMMEND = "Reclaim", "Recommend"
LONGEST_TEXT = 2000  # characters of an annotation that is read; anybody who may patch nodes can write it
LONGEST_SOURCE = 100
_LONGEST_BEFORE = 500
_DURATION = re.compile(r"(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?")


class StatedNotice(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a program writes. `before` is the text that stood there, of somebody else."""

    source: str
    course: Literal["Reclaim", "Recommend"] = "Reclaim"
    action: str = ""  # as the cloud calls it: terminate, stop, hibernate
    deadline: str = ""
    before: str = ""

    @property
    def deadline_at(self) -> float | None:
        return parse_time(self.deadline)


class Statement(NamedTuple):
    """What an annotation says, whoever wrote it. `source` is "" where it does not say who."""

    source: str
    course: str
    seconds: float | None = None  # from when it is seen
    deadline: float | None = None


class Update(NamedTuple):
    """What to do about an annotation: `text` is what it shall be, None to remove it."""

    text: str | None


_decoder = msgspec.json.Decoder(StatedNotice)


def state_notice(source: str, course: str, action: str, deadline: float | None) -> StatedNotice:
    """The notice of a program, its texts shortened to what an annotation is for."""
    return StatedNotice(
        source=source[:LONGEST_SOURCE],
        course="Recommend" if course == RECOMMEND else "Reclaim",
        action=action[:LONGEST_SOURCE],
        deadline="" if deadline is None else format_time(deadline),
    )


def read_stated(text: str | None) -> StatedNotice | None:
    """None where no program wrote it, or it cannot be read."""
    if text is None or not text.lstrip().startswith("{") or len(text) > LONGEST_TEXT:
        return None
    try:
        return decode_json(text.encode("utf-8", "replace"), _decoder)
    except (InputError, msgspec.ValidationError):
        return None


def read_annotation(text: str) -> Statement:
    """Whatever it says: what cannot be read is a notice of which no time is known."""
    stated = read_stated(text)
    if stated is not None:
        return Statement(stated.source[:LONGEST_SOURCE], stated.course, deadline=stated.deadline_at)
    return Statement("", RECLAIM, parse_duration(text), parse_time(text))


def parse_duration(text: str) -> float | None:
    """`90s`, `2m`, `1h30m` in seconds; None for anything else."""
    match = _DURATION.fullmatch(text.strip()) if text.strip() else None
    if match is None:
        return None
    return float(sum(int(part) * unit for part, unit in zip(match.groups(), (3600, 60, 1), strict=True) if part))


def update_annotation(
    text: str | None, wanted: StatedNotice | None, source: str, now: float, *, is_exact: bool = True
) -> Update | None:
    """How an annotation changes because `source` says `wanted`, or nothing any more; None: it stays as it is.

    `is_exact` is whether the wanted deadline is the cloud's own. One that was counted from when the notice was seen
    does not move when the same is said again.
    """
    stated = read_stated(text)
    own = stated if stated is not None and stated.source == source else None
    if wanted is None:
        return None if own is None else Update(own.before or None)
    if own is not None:
        if _says_the_same(own, wanted, is_exact=is_exact):
            return None
        return Update(_format(wanted, own.before))
    if text is not None and not _is_graver(wanted, read_annotation(text), now):
        return None
    return Update(_format(wanted, text or ""))


def _says_the_same(own: StatedNotice, wanted: StatedNotice, *, is_exact: bool) -> bool:
    if (own.course, own.action) != (wanted.course, wanted.action):
        return False
    if own.deadline == wanted.deadline:
        return True
    old, new = own.deadline_at, wanted.deadline_at
    return not is_exact and old is not None and (new is None or old <= new)


def _is_graver(wanted: StatedNotice, other: Statement, now: float) -> bool:
    """Than what somebody else says: a machine that goes before one that may, then the sooner; unknown is last."""
    if wanted.course != other.course:
        return wanted.course == RECLAIM
    deadline = other.deadline
    if deadline is None and other.seconds is not None:
        deadline = now + other.seconds
    ours = wanted.deadline_at
    return ours is not None and (deadline is None or ours < deadline)


def _format(wanted: StatedNotice, before: str) -> str:
    kept = before if len(before) <= _LONGEST_BEFORE else ""
    return msgspec.json.encode(msgspec.structs.replace(wanted, before=kept)).decode()
