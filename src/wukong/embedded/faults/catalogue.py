"""The types of faults: what each does, when it counts as effective, and how often it comes by default.

A rate is a share of writes or of events by 1, or a number per minute, as the type's `per` says. Read by faults.py, the
reader of scenarios and the command line. Data only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from wukong.errors import InputError, nearest

ALL, NONE = "all", "none"


class FaultType(NamedTuple):
    per: Literal["write", "event", "minute", "question", "record"]
    rate: float
    description: str
    effective: str


_RETRIED = "its key was decided again, or the write repeated"
_RESTARTED = "the process that started again took up the same key"

TYPES: dict[str, FaultType] = {
    "conflict": FaultType("write", 0.02, "409 instead of a change", _RETRIED),
    "throttled": FaultType("write", 0.02, "429 with Retry-After", _RETRIED),
    "failed": FaultType("write", 0.02, "500 or 503, nothing written", _RETRIED),
    "lost-answer": FaultType(
        "write", 0.02, "the write happens, its answer never comes", "it was looked at or decided again"
    ),
    "lost-request": FaultType("write", 0.02, "no answer, and nothing written", _RETRIED),
    "quota": FaultType("write", 0.02, "403 to a new pod", _RETRIED),
    "crash-before": FaultType("write", 0.004, "the process dies before a write", _RESTARTED),
    "crash-after": FaultType("write", 0.004, "the process dies after a write, before it knows", _RESTARTED),
    "crash-midway": FaultType("write", 0.02, "the process dies with some of its writes done", _RESTARTED),
    "stale": FaultType("event", 0.01, "a process's watches lag for a while", "it decided something meanwhile"),
    "missed": FaultType(
        "event", 0.003, "a watch breaks, and lists again later", "the list showed what had been missed"
    ),
    "gone": FaultType("event", 0.003, "a watch breaks, and is told 410 when it resumes", "the server said 410"),
    "cut": FaultType("event", 0.003, "a watch breaks, and resumes where it was", "something had happened meanwhile"),
    "duplicated": FaultType("event", 0.02, "an event comes twice", "the mirror dropped the second"),
    "reordered": FaultType(
        "event", 0.02, "an event comes after later ones of other objects", "one of those came first"
    ),
    "two-leaders": FaultType("minute", 0.4, "a second instance of a process acts, too", "both wrote meanwhile"),
    "clock-jump": FaultType("minute", 0.4, "a process's clock is ahead for a while", "a key was taken before its time"),
    "recreated": FaultType("minute", 0.6, "a named pod is removed and comes again", "it is there under another uid"),
    "foreign-edit": FaultType(
        "minute", 1.0, "a stranger edits labels, annotations or sizes", "somebody decided about it"
    ),
    "stuck-finalizer": FaultType(
        "minute", 0.4, "a deleted pod is held by a finalizer", "it stayed until that was removed"
    ),
    "node-flapping": FaultType("minute", 0.3, "a node falls silent and comes back", "it was found not ready"),
    "spot-notice": FaultType(
        "minute", 0.2, "a node is given notice, goes, and comes again", "pods were on it when it went"
    ),
    "notice-cancelled": FaultType(
        "minute", 0.3, "a node is given notice, which is recalled", "pods were placed meanwhile"
    ),
    "mass-reclaim": FaultType("minute", 0.1, "a third of the nodes goes at once", "pods were on them"),
    "ledger-down": FaultType("minute", 0.3, "the ledger's store is down for a while", "a record could not be written"),
    "ledger-late": FaultType(
        "record", 0.1, "no answer of the ledger's store, which writes seconds later", "others had written meanwhile"
    ),
    "extender": FaultType("question", 0.1, "the extender's answer is garbage", "the pod was decided again"),
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
    problems = [f"--faults: {describe_unknown(name)}" for name in names if name not in TYPES]
    if problems:
        raise InputError(*problems)
    return list(dict.fromkeys(names))


def describe_unknown(name: str) -> str:
    """The problem with a name that is no type of fault."""
    return f'expected a type of fault, got "{name}".{nearest(name, TYPES)} There are: {", ".join(TYPES)}.'


def plan_episodes(types: Iterable[str], end: float) -> Iterator[Episode]:
    """Each of these types at its own rate, from the beginning to `end`."""
    return (Episode(name, 0.0, end, TYPES[name].rate) for name in types)
