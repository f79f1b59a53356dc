"""The load controller: keeps the usage of every node on its labels, so that plain node affinity can prefer quiet nodes.

What a label should be is decided in usage_labels.py; the numbers are NodeUsages, watched like any object. It writes
nothing but those labels. When it last changed a node it remembers itself: after a restart a label may move once early.
"""

from __future__ import annotations

from wukong.actions import DONE, Outcome, Patch
from wukong.api.core import Node
from wukong.api.kinds import NODE_USAGES, NODES
from wukong.api.resources import Key
from wukong.api.usage import NodeUsage
from wukong.controllers.load.usage_labels import Settings, plan_labels
from wukong.ports import PatchBody
from wukong.state import State
from wukong.state.controller import Watch


class Load:
    name = "load"
    watches = (Watch(NODES), Watch(NODE_USAGES))  # both are named after the node

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self._changed_at: dict[str, float] = {}

    def copy_memory(self, source: Load, _: State) -> None:
        self._changed_at = dict(source._changed_at)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        node = state.get(Node, key)
        if node is None:
            self._changed_at.pop(key.name, None)
            return DONE
        plan = plan_labels(
            node.metadata.labels, state.get(NodeUsage, key), self._changed_at.get(key.name), self.settings, now
        )
        if not plan.labels:
            return Outcome(requeue_after=plan.again_after)
        self._changed_at[key.name] = now
        body = {"metadata": {"labels": plan.labels}}
        return Outcome((Patch(NODES, key, PatchBody("merge", body)),), requeue_after=plan.again_after)
