"""What is known of a leaving node, written on the Node itself, and which nodes have such a record. Pure.

    placement.novasphere.dev/leaving: {"source": …, "course": "Reclaim", "seen": …, "deadline": …, "cordoned": true}

So it survives a restart and dies with its Node. `cordoned` says whether it was Wukong that made the node unschedulable:
only then does it undo that when the notice is withdrawn.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from wukong.api.core import Node
from wukong.api.json_values import decode_json
from wukong.api.kinds import NODES
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.api.times import format_time, parse_time
from wukong.controllers.spot.notices import Course, Notice, read_notice
from wukong.errors import InputError

RECORD = "placement.novasphere.dev/leaving"
TAINT = "placement.novasphere.dev/leaving"
_MOST_TEXT = 1000  # characters; anybody who may patch nodes can write it


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    source: str
    course: Course
    seen: str
    deadline: str = ""
    cordoned: bool = False

    @property
    def deadline_at(self) -> float | None:
        return parse_time(self.deadline)


_decoder = msgspec.json.Decoder(Record)


def make_record(notice: Notice, seen: float, *, is_cordoned: bool) -> Record:
    """Of a notice that was first seen at this moment."""
    deadline = notice.deadline
    if deadline is None and notice.seconds is not None:
        deadline = seen + notice.seconds
    return Record(
        source=notice.source,
        course=notice.course,
        seen=format_time(seen),
        deadline="" if deadline is None else format_time(deadline),
        cordoned=is_cordoned,
    )


def read_record(node: Node | None) -> Record | None:
    """None where there is none, or it cannot be read."""
    text = node.metadata.annotations.get(RECORD, "") if node is not None else ""
    if not text or len(text) > _MOST_TEXT:
        return None
    try:
        return decode_json(text.encode(), _decoder)
    except (InputError, msgspec.ValidationError):
        return None


def format_record(record: Record) -> str:
    return msgspec.json.encode(record).decode()


class LeavingNodes:
    """A derived index: the records of all leaving nodes, by name; and which have a notice, written down or not."""

    kinds: ClassVar[frozenset[str]] = frozenset((NODES.group_kind,))

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self.noticed: set[str] = set()

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        record = read_record(new) if isinstance(new, Node) else None
        if record is not None:
            self.records[key.name] = record
        else:
            self.records.pop(key.name, None)
        if isinstance(new, Node) and read_notice(new) is not None:
            self.noticed.add(key.name)
        else:
            self.noticed.discard(key.name)

    def fork(self) -> LeavingNodes:
        copy = LeavingNodes()
        copy.records, copy.noticed = dict(self.records), set(self.noticed)
        return copy
