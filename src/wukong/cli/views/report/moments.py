"""The story of a plan in moments that a slider can stop at: before the change, then one for each second in which
something happens, or for longer steps where there are many. Used by page.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from wukong.cli.views.story import Row, choose_step
from wukong.forecast.durations import format_seconds
from wukong.forecast.placement_history import PlacementHistory

MOST_ROWS = 300


class Moment(NamedTuple):
    """What has happened just before `end`; `at` is the last of it, where a chart has its cursor."""

    at: float
    end: float
    title: str


class Moments(NamedTuple):
    moments: list[Moment]
    rows: list[tuple[int, Row]]  # which moment, and what happens then
    step_name: str  # "" for seconds
    omitted_rows: int


def list_moments(history: PlacementHistory) -> Moments:
    """The last moment is the end of the story, and the first one what was before it."""
    step, step_name, rows = choose_step(history.events, MOST_ROWS)
    omitted, rows = max(0, len(rows) - MOST_ROWS), rows[:MOST_ROWS]
    latest = {int(event.at) // step * step: event.at for event in sorted(history.events, key=lambda event: event.at)}
    seconds = sorted({second for second, _, _ in rows})
    moments = [
        Moment(0.0, 0.0, "before the change"),
        *(Moment(latest[second], float(second + step), _name_moment(second)) for second in seconds),
    ]
    last = max((event.at for event in history.events), default=0.0)
    if omitted:
        moments.append(Moment(last, last + 1, "in the end"))
    # Whatever happens later than the last event is part of the end.
    moments[-1] = moments[-1]._replace(end=max(moments[-1].end, 1 + max(_list_times(history), default=0.0)))
    index = {second: number for number, second in enumerate(seconds, start=1)}
    return Moments(moments, [(index[row[0]], row) for row in rows], step_name, omitted)


def _list_times(history: PlacementHistory) -> Iterator[float]:
    yield from (span.at for pod in history.pods for span in pod.spans)
    yield from (span.at for node in history.nodes for span in node.spans)


def _name_moment(second: int) -> str:
    return f"after {format_seconds(second)}" if second else "at once"
