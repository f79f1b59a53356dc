"""NodeResourcesBalancedAllocation: prefers nodes whose resources end up (or become) evenly used."""

from __future__ import annotations

import numpy as np

from wukong.engine.arrays import Floats, Ints, Mask, Rows, select_lines
from wukong.engine.plugin import MAX_SCORE, Load, Plugin, Scope, ScorePart
from wukong.engine.requests import is_counted
from wukong.engine.snapshot import Snapshot
from wukong.engine.view import View


class BalancedAllocation(Plugin):
    name = "NodeResourcesBalancedAllocation"

    def score(self, view: View) -> ScorePart | None:
        needed = view.template.requests.needed
        resources = [entry.name for entry in view.profile.balanced_resources]
        if not any(needed.get(name, 0) for name in resources):
            return None  # a pod that asks for nothing would pile up on one node
        chosen = [name for name in resources if needed.get(name, 0) or not is_counted(name)]
        view.snapshot.ensure_lines(chosen)
        return BalanceScore(view.snapshot, chosen, needed, view.profile.version.balance_rewards_improvement)


class BalanceScore(ScorePart):
    scope = Scope.LOAD

    def __init__(
        self, snapshot: Snapshot, resources: list[str], needed: dict[str, int], rewards_improvement: bool
    ) -> None:
        self.snapshot = snapshot
        self.lines = np.array([snapshot.lines[name] for name in resources], dtype=np.intp)
        self.amounts = np.array([needed.get(name, 0) for name in resources], dtype=np.int64)[:, None]
        self.rewards_improvement = rewards_improvement

    def raw(self, rows: Rows, load: Load) -> Ints:
        room = select_lines(self.snapshot.room, self.lines, rows)  # [resource, node]
        used = load.lines[self.lines]
        has_room = room > 0
        after = _score_evenness(used + self.amounts, room, has_room)
        if not self.rewards_improvement:
            return after
        change: Ints = MAX_SCORE // 2 + (MAX_SCORE // 2 + after - _score_evenness(used, room, has_room)) // 2
        return change


def _score_evenness(used: Ints, room: Ints, has_room: Mask) -> Ints:
    """100 when all resources are used to the same fraction, less the further apart they are."""
    if has_room.all():
        fractions = np.minimum(used / room, 1.0)
        if len(room) == 2:
            spread = np.abs((fractions[0] - fractions[1]) / 2)
            return _to_points(spread)
    fractions = np.where(has_room, np.minimum(used / np.where(has_room, room, 1), 1.0), 0.0)
    counted = has_room.sum(axis=0)
    total = np.zeros(room.shape[1])
    for line in fractions:  # one after the other: float sums depend on the order
        total = total + line
    mean = total / np.maximum(counted, 1)
    squares = np.zeros(room.shape[1])
    for line, counts in zip(fractions, has_room, strict=True):
        squares = squares + np.where(counts, (line - mean) * (line - mean), 0.0)
    deviation = np.where(counted > 2, np.sqrt(squares / np.maximum(counted, 1)), 0.0)
    deviation = np.where(counted == 2, _half_distance(fractions, has_room), deviation)
    return _to_points(deviation)


def _to_points(deviation: Floats) -> Ints:
    points: Ints = ((1 - deviation) * MAX_SCORE).astype(np.int64)
    return points


def _half_distance(fractions: Floats, has_room: Mask) -> Floats:
    """Half the difference of the (two) fractions that count."""
    highest = np.where(has_room, fractions, -np.inf).max(axis=0)
    lowest = np.where(has_room, fractions, np.inf).min(axis=0)
    with np.errstate(invalid="ignore"):
        half: Floats = np.abs((highest - lowest) / 2)
    return half
