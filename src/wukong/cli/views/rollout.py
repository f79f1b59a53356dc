"""A rollout as lines, each of which says something new: numbers, where pods went, and what they wait for."""

from __future__ import annotations

from collections.abc import Iterator

from wukong.api.resources import Key, Resource
from wukong.app.changes.following import Look
from wukong.cli.views.console import Part, count
from wukong.forecast.durations import format_seconds
from wukong.placement.workloads.progress import USUAL_REASONS, PodPlace, Progress


class RolloutView:
    """Remembers what it has said."""

    def __init__(self, planned_seconds: float | None = None) -> None:
        self._planned_seconds = planned_seconds
        self._numbers = ""
        self._places: dict[str, str] = {}  # pod → its node
        self._reasons: dict[str, int] = {}

    def render(self, look: Look) -> Iterator[Part]:
        progress = look.progress
        numbers = (
            f"old {progress.old}, new {progress.new}, available {progress.available} of {progress.wanted}: "
            f"{progress.text}"
        )
        if numbers != self._numbers:
            self._numbers = numbers
            yield f"{format_seconds(look.seconds) if look.seconds >= 1 else '0 s'}: {numbers}"
        yield from (f"    {line}" for line in self._list_places(progress))
        yield from (f"    {line}" for line in self._list_reasons(progress))
        if look.is_late and self._planned_seconds is not None:
            yield f"Later than planned: {describe_delay(progress, self._planned_seconds, look.seconds)}"

    def _list_places(self, progress: Progress) -> Iterator[str]:
        for pod in progress.pods:
            if pod.node and self._places.get(pod.name) != pod.node:
                self._places[pod.name] = pod.node
                yield f"{_describe_pod(pod)} is on {pod.node}"

    def _list_reasons(self, progress: Progress) -> Iterator[str]:
        waiting = {reason: number for reason, number in progress.waiting.items() if is_unusual(reason)}
        for reason, number in waiting.items():
            if self._reasons.get(reason) != number:
                yield f"{count(number, 'pod waits', 'pods wait')}: {reason}"
        self._reasons = waiting


def is_unusual(reason: str) -> bool:
    """Whether a pod waits for something that not every pod waits for."""
    return bool(reason) and reason not in USUAL_REASONS


def describe_delay(progress: Progress, planned_seconds: float, seconds: float) -> str:
    """`planned 40 s, now 3 min: 2 pods wait for 0/2 nodes are available …`."""
    waiting = [f"{count(number, 'pod waits', 'pods wait')}: {reason}" for reason, number in progress.waiting.items()]
    why = "; ".join(waiting) or progress.text
    return f"planned {format_seconds(planned_seconds)}, now {format_seconds(seconds)}: {why}"


def render_end(resource: Resource, key: Key, progress: Progress, timeout_seconds: float | None) -> Iterator[Part]:
    name = f"{resource.kind} {key}"
    if progress.state == "running":
        yield f"{name}: not complete after {format_seconds(timeout_seconds or 0.0)}: {progress.text}."
    elif progress.state == "failed":
        yield f"{name}: {progress.text}."
    else:
        yield f"{name}: complete, {progress.text}."


def render_interrupt(argument: str, key: Key) -> Iterator[str]:
    yield "The rollout goes on. To follow it again, or to take it back:"
    yield f"  wukong follow {argument}/{key.name} -n {key.namespace}"
    yield f"  wukong undo {argument}/{key.name} -n {key.namespace}"


def _describe_pod(pod: PodPlace) -> str:
    return f"{pod.name} ({'new' if pod.is_new else 'old'})"
