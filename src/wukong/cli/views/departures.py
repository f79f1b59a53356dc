"""Shows leaving nodes and Moves, and what would become of the pods of a node that got notice.

Called by `wukong spot` and `wukong get moves`.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.api.resources import key_of
from wukong.api.spot import Move
from wukong.cli.views.console import Part, count
from wukong.cli.views.table import Table
from wukong.controllers.spot.evictions import must_leave
from wukong.controllers.spot.plan import PlannedMove
from wukong.controllers.spot.records import LeavingNodes
from wukong.state import State


def build_plan_view(nodes: list[str], moves: list[PlannedMove], *, is_wide: bool) -> list[Part]:
    table = Table("POD", "HOW", "TO", "WHY", names=["POD", "TO"], is_wide=is_wide)
    for move in moves:
        table.add_row(move.pod.key, move.way.value, move.room.node or "-", _explain(move))
    unsafe = sum(not move.is_safe for move in moves)
    head = f"{', '.join(nodes)}: {count(len(moves), 'pod')} to leave, {unsafe or 'none'} without a place to go."
    return [head, *([table] if moves else [])]


def build_plan_document(nodes: list[str], moves: list[PlannedMove]) -> dict[str, object]:
    items = [
        {
            "pod": move.pod.key,
            "way": move.way.name,
            "to": move.room.node,
            "isSafe": move.is_safe,
            "victims": list(move.room.victims),
            "stranded": list(move.room.stranded),
            "reason": move.reason,
        }
        for move in moves
    ]
    return {"kind": "DeparturePlan", "nodes": nodes, "items": items}


def _explain(move: PlannedMove) -> str:
    texts = []
    if move.room.victims:
        texts.append(f"would preempt {', '.join(move.room.victims)}")
    if move.room.stranded:
        texts.append(f"no node has room for {', '.join(move.room.stranded)} then")
    return "; ".join([*texts, *([move.reason] if move.reason else [])])


def build_status_view(state: State, now: float, *, is_wide: bool) -> list[Part]:
    records = state.index_of(LeavingNodes).records
    if not records:
        parts: list[Part] = ["No node leaves."]
    else:
        table = Table(
            "NODE", "COURSE", "LEFT", "PODS", "SOURCE", whole=["LEFT", "PODS"], names=["NODE"], is_wide=is_wide
        )
        for name, record in sorted(records.items()):
            deadline = record.deadline_at
            left = "-" if deadline is None else f"{max(0, round(deadline - now))}s"
            table.add_row(name, record.course.value, left, str(_count_pods(name, state)), record.source)
        parts = [table]
    moves = state.all(Move)
    return [*parts, *([build_moves_view(moves, all_namespaces=True, is_wide=is_wide)] if moves else [])]


def build_status_document(state: State) -> dict[str, object]:
    records = state.index_of(LeavingNodes).records
    nodes = [
        {
            "name": name,
            "course": record.course.value,
            "source": record.source,
            "seen": record.seen,
            "deadline": record.deadline,
            "pods": _count_pods(name, state),
        }
        for name, record in sorted(records.items())
    ]
    return {"kind": "SpotStatus", "nodes": nodes, "moves": build_moves_document(state.all(Move))["items"]}


def build_moves_view(moves: Iterable[Move], *, all_namespaces: bool, is_wide: bool) -> Table:
    headings = (*(("NAMESPACE",) if all_namespaces else ()), "MOVE", "REPLICAS", "PODS", "FROM", "PHASE", "MESSAGE")
    table = Table(*headings, whole=["REPLICAS", "PODS"], names=["NAMESPACE", "MOVE", "FROM"], is_wide=is_wide)
    for move in moves:
        key, spec = key_of(move), move.spec
        nodes = ", ".join(sorted({pod.node for pod in spec.pods}))
        cells = (f"{spec.original}→{spec.surged}", str(len(spec.pods)), nodes, move.status.phase or "New")
        table.add_row(*((key.namespace,) if all_namespaces else ()), key.name, *cells, move.status.message)
    return table


def build_moves_document(moves: Iterable[Move]) -> dict[str, object]:
    items = [
        {
            "namespace": key_of(move).namespace,
            "name": key_of(move).name,
            "original": move.spec.original,
            "surged": move.spec.surged,
            "pods": [{"name": pod.name, "node": pod.node} for pod in move.spec.pods],
            "phase": move.status.phase,
            "message": move.status.message,
            "expires": move.spec.expires,
        }
        for move in moves
    ]
    return {"kind": "MoveList", "items": items}


def _count_pods(node: str, state: State) -> int:
    return sum(must_leave(pod) for pod in state.pods_on(node))
