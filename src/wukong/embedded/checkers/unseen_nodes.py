"""Nodes that a DaemonSet's controller did not know when it last decided: the pods on them are not in its status.

Asked by counts.py at rest. kube-controller-manager tells a DaemonSet of a node only where a pod has to come or go, or
one is misscheduled. A node that was removed and comes again before its pods are is neither, so the status stays as it
was without the node: tests/live/test_late_daemon_sets.py shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from wukong.actions import Action
from wukong.api.kinds import NODES
from wukong.api.resources import Key
from wukong.embedded.world.process import Process
from wukong.embedded.world.world import World
from wukong.runtime.dispatch import Item
from wukong.state import Change
from wukong.state.controller import PodRight, pod_rights_of

NONE: frozenset[str] = frozenset()


class UnseenNodes:
    kinds: ClassVar[frozenset[str]] = frozenset({NODES.group_kind})

    def __init__(self, world: World) -> None:
        self.world = world
        self._removed: dict[str, None] = {}  # names of nodes that were removed; they may have come again
        # DaemonSet → process → those of the removed nodes that were not in its mirror when it last decided
        self._unseen: dict[Key, dict[Process, frozenset[str]]] = {}

    def fork(self, world: World) -> UnseenNodes:
        """For a copy of a world with one process."""
        copy = UnseenNodes(world)
        copies = dict(zip(self.world.processes, world.processes, strict=True))
        copy._removed = dict(self._removed)
        copy._unseen = {
            key: {copies[process]: nodes for process, nodes in by_process.items()}
            for key, by_process in self._unseen.items()
        }
        return copy

    def observe(self, change: Change) -> None:
        if change.new is None and change.group_kind == NODES.group_kind:
            self._removed[change.key.name] = None

    def observe_decision(self, process: Process, item: Item, _: Sequence[Action]) -> None:
        if not self._removed:
            return
        controller = process.dispatch.controllers[item.controller]
        if PodRight.CREATE_ONE_PER_NODE not in pod_rights_of(controller):
            return
        mirrored = process.state.objects.get(NODES.group_kind, {})
        by_process = self._unseen.setdefault(item.key, {})
        by_process.pop(process, None)  # the latest decision comes last
        by_process[process] = frozenset(name for name in self._removed if Key("", name) not in mirrored)

    def of(self, daemon_set: Key) -> frozenset[str]:
        """By the latest decision of a process that is still there."""
        by_process = self._unseen.get(daemon_set, {})
        return next((by_process[process] for process in reversed(by_process) if process in self.world.processes), NONE)
