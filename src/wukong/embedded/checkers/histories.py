"""Histories of objects only go forward."""

from __future__ import annotations

from wukong.api.core import Pod
from wukong.api.meta import Object
from wukong.embedded.checkers.findings import Findings
from wukong.state import Change

REMEMBERED = 100_000


class Histories:
    def __init__(self, desk: Findings) -> None:
        self.desk = desk
        self._gone: dict[str, None] = {}  # uids of what is no more, as far back as we remember

    def hear(self, change: Change) -> None:
        old, new = change.old, change.new
        if new is None:
            assert old is not None
            self._gone[old.metadata.uid] = None
            if len(self._gone) > REMEMBERED:
                del self._gone[next(iter(self._gone))]
        elif old is None:
            if new.metadata.uid in self._gone:
                self._note(change, f"is back with the uid {new.metadata.uid} of one that was gone")
        elif old is not new:
            self._compare(change, old, new)

    def _compare(self, change: Change, old: Object, new: Object) -> None:
        was, now = old.metadata, new.metadata
        if now.uid != was.uid:
            self._note(change, f"changed its uid from {was.uid} to {now.uid}")
        if int(now.resource_version or 0) <= int(was.resource_version or 0):
            self._note(change, f"went from version {was.resource_version} back to {now.resource_version}")
        if now.generation < was.generation:
            self._note(change, f"went from generation {was.generation} back to {now.generation}")
        if was.deletion_timestamp and not now.deletion_timestamp:
            self._note(change, "was being deleted and is no more")
        if isinstance(old, Pod) and isinstance(new, Pod):
            if old.is_finished and new.status.phase != old.status.phase:
                self._note(change, f"was over ({old.status.phase}) and is {new.status.phase} again")
            if old.spec.node_name and new.spec.node_name != old.spec.node_name:
                self._note(change, f'moved from node {old.spec.node_name} to "{new.spec.node_name}"')

    def _note(self, change: Change, text: str) -> None:
        self.desk.note(f"{change.kind.lower()} {change.key}", text)
