"""The types of faults: what each does, when it counts as effective, and how often it comes unless somebody says.

A rate is a share of writes or of events by 1, or a number per minute, as the type's `per` says. Read by faults.py, the
reader of scenarios and the command line. Data only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from wukong.errors import InputError, nearest

ALL, NONE = "all", "none"


class Type(NamedTuple):
    per: Literal["write", "event", "minute", "question"]
    rate: float
    what: str
    effective: str


_TRIED = "its key was decided again, or the write repeated"
_AGAIN = "the process that started again took up the same key"

TYPES: dict[str, Type] = {
    "conflict": Type("write", 0.02, "409 instead of a change", _TRIED),
    "throttled": Type("write", 0.02, "429 with Retry-After", _TRIED),
    "failed": Type("write", 0.02, "500 or 503, nothing written", _TRIED),
    "lost-answer": Type(
        "write", 0.02, "the write happens, its answer never comes", "it was looked at or decided again"
    ),
    "lost-request": Type("write", 0.02, "no answer, and nothing written", _TRIED),
    "quota": Type("write", 0.02, "403 to a new pod", _TRIED),
    "crash-before": Type("write", 0.004, "the process dies before a write", _AGAIN),
    "crash-after": Type("write", 0.004, "the process dies after a write, before it knows", _AGAIN),
    "crash-midway": Type("write", 0.02, "the process dies with some of its writes done", _AGAIN),
    "stale": Type("event", 0.01, "a process's watches lag for a while", "it decided something meanwhile"),
    "missed": Type("event", 0.003, "a watch breaks, and lists again later", "the list showed what had been missed"),
    "gone": Type("event", 0.003, "a watch breaks, and is told 410 when it resumes", "the server said 410"),
    "cut": Type("event", 0.003, "a watch breaks, and resumes where it was", "something had happened meanwhile"),
    "duplicated": Type("event", 0.02, "an event comes twice", "the mirror dropped the second"),
    "reordered": Type("event", 0.02, "an event comes after later ones of other objects", "one of those came first"),
    "two-leaders": Type("minute", 0.4, "a second instance of a process acts, too", "both wrote meanwhile"),
    "clock-jump": Type("minute", 0.4, "a process's clock is ahead for a while", "a key was taken before its time"),
    "recreated": Type("minute", 0.6, "a named pod is removed and comes again", "it is there under another uid"),
    "foreign-edit": Type("minute", 1.0, "a stranger edits labels, annotations or sizes", "somebody decided about it"),
    "stuck-finalizer": Type("minute", 0.4, "a deleted pod is held by a finalizer", "it stayed until that was removed"),
    "node-flapping": Type("minute", 0.3, "a node falls silent and comes back", "it was found not ready"),
    "spot-notice": Type("minute", 0.2, "a node is given notice, goes, and comes again", "pods were on it when it went"),
    "notice-cancelled": Type("minute", 0.3, "a node is given notice, which is recalled", "pods were placed meanwhile"),
    "mass-reclaim": Type("minute", 0.1, "a third of the nodes goes at once", "pods were on them"),
    "extender": Type("question", 0.1, "the extender's answer is garbage", "the pod was decided again"),
}


class Episode(NamedTuple):
    """One type of fault from one moment to another, in seconds from the beginning."""

    type: str
    begin: float
    end: float
    rate: float
    is_once: bool = False  # at its beginning, for what is counted per minute


def read_types(text: str) -> list[str]:
    """`all`, `none`, or names with commas between them. Raises InputError."""
    if text in (ALL, NONE):
        return list(TYPES) if text == ALL else []
    names = [name.strip() for name in text.split(",")]
    problems = [f"--faults: {unknown(name)}" for name in names if name not in TYPES]
    if problems:
        raise InputError(*problems)
    return list(dict.fromkeys(names))


def unknown(name: str) -> str:
    return f'expected a type of fault, got "{name}".{nearest(name, TYPES)} There are: {", ".join(TYPES)}.'


def episodes(types: Iterable[str], end: float) -> Iterator[Episode]:
    """Each of these types at its own rate, from the beginning to `end`."""
    return (Episode(name, 0.0, end, TYPES[name].rate) for name in types)
