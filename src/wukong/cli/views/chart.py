"""The course of a workload as a chart in the terminal: one row for each count, one column for each stretch of time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from wukong.forecast.durations import format_seconds
from wukong.forecast.fields import WorkloadForecast

_LEVELS = " ▁▂▃▄▅▆▇█"
COLUMNS = 50
STUCK_SECONDS = 60.0  # are shown of what changes no more
_EXACT_SECONDS = 600.0  # below which a stretch that does not begin with the change has tenths of seconds
History = Sequence[tuple[float, int]]  # from when on, how many


def draw_course(workload: WorkloadForecast) -> Iterator[str]:
    """Available pods at their fewest, both versions, waiting pods at their most. No line where nothing moves."""
    rows: dict[str, tuple[History, Callable[[Sequence[int]], int]]] = {}
    if len(workload.course) > 1:
        points = workload.course
        rows["available"] = [(point.at, point.available) for point in points], min
        rows["old"] = [(point.at, point.old) for point in points], _last
        rows["new"] = [(point.at, point.new) for point in points], _last
        rows["pending"] = [(point.at, point.pending) for point in points], max
    else:
        rows["available"] = [(at, available) for at, available, _ in workload.availability], min
    rows = {name: row for name, row in rows.items() if any(number for _, number in row[0])}
    start, end = choose_stretch([history for history, _ in rows.values()], is_stuck=workload.completed_at is None)
    if not rows or end <= start:
        return
    top = max(number for history, _ in rows.values() for _, number in history)
    for name, (history, choose) in rows.items():
        buckets = [choose(numbers) for numbers in split_evenly(history, start, end, COLUMNS)]
        numbers = f"{history[0][1]} → {history[-1][1]}" if history[0][1] != history[-1][1] else f"{history[-1][1]}"
        least, most = min(buckets), max(buckets)
        extreme = f", {least} at least" if choose is min and least < min(history[0][1], history[-1][1]) else ""
        extreme += f", {most} at most" if choose is max and most > max(history[0][1], history[-1][1]) else ""
        yield f"{name:<9} {''.join(_LEVELS[level_of(number, top)] for number in buckets)} {numbers}{extreme}"
    left, right = (f"{at:.1f} s" if start and end < _EXACT_SECONDS else format_seconds(at) for at in (start, end))
    left, right = left if start else "0 s", f"{right}, and so on" if workload.completed_at is None else right
    yield f"{'':<9} {left}{right:>{COLUMNS - len(left)}}"


def choose_stretch(histories: Sequence[History], *, is_stuck: bool) -> tuple[float, float]:
    """From when to when: not the time before the first change where that is most of it; of who is stuck some more."""
    times = [at for history in histories for at, _ in history]
    end = max(times, default=0.0)
    first = min((at for at in times if at > 0), default=0.0)
    end = end + STUCK_SECONDS if is_stuck and end > 0 else end
    return (max(0.0, first - (end - first) / 10), end) if first > end / 2 else (0.0, end)


def split_evenly(history: History, start: float, end: float, columns: int) -> list[list[int]]:
    """The numbers that were so at some time within each column, in order."""
    buckets: list[list[int]] = []
    place, number = 0, history[0][1]
    for column in range(columns):
        limit = start + (end - start) * (column + 1) / columns
        numbers = [number]
        while place < len(history) and (history[place][0] < limit or column == columns - 1):
            number = history[place][1]
            numbers.append(number)
            place += 1
        buckets.append(numbers)
    return buckets


def level_of(number: int, top: int) -> int:
    """0 for none, 8 for the most; anything else between, and never as high as the most."""
    if number <= 0:
        return 0
    full = len(_LEVELS) - 1
    return full if number >= top else max(1, min(full - 1, number * full // top))


def _last(numbers: Sequence[int]) -> int:
    return numbers[-1]
