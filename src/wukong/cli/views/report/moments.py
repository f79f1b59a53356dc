"""The story of a plan in moments that a slider can stop at: before the change, then one for each tenth of a second in
which something happens, or for longer steps where there are many. Used by page.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from wukong.cli.views.story import STEPS, choose_step, rows_of
from wukong.embedded.scenario.record.story import Event
from wukong.forecast.durations import format_seconds
from wukong.forecast.placement_history import PlacementHistory

MOST_ROWS, MOST_FINE_ROWS = 300, 100
_TENTH = 0.1


class Moment(NamedTuple):
    """What has happened just before `end`; `at` is the last of it, where a chart has its cursor."""

    at: float
    end: float
    title: str


class StoryRow(NamedTuple):
    """Something that happens within the step of a moment, which is named by its number."""

    moment: int
    second: float
    subject: str
    text: str


class Moments(NamedTuple):
    moments: list[Moment]
    rows: list[StoryRow]
    step_name: str  # "" for a second or less
    omitted_rows: int


def list_moments(history: PlacementHistory) -> Moments:
    """The last moment is the end of the story, and the first one what was before it."""
    step, step_name, every_row = _choose_rows(history.events)
    rows, omitted = every_row[:MOST_ROWS], max(0, len(every_row) - MOST_ROWS)
    latest = {_begin_step(event.at, step): event.at for event in sorted(history.events, key=lambda event: event.at)}
    moments = [
        Moment(0.0, 0.0, "before the change"),
        *(Moment(at, round(second + step, 1), _name_moment(second)) for second, at in latest.items()),
    ]
    # Whatever happens later than the last event is part of the end.
    moments[-1] = moments[-1]._replace(end=max(moments[-1].end, 1 + max(_list_times(history), default=0.0)))
    numbers = {second: number for number, second in enumerate(latest, start=1)}
    return Moments(moments, [StoryRow(numbers[row[0]], *row) for row in rows], step_name, omitted)


def _choose_rows(events: Sequence[Event]) -> tuple[float, str, list[tuple[float, str, str]]]:
    """Step, its name and the rows: in tenths of seconds while these are few, in longer steps where they are many.

    Where they are too many in any step, it is the number of moments that counts.
    """
    tenths = [Event(_begin_step(event.at, _TENTH) * 10, event.subject, event.text) for event in events]
    fine_rows = rows_of(tenths)
    if len(fine_rows) <= MOST_FINE_ROWS:
        return _TENTH, "", [(round(tenth / 10, 1), subject, text) for tenth, subject, text in fine_rows]
    step, step_name, rows = choose_step(events, MOST_ROWS)
    if len(rows) > MOST_ROWS:
        seconds = {int(event.at) for event in events}
        fitting = (entry for entry in STEPS if len({second // entry[0] for second in seconds}) <= MOST_FINE_ROWS)
        step, step_name = next(fitting, STEPS[-1])
        rows = rows_of(events, step)
    return float(step), step_name, [(float(second), subject, text) for second, subject, text in rows]


def _begin_step(at: float, step: float) -> float:
    """When the step began that this moment is in. Tenths are counted as whole numbers: 0.3 is none in binary."""
    return round(int(round(at * 1000) // round(step * 1000)) * step, 1)


def _list_times(history: PlacementHistory) -> Iterator[float]:
    yield from (span.at for pod in history.pods for span in pod.spans)
    yield from (span.at for node in history.nodes for span in node.spans)


def _name_moment(second: float) -> str:
    if not second:
        return "at once"
    if second < 60:
        return f"after {second:g} s"
    return f"after {format_seconds(second)}"
