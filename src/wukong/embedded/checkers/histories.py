"""Histories of objects only go forward."""

from __future__ import annotations

from wukong.api.core import Pod
from wukong.api.meta import Object
from wukong.embedded.checkers.findings import Findings
from wukong.state import Change

MOST_REMEMBERED = 100_000


class Histories:
    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self._removed: dict[str, None] = {}  # uids of removed objects, the latest of them

    def fork(self, findings: Findings) -> Histories:
        copy = Histories(findings)
        copy._removed = dict(self._removed)
        return copy

    def observe(self, change: Change) -> None:
        old, new = change.old, change.new
        if new is None:
            assert old is not None
            self._removed[old.metadata.uid] = None
            if len(self._removed) > MOST_REMEMBERED:
                del self._removed[next(iter(self._removed))]
        elif old is None:
            if new.metadata.uid in self._removed:
                self._report(change, f"is back with the uid {new.metadata.uid} of one that was gone")
        elif old is not new:
            self._compare(change, old, new)

    def _compare(self, change: Change, old: Object, new: Object) -> None:
        before, after = old.metadata, new.metadata
        if after.uid != before.uid:
            self._report(change, f"changed its uid from {before.uid} to {after.uid}")
        if int(after.resource_version or 0) <= int(before.resource_version or 0):
            self._report(change, f"went from version {before.resource_version} back to {after.resource_version}")
        if after.generation < before.generation:
            self._report(change, f"went from generation {before.generation} back to {after.generation}")
        if before.deletion_timestamp and not after.deletion_timestamp:
            self._report(change, "was being deleted and is no more")
        if isinstance(old, Pod) and isinstance(new, Pod):
            if old.is_finished and new.status.phase != old.status.phase:
                self._report(change, f"was over ({old.status.phase}) and is {new.status.phase} again")
            if old.spec.node_name and new.spec.node_name != old.spec.node_name:
                self._report(change, f'moved from node {old.spec.node_name} to "{new.spec.node_name}"')

    def _report(self, change: Change, text: str) -> None:
        self.findings.report(f"{change.kind.lower()} {change.key}", text)
