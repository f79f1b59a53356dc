"""Nodes with a notice: written down on the Node, closed to new pods, opened again if the notice is withdrawn.

Keys are nodes. All of it is one patch, at the version that was read:

    a notice, no record      ─► record, our taint, and a cordon if the machine goes
    another notice           ─► another record; the moment it was first seen stays
    a record, no notice      ─► record and taint removed, uncordoned if it was we who cordoned it
    a silent spot node       ─► looked at again after SILENT_SECONDS, then it counts as lost

What becomes of the pods is decided by moves.py and evictions.py, which go by the record.
"""

from __future__ import annotations

from typing import Any

from wukong.actions import DONE, Note, Outcome, Patch
from wukong.api.core import Node
from wukong.api.kinds import NODES
from wukong.api.resources import Key
from wukong.api.times import parse_time
from wukong.controllers.spot.notices import SILENT_SECONDS, Course, Notice, is_silent, read_notice
from wukong.controllers.spot.records import RECORD, TAINT, Record, format_record, make_record, read_record
from wukong.ports import PatchBody
from wukong.state import State
from wukong.state.controller import Watch

Operation = dict[str, Any]  # of a JSON patch
_EFFECTS = {Course.RECLAIM: "NoSchedule", Course.LOST: "NoSchedule", Course.RECOMMEND: "PreferNoSchedule"}


class SpotNodes:
    name = "spot-node"
    watches = (Watch(NODES),)

    def __init__(self) -> None:
        self._silent_since: dict[Key, float] = {}  # may be lost: a silent node is then waited for once more

    def copy_memory(self, source: SpotNodes, _: State) -> None:
        self._silent_since = dict(source._silent_since)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        node = state.get(Node, key)
        if node is None:
            self._silent_since.pop(key, None)
            return DONE
        record, notice = read_record(node), read_notice(node)
        wait = None
        if notice is None:
            notice, wait = self._judge_silence(node, key, record, now)
        else:
            self._silent_since.pop(key, None)
        if notice is None:
            return _withdraw(node, key, record) if _has_traces(node) else Outcome(requeue_after=wait)
        wanted = _update_record(notice, record, node, now)
        return DONE if record == wanted and _is_closed(node, wanted) else _write(node, key, record, wanted)

    def _judge_silence(
        self, node: Node, key: Key, record: Record | None, now: float
    ) -> tuple[Notice | None, float | None]:
        """The notice of a node that has been silent for long, or the seconds until it has been."""
        if not is_silent(node):
            self._silent_since.pop(key, None)
            return None, None
        left = self._silent_since.setdefault(key, now) + SILENT_SECONDS - now
        if left > 0 and (record is None or record.course != Course.LOST):
            return None, left
        return Notice("condition Ready: Unknown", Course.LOST), None


def _update_record(notice: Notice, record: Record | None, node: Node, now: float) -> Record:
    """A notice that is repeated keeps its moment: two minutes are counted from when it was first seen."""
    is_cordoned = record.cordoned if record is not None else _cordons(notice) and not node.spec.unschedulable
    if record is not None and (record.source, record.course) == (notice.source, notice.course):
        seen = parse_time(record.seen)
        return make_record(notice, now if seen is None else seen, is_cordoned=is_cordoned)
    return make_record(notice, now, is_cordoned=is_cordoned or (_cordons(notice) and not node.spec.unschedulable))


def _has_traces(node: Node) -> bool:
    """Whether something of ours is on it. A Node that is made again from what it was may have the taint alone."""
    return RECORD in node.metadata.annotations or any(taint.key == TAINT for taint in node.spec.taints)


def _cordons(notice: Notice) -> bool:
    return notice.course == Course.RECLAIM


def _is_closed(node: Node, record: Record) -> bool:
    """Whether the taint is as it should be. A cordon that somebody lifts is not repeated: the taint keeps pods off."""
    effects = [taint.effect for taint in node.spec.taints if taint.key == TAINT]
    return effects == [effect for effect in (_EFFECTS.get(record.course),) if effect]


def _write(node: Node, key: Key, record: Record | None, wanted: Record) -> Outcome:
    operations = [*_set_record(node, format_record(wanted)), *_set_taint(node, _EFFECTS.get(wanted.course))]
    if wanted.cordoned and (record is None or not record.cordoned):
        operations.append({"op": "add", "path": "/spec/unschedulable", "value": True})
    until = f", gone at {wanted.deadline}" if wanted.deadline else ""
    note = Note(
        NODES,
        key,
        "NodeLeaving",
        f"{wanted.course.value}: {wanted.source}{until}.",
        uid=node.metadata.uid,
        is_warning=wanted.course in (Course.RECLAIM, Course.LOST),
    )
    is_news = record is None or (record.course, record.source) != (wanted.course, wanted.source)
    return Outcome((_patch(node, key, operations), *((note,) if is_news else ())))


def _withdraw(node: Node, key: Key, record: Record | None) -> Outcome:
    operations = [*_set_record(node, None), *_set_taint(node, None)]
    if record is not None and record.cordoned and node.spec.unschedulable:
        operations.append({"op": "remove", "path": "/spec/unschedulable"})
    text = "The notice was withdrawn." if record is not None else "What was noted here cannot be read: removed."
    note = Note(NODES, key, "NodeStays", text, uid=node.metadata.uid)
    return Outcome((_patch(node, key, operations), note))


def _set_record(node: Node, text: str | None) -> list[Operation]:
    path = "/metadata/annotations/" + RECORD.replace("/", "~1")
    if text is None:
        return [{"op": "remove", "path": path}] if RECORD in node.metadata.annotations else []
    if not node.metadata.annotations:
        return [{"op": "add", "path": "/metadata/annotations", "value": {RECORD: text}}]
    return [{"op": "add", "path": path, "value": text}]


def _set_taint(node: Node, effect: str | None) -> list[Operation]:
    """Other taints stay as they are: they have more in them than is read here. The last is taken out first."""
    present = [index for index, taint in enumerate(node.spec.taints) if taint.key == TAINT]
    if effect and [node.spec.taints[index].effect for index in present] == [effect]:
        return []
    operations: list[Operation] = [{"op": "remove", "path": f"/spec/taints/{index}"} for index in reversed(present)]
    if effect:
        taint = {"key": TAINT, "effect": effect}
        operations.append(
            {"op": "add", "path": "/spec/taints/-", "value": taint}
            if node.spec.taints
            else {"op": "add", "path": "/spec/taints", "value": [taint]}
        )
    return operations


def _patch(node: Node, key: Key, operations: list[Operation]) -> Patch:
    """At the version that was read: indexes and what is absent are as they were there."""
    version = {"op": "add", "path": "/metadata/resourceVersion", "value": node.metadata.resource_version}
    return Patch(NODES, key, PatchBody("json", [version, *operations]))
