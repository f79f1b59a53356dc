"""NodeResourcesFit: requests must fit into what is left; the scoring strategy prefers emptier or fuller nodes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wukong.api.profile import FitArguments, ShapePoint
from wukong.api.quantity import format_amount
from wukong.engine.arrays import Ints, Mask, Rows, select_lines
from wukong.engine.plugin import MAX_SCORE, FilterPart, Load, Plugin, Reason, Scope, ScorePart, count_nodes
from wukong.engine.refusal_detail import RefusalDetail
from wukong.engine.requests import is_counted
from wukong.engine.snapshot import NONZERO_CPU, NONZERO_MEMORY, PODS, Snapshot
from wukong.engine.view import View

TOO_MANY_PODS = Reason("Too many pods", is_final=False)


class NodeResourcesFit(Plugin):
    name = "NodeResourcesFit"

    def filter(self, view: View) -> FilterPart:
        return ResourceFilter(view.snapshot, list_needed_lines(view), view.profile.version.too_small_is_final)

    def score(self, view: View) -> ScorePart:
        return AllocationScore(view.snapshot, view.profile.fit, view.template.requests.scored)


def list_needed_lines(view: View) -> list[tuple[str, int, int]]:
    """Resource, its line and how much of it the pod needs, for what must fit; extended resources by name."""
    arguments, line_of = view.profile.fit, view.snapshot.line_of
    wanted = {
        name: amount
        for name, amount in view.template.requests.needed.items()
        if amount > 0 and not (_is_extended(name) and _is_ignored(name, arguments))
    }
    ordered = sorted(wanted, key=lambda name: (is_counted(name), 0 if is_counted(name) else line_of(name), name))
    return [(name, line_of(name), wanted[name]) for name in ordered]


def _is_extended(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def _is_ignored(name: str, arguments: FitArguments) -> bool:
    return name in arguments.ignored_resources or name.split("/", maxsplit=1)[0] in arguments.ignored_resource_groups


class ResourceFilter(FilterPart):
    scope = Scope.LOAD

    def __init__(self, snapshot: Snapshot, needed: list[tuple[str, int, int]], too_small_is_final: bool) -> None:
        self.snapshot = snapshot
        self.too_small_is_final = too_small_is_final
        self.lines = np.array([PODS, *(line for _, line, _ in needed)], dtype=np.intp)
        self.amounts = np.array([1, *(amount for _, _, amount in needed)], dtype=np.int64)[:, None]
        self.names = [name for name, _, _ in needed]
        self.reasons = [TOO_MANY_PODS, *(Reason(f"Insufficient {name}", is_final=False) for name, _, _ in needed)]

    def find_short(self, rows: Rows, load: Load) -> Mask:
        """[resource, node] whether there is too little left."""
        room = select_lines(self.snapshot.room, self.lines, rows)
        short: Mask = load.lines[self.lines] + self.amounts > room
        return short

    def failing(self, rows: Rows, load: Load) -> list[tuple[Reason, Mask]]:
        return list(zip(self.reasons, self.find_short(rows, load), strict=True))

    def allows(self, row: int, snapshot: Snapshot) -> bool:
        left = snapshot.room[self.lines, row] - snapshot.load[self.lines, row]
        return bool((left >= self.amounts[:, 0]).all())

    def describe(self, rows: list[int]) -> dict[int, list[RefusalDetail]]:
        return {row: list(self._describe_node(row)) for row in rows}

    def _describe_node(self, row: int) -> Iterator[RefusalDetail]:
        room, load = self.snapshot.room[self.lines, row].tolist(), self.snapshot.load[self.lines, row].tolist()
        if load[0] + 1 > room[0]:
            yield RefusalDetail("podLimit", "runs as many pods as it may", value=f"{room[0]}", actual=room[0])
        amounts = self.amounts[1:, 0].tolist()
        for name, amount, has, used in zip(self.names, amounts, room[1:], load[1:], strict=True):
            if used + amount > has:
                fields = (("resource", name), ("requested", format_amount(name, amount)))
                if has:
                    yield RefusalDetail("resource", f"lacks {name}", fields, missing=used + amount - has)
                else:
                    yield RefusalDetail("resource", f"has no {name}", fields)

    def find_unresolvable(self, rows: Rows, load: Load) -> Mask:
        """A node that is too small even when empty: no preemption helps there."""
        if not self.too_small_is_final:
            return np.zeros(count_nodes(rows, load), dtype=np.bool_)
        too_small = self.amounts[1:] > select_lines(self.snapshot.room, self.lines[1:], rows)
        unresolvable: Mask = np.logical_or.reduce(too_small, axis=0)
        return unresolvable


class AllocationScore(ScorePart):
    scope = Scope.LOAD

    def __init__(self, snapshot: Snapshot, arguments: FitArguments, scored: dict[str, int]) -> None:
        self.snapshot = snapshot
        chosen = [entry for entry in arguments.resources if scored.get(entry.name, 0) or not is_counted(entry.name)]
        snapshot.ensure_lines(entry.name for entry in chosen)
        lines = [_score_line(snapshot, entry.name) for entry in chosen]
        self.lines = np.array(lines, dtype=np.intp)
        self.amounts = np.array([scored.get(entry.name, 0) for entry in chosen], dtype=np.int64)[:, None]
        self.weights = np.array([entry.weight for entry in chosen], dtype=np.int64)[:, None]
        self.strategy = arguments.strategy
        self.shape = arguments.shape
        self.weight_sum = int(self.weights.sum())

    def raw(self, rows: Rows, load: Load) -> Ints:
        room = select_lines(self.snapshot.room, self.lines, rows)  # [resource, node]
        used = load.lines[self.lines] + self.amounts
        has_room = room > 0
        safe = room if has_room.all() else np.where(has_room, room, 1)
        if self.strategy == "RequestedToCapacityRatio":
            return self._score_ratio(used, safe, has_room)
        if self.strategy == "LeastAllocated":
            scores = np.maximum(safe - used, 0) * MAX_SCORE // safe
        else:
            scores = np.minimum(used, safe) * MAX_SCORE // safe
        if safe is room:
            total: Ints = (scores * self.weights).sum(axis=0) // max(self.weight_sum, 1)
            return total
        weights = np.where(has_room, self.weights, 0)
        mixed: Ints = (scores * weights).sum(axis=0) // np.maximum(weights.sum(axis=0), 1)
        return mixed

    def _score_ratio(self, used: Ints, room: Ints, has_room: Mask) -> Ints:
        percent = np.where(used > room, 100, used * 100 // room)
        scores = interpolate(percent, self.shape)
        weights = np.where(has_room & (scores > 0), self.weights, 0)
        sums = weights.sum(axis=0)
        average = (scores * weights).sum(axis=0) / np.maximum(sums, 1)
        rounded: Ints = np.floor(average + 0.5).astype(np.int64)
        return rounded


def _score_line(snapshot: Snapshot, resource: str) -> int:
    """Scores count cpu and memory with defaults for pods that ask for none."""
    return {"cpu": NONZERO_CPU, "memory": NONZERO_MEMORY}.get(resource, snapshot.lines[resource])


def interpolate(percent: Ints, shape: tuple[ShapePoint, ...]) -> Ints:
    """The value at `percent` of the line through the shape's points, in integers that round toward zero; scores ×10."""
    result = np.full_like(percent, shape[-1].score * 10)
    for left, right in zip(shape[-2::-1], shape[:0:-1], strict=True):
        rise = (right.score - left.score) * 10 * (percent - left.utilization)
        run = right.utilization - left.utilization
        value = left.score * 10 + np.sign(rise) * (np.abs(rise) // run)
        result = np.where(percent <= right.utilization, value, result)
    return np.where(percent <= shape[0].utilization, shape[0].score * 10, result)
