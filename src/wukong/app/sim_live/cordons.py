"""Cordons of nodes that are not the run's own: recorded before the first touch, and set back to exactly that.

    recorded     now          last set by          in the end
    schedulable  cordoned     this run             uncordoned
    schedulable  cordoned     somebody else        left: who cordoned it meanwhile wants it so
    cordoned     schedulable  this run             cordoned again
    cordoned     schedulable  somebody else        left
    as it is now                                   left

Called by real_cluster.py (a scenario's cordon, uncordon and drain) and cleanup.py. Who set the field last is what the
node's managedFields say: each run writes under a field manager of its own.
"""

from __future__ import annotations

import msgspec

from wukong.api.kinds import NODES
from wukong.api.resources import Key
from wukong.app.sim_live.ownership import uid_of
from wukong.errors import Conflict, InputError, NotFound
from wukong.ports import Cluster, Document, PatchBody

TRIES = 20  # kubelets write to their node as well; each of their writes costs one


class NodeRecord(msgspec.Struct):
    """A node before the run touched it, and what the run wrote last."""

    uid: str
    was_cordoned: bool
    last_write: bool | None = None  # cordoned or not; None: the node was so already, nothing was written


class Cordons:
    def __init__(self, cluster: Cluster, manager: str) -> None:
        self._cluster, self._manager = cluster, manager
        self.records: dict[str, NodeRecord] = {}  # by node

    async def set(self, name: str, *, is_cordoned: bool) -> None:
        """Cordon or uncordon a node, on the very version that was recorded. InputError if there is no such node."""
        for _ in range(TRIES):
            node = await self._read(name)
            if node is None:
                raise InputError(f"there is no Node {name}")
            record = self.records.get(name)
            if record is None or record.uid != uid_of(node):
                record = self.records[name] = NodeRecord(uid_of(node), _is_cordoned(node))
            if _is_cordoned(node) == is_cordoned:
                return
            before, record.last_write = record.last_write, is_cordoned  # first: the answer may get lost
            try:
                await self._write(node, is_cordoned)
            except Conflict:
                record.last_write = before
            else:
                return
        raise InputError(f"Node {name} changed {TRIES} times while it was to be {_state_of(is_cordoned)}")

    async def restore(self, name: str) -> str:
        """Set a node back to what was recorded. Returns why it is left otherwise; "" if it is as it was."""
        record = self.records[name]
        for _ in range(TRIES):
            node = await self._read(name)
            if node is None or uid_of(node) != record.uid or _is_cordoned(node) == record.was_cordoned:
                return ""
            if not self._was_set_here(record, node):
                return f"Node {name} was {_state_of(_is_cordoned(node))} by somebody else meanwhile, and stays so"
            try:
                await self._write(node, record.was_cordoned)
            except Conflict:
                continue
            return ""
        return f"Node {name} changed {TRIES} times while it was to be {_state_of(record.was_cordoned)}"

    def _was_set_here(self, record: NodeRecord, node: Document) -> bool:
        """Nobody owns a field that is not set: then what this run wrote last has to do."""
        if not _is_cordoned(node):
            return record.last_write is False
        return _managers_of_cordon(node) == {self._manager}

    async def _read(self, name: str) -> Document | None:
        try:
            node: Document = await self._cluster.get(NODES, Key("", name), dict)
        except NotFound:
            return None
        return node

    async def _write(self, node: Document, is_cordoned: bool) -> None:
        """Raises Conflict if the node has changed since it was read."""
        meta = node["metadata"]
        body = {
            "metadata": {"resourceVersion": meta["resourceVersion"]},
            "spec": {"unschedulable": True if is_cordoned else None},
        }
        await self._cluster.patch(NODES, Key("", meta["name"]), PatchBody("merge", body, manager=self._manager))


def _is_cordoned(node: Document) -> bool:
    return bool((node.get("spec") or {}).get("unschedulable"))


def _state_of(is_cordoned: bool) -> str:
    return "cordoned" if is_cordoned else "uncordoned"


def _managers_of_cordon(node: Document) -> set[str]:
    entries = node["metadata"].get("managedFields") or ()
    return {
        entry["manager"]
        for entry in entries
        if "f:unschedulable" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
    }
