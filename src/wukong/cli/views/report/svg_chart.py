"""The course of a workload as an SVG: old, new, available and waiting pods over time, with a cursor for the script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from wukong.cli.views.chart import History, choose_stretch
from wukong.cli.views.report.markup import Html, join, tag
from wukong.forecast.durations import format_seconds
from wukong.forecast.fields import WorkloadForecast

WIDTH, HEIGHT = 860, 210
LEFT, RIGHT, TOP, BOTTOM = 44, 16, 12, 30
_MOST_TABLE_ROWS, _MOST_POINTS, _TIME_MARKS, _FEW = 60, 2000, 5, 5
SERIES = ("available", "wanted", "old", "new", "pending")  # in the order in which they are drawn


class _Scale(NamedTuple):
    """Where a moment and a number of pods are in the picture."""

    start: float
    end: float
    top: int

    def x(self, at: float) -> float:
        share = (min(max(at, self.start), self.end) - self.start) / (self.end - self.start)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, number: float) -> float:
        return HEIGHT - BOTTOM - number / self.top * (HEIGHT - TOP - BOTTOM)


def draw_chart(name: str, workload: WorkloadForecast) -> Html | None:
    """None where nothing moves. The same numbers are in a table below it."""
    rows = list_series(workload)
    start, end = choose_stretch(list(rows.values()), is_stuck=workload.completed_at is None)
    if end <= start:
        return None
    scale = _Scale(start, end, max(1, *(number for history in rows.values() for _, number in history)))
    picture = tag(
        "svg",
        _draw_grid(scale),
        (_draw_series(word, rows[word], scale) for word in SERIES if word in rows),
        tag("line", class_="cursor", x1=LEFT, x2=LEFT, y1=TOP, y2=HEIGHT - BOTTOM),
        class_="chart",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=f"{name} over time",
        data_start=start,
        data_end=end,
        data_left=LEFT,
        data_width=WIDTH - LEFT - RIGHT,
    )
    return join(picture, _list_numbers(rows))


def list_series(workload: WorkloadForecast) -> dict[str, History]:
    """By name; those that are never anything but 0 are left out."""
    rows: dict[str, History] = {}
    if len(workload.course) > 1:
        for word in ("available", "old", "new", "pending"):
            rows[word] = [(point.at, getattr(point, word)) for point in workload.course]
    else:
        rows["available"] = [(at, available) for at, available, _ in workload.availability]
    rows["wanted"] = [(at, wanted) for at, _, wanted in workload.availability]
    return {word: history for word, history in rows.items() if any(number for _, number in history)}


def _draw_series(word: str, history: History, scale: _Scale) -> Html:
    steps = "".join(_list_steps(_thin_out(history), scale))
    if word == "available":
        bottom = scale.y(0)
        area = f"{steps}V{bottom:.1f}H{scale.x(max(history[0][0], scale.start)):.1f}Z"
        return join(tag("path", class_="area", d=area), tag("path", class_="line available", d=steps))
    return tag("path", class_=f"line {word}", d=steps)


def _thin_out(history: History) -> History:
    """No picture shows more points than it has dots."""
    every = -(-len(history) // _MOST_POINTS)
    return [*history[::every], history[-1]] if every > 1 else history


def _list_steps(history: History, scale: _Scale) -> Iterator[str]:
    """A number holds until the next one."""
    first, *others = history
    yield f"M{scale.x(first[0]):.1f} {scale.y(first[1]):.1f}"
    for at, number in others:
        yield f"H{scale.x(at):.1f}V{scale.y(number):.1f}"
    yield f"H{scale.x(scale.end):.1f}"


def _draw_grid(scale: _Scale) -> Iterator[Html]:
    for number in range(scale.top + 1) if scale.top <= _FEW else sorted({0, scale.top // 2, scale.top}):
        y = scale.y(number)
        yield tag("line", class_="grid", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y)
        yield tag("text", f"{number:,}", class_="mark", x=LEFT - 8, y=y + 4, text_anchor="end")
    for at in list_time_marks(scale.start, scale.end):
        x = scale.x(at)
        anchor = "start" if x < LEFT + 20 else "end" if x > WIDTH - RIGHT - 20 else "middle"
        yield tag("line", class_="grid", x1=x, x2=x, y1=HEIGHT - BOTTOM, y2=HEIGHT - BOTTOM + 4)
        yield tag("text", format_mark(at), class_="mark", x=x, y=HEIGHT - BOTTOM + 18, text_anchor=anchor)


def list_time_marks(start: float, end: float) -> list[float]:
    """A few round moments between the two; both ends where nothing round lies between them."""
    steps = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
    step = next((step for step in steps if (end - start) / step <= _TIME_MARKS), steps[-1])
    first = -(-start // step)
    marks = [first * step + number * step for number in range(_TIME_MARKS + 1)]
    within = [at for at in marks if at <= end]
    return within if len(within) > 1 else [start, end]


def format_mark(at: float) -> str:
    """`0 s`, `45 s`, `1 min 30 s`."""
    return format_seconds(at) if at >= 1 else f"{round(at, 1):g} s"


def _list_numbers(rows: dict[str, History]) -> Html:
    """Every change of a number, for who cannot see the picture; many are thinned out."""
    words = [word for word in ("available", "old", "new", "pending", "wanted") if word in rows]
    times = sorted({at for history in rows.values() for at, _ in history})
    shown, omitted = times[:_MOST_TABLE_ROWS], max(0, len(times) - _MOST_TABLE_ROWS)
    body = [
        tag("tr", tag("td", _format_exact(at)), (tag("td", number) for number in _numbers_at(at, words, rows)))
        for at in shown
    ]
    head = tag("tr", tag("th", "time"), (tag("th", word, class_="number") for word in words))
    return tag(
        "details",
        tag("summary", "the numbers"),
        tag("table", tag("thead", head), tag("tbody", body), class_="numbers"),
        tag("p", f"… and {omitted:,} changes more; -o json has them.", class_="quiet") if omitted else None,
    )


def _numbers_at(at: float, words: Sequence[str], rows: dict[str, History]) -> list[int]:
    return [next((number for time, number in reversed(rows[word]) if time <= at), 0) for word in words]


def _format_exact(at: float) -> str:
    return f"{at:.1f} s" if at < 600 else format_seconds(at)
