"""Shows what became of notices and of the pods of their nodes. Called by `wukong spot history`."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable

import msgspec

from wukong.api.node_notices import NodeNotice
from wukong.api.times import parse_time
from wukong.cli.views.console import Part, count
from wukong.cli.views.table import Table
from wukong.controllers.spot.ways import LEFT, LOST, OUR_WAYS, STAYED

WAYS = (*OUR_WAYS, LEFT, LOST, STAYED)


def build_history_view(notices: list[NodeNotice], *, is_wide: bool) -> list[Part]:
    """The newest last, as in a log."""
    headings = ("SEEN", "NODE", "COURSE", "NOTICE", "PODS", "HOW THEY LEFT", "EMPTY", "SHORT", "BECAME", "SOURCE")
    table = Table(*headings, whole=["NOTICE", "PODS", "EMPTY", "SHORT"], names=["NODE"], is_wide=is_wide)
    for notice in notices:
        spec, status = notice.spec, notice.status
        table.add_row(
            *(spec.seen or "-", spec.node, spec.course, _subtract(spec.deadline, spec.seen), str(status.total)),
            *(_describe_ways(notice), _subtract(status.emptied, spec.seen), f"{status.short_seconds}s"),
            *(status.outcome or status.phase or "-", spec.source),
        )
    return [table, _sum_up(notices)]


def build_pods_view(notice: NodeNotice, *, is_wide: bool) -> list[Part]:
    """The pods of one notice, and the workloads that were short."""
    spec, status = notice.spec, notice.status
    head = f"{spec.node}: {spec.course} ({spec.source}) seen {spec.seen}; {status.outcome or status.phase or 'new'}."
    table = Table("POD", "WORKLOAD", "WAY", "AFTER", whole=["AFTER"], names=["POD", "WORKLOAD"], is_wide=is_wide)
    for pod in status.pods:
        table.add_row(f"{pod.namespace}/{pod.name}", pod.workload or "-", pod.way or "-", _subtract(pod.at, spec.seen))
    short = [f"{it.namespace}/{it.workload}: short by {it.seconds} replica-seconds." for it in status.shortages]
    return [head, *([table] if status.pods else []), *short]


def build_history_document(notices: Iterable[NodeNotice]) -> dict[str, object]:
    items = []
    for notice in notices:
        ways = _count_ways(notice)
        spec, status = msgspec.to_builtins(notice.spec), msgspec.to_builtins(notice.status)
        pods, shortages = status.pop("pods", []), status.pop("shortages", [])
        counts = {way: ways[way] for way in WAYS}
        items.append({"name": notice.metadata.name, **spec, **status, **counts, "pods": pods, "shortages": shortages})
    return {"kind": "NoticeHistory", "items": items}


def _sum_up(notices: list[NodeNotice]) -> str:
    ways = sum((_count_ways(notice) for notice in notices), Tally[str]())
    short = sum(notice.status.short_seconds for notice in notices)
    moved = sum(ways[way] for way in OUR_WAYS)
    return f"{count(len(notices), 'notice')}: {moved} pods moved, {ways[LOST]} lost, {short} replica-seconds short."


def _describe_ways(notice: NodeNotice) -> str:
    ways = _count_ways(notice)
    waiting = sum(not pod.way for pod in notice.status.pods)
    texts = [f"{ways[way]} {way}" for way in WAYS if ways[way]]
    return ", ".join([*texts, *([f"{waiting} still there"] if waiting else [])]) or "-"


def _count_ways(notice: NodeNotice) -> Tally[str]:
    return Tally(pod.way for pod in notice.status.pods if pod.way)


def _subtract(later: str, earlier: str) -> str:
    """Seconds between two times; "-" where one of them is not known."""
    end, start = parse_time(later), parse_time(earlier)
    return "-" if end is None or start is None else f"{round(end - start)}s"
