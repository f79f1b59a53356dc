"""Histories of objects only go forward.

A pod that has finished stays so, but for who has not heard of it: neither the API server nor a kubelet that is behind
keeps the phase that another has written, in any cluster.
"""

from __future__ import annotations

from wukong.api.core import Pod
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.embedded.checkers.acting_controller import acting_controller
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
            if change.key in self.findings.world.state.unreadable.get(change.group_kind, ()):
                return  # it is there, and may become readable again
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
            if old.is_finished and new.status.phase != old.status.phase and not self._is_unaware(change.key, old):
                self._report(change, f"was over ({old.status.phase}) and is {new.status.phase} again")
            if old.spec.node_name and new.spec.node_name != old.spec.node_name:
                self._report(change, f'moved from node {old.spec.node_name} to "{new.spec.node_name}"')

    def _is_unaware(self, key: Key, pod: Pod) -> bool:
        """Whether a process writes whose own mirror does not show yet that this pod has finished."""
        actor, world = acting_controller(self.findings.world), self.findings.world
        if actor is None or actor.process.state is world.state:
            return False
        mirrored = actor.process.state.get(Pod, key)
        return mirrored is None or mirrored.metadata.uid != pod.metadata.uid or not mirrored.is_finished

    def _report(self, change: Change, text: str) -> None:
        self.findings.report(f"{change.kind.lower()} {change.key}", text)
