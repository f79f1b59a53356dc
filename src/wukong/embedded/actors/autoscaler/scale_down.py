"""Which nodes nobody needs: little of them is in use, and all their pods would fit elsewhere. Called by controller.py.

As cluster-autoscaler plans it: empty nodes first, then those that were unneeded before, then the others by name, at
most thirty with pods at a time. A node that could go is left out when the next one is tried, and what its pods take
elsewhere is counted there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

import numpy as np

from wukong.api.apps import PodDisruptionBudget
from wukong.api.resources import Key
from wukong.embedded.actors.autoscaler.pod_rules import find_blocker, goes_with_node, list_moving, without_node
from wukong.embedded.actors.disruption.budget_index import BudgetIndex
from wukong.embedded.world.objects import Node, Pod
from wukong.engine import Scheduler, Snapshot
from wukong.engine.snapshot import PlacedPod
from wukong.state import State

MOST_UTILISED = 0.5  # of cpu or of memory: what is in use at more than that stays
MOST_WITH_PODS = 30  # scale-down-non-empty-candidates-count


class UnneededNode(NamedTuple):
    node: Node
    is_empty: bool


class Review(NamedTuple):
    """The nodes that could all go, and the names of those that could not, their pods having no other place."""

    unneeded: list[UnneededNode]
    kept: list[str]


def find_underused(snapshot: Snapshot, nodes: Iterable[Node]) -> list[Node]:
    """Those of which at most half of the cpu and of the memory is asked for. What has neither is not in use."""
    lines = [snapshot.lines[name] for name in ("cpu", "memory")]
    room = snapshot.room[lines]
    shares = np.where(room > 0, snapshot.load[lines] / np.maximum(room, 1), 0.0).max(axis=0)
    return [
        node
        for node in nodes
        if (row := snapshot.row_of.get(node.metadata.name)) is not None and shares[row] <= MOST_UTILISED
    ]


def review_nodes(
    snapshot: Snapshot, state: State, candidates: list[Node], before: Collection[str], barred_rows: Collection[int]
) -> Review:
    """`snapshot` may be changed. `before` are the names of nodes that were unneeded before; `barred_rows` are the nodes
    to which nobody can move."""
    removal = _Removal(snapshot, state, barred_rows)
    moving = {node.metadata.name: list_moving(state, node.metadata.name) for node in candidates}
    ordered = sorted(
        candidates, key=lambda node: (bool(moving[node.metadata.name]), node.metadata.name not in before, node.key)
    )
    review, tried = Review([], []), 0
    for node in ordered:
        pods = moving[node.metadata.name]
        tried += bool(pods)
        if tried > MOST_WITH_PODS:
            break
        if removal.try_node(node, pods):
            review.unneeded.append(UnneededNode(node, not pods))
        else:
            review.kept.append(node.metadata.name)
    return review


class _Removal:
    """Takes one node after the other out of a snapshot, if its pods fit elsewhere."""

    def __init__(self, snapshot: Snapshot, state: State, barred_rows: Collection[int]) -> None:
        self.snapshot, self.state, self.scheduler = snapshot, state, Scheduler(snapshot)
        self.barred = np.zeros(len(snapshot.rows), dtype=np.bool_)
        self.barred[list(barred_rows)] = True
        self.allowed: dict[Key, int] = {}  # budget → how many disruptions are left, after those of nodes before

    def try_node(self, node: Node, pods: list[Pod]) -> bool:
        staying = [pod for pod in pods if not pod.is_terminating]
        if any(find_blocker(pod, self.state) for pod in staying) or not self._is_allowed(staying):
            return False
        row = self.snapshot.row_of[node.metadata.name]
        self.barred[row] = True
        if self._move_all(row):
            for key in self._list_budgets(staying):
                self.allowed[key] = self._disruptions_left(key) - 1
            return True
        self.barred[row] = False
        return False

    def _list_budgets(self, pods: Iterable[Pod]) -> list[Key]:
        index = self.state.index_of(BudgetIndex)
        return [key for pod in pods for key in index.of(pod)]

    def _disruptions_left(self, key: Key) -> int:
        if key in self.allowed:
            return self.allowed[key]
        budget = self.state.get(PodDisruptionBudget, key)
        return budget.status.disruptions_allowed if budget is not None else 0

    def _is_allowed(self, pods: Iterable[Pod]) -> bool:
        """Each budget of these pods lets at least one go: they may leave one after the other."""
        return all(self._disruptions_left(key) >= 1 for key in self._list_budgets(pods))

    def _move_all(self, row: int) -> bool:
        """Move what the snapshot has on this row and a controller would make again. All of it, or nothing."""
        moved: list[tuple[str, PlacedPod]] = []
        for key in list(self.snapshot.on_row.get(row, ())):
            pod = self._find_pod(key)
            if pod is None:
                continue
            moved.append((key, self.snapshot.forget(key)))
            target = self._find_target(pod)
            if target is None:
                self._take_back(moved)
                return False
            self.snapshot.assume_template(key, moved[-1][1].template, target)
        return True

    def _find_pod(self, key: str) -> Pod | None:
        """The pod with this key in the snapshot, if it has to move with its node: neither a daemon nor on its way."""
        namespace, _, name = key.rpartition("/")
        pod = self.state.get(Pod, Key(namespace, name))
        return None if pod is None or pod.is_terminating or goes_with_node(pod) else pod

    def _find_target(self, pod: Pod) -> int | None:
        view = self.scheduler.view_of(without_node(pod))
        view.sync()
        rows = np.flatnonzero(view.feasible & ~self.barred)
        return int(rows[0]) if len(rows) else None

    def _take_back(self, moved: list[tuple[str, PlacedPod]]) -> None:
        for key, placed in moved:
            if key in self.snapshot.pods:
                self.snapshot.forget(key)
            self.snapshot.assume_template(key, placed.template, placed.row, placed.start)
