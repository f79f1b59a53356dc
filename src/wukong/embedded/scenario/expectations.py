"""What a scenario expects held against its story: one line for each difference. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf
from typing import Any

import msgspec

from wukong.embedded.scenario.format.fields import ExpectedEvent, ExpectedStory, bound_of, seconds_of
from wukong.embedded.scenario.record.story import Story
from wukong.errors import nearest

NOT_SETTLED = "it does not settle"  # which is expected of every story, though the scenario does not say so
_MOST_TIMES = 6


def find_differences(expected: ExpectedStory, story: Story) -> list[str]:
    """One line each, such as `workloads.default/web.maxPods: expected 4, got 5`."""
    return [*_compare_stories(expected, story)]


def find_differences_under_faults(expected: ExpectedStory, story: Story) -> list[str]:
    """Under faults a story must come to rest, if that is expected, and leave checkers nothing to find; no more."""
    is_unsettled = expected.settled is not False and not story.settled
    return [*story.findings, *([NOT_SETTLED, *story.stuck] if is_unsettled else [])]


def list_unmet_expectations(differences: Iterable[str], unwritten: Iterable[str]) -> list[str]:
    """The differences from what somebody wrote: not that it does not settle and why, and not what checkers found."""
    others = {NOT_SETTLED, *unwritten}
    return [difference for difference in differences if difference not in others]


def _compare_stories(expected: ExpectedStory, story: Story) -> Iterator[str]:
    yield from story.findings  # whatever was expected: these must not be
    if expected.settled is None and not story.settled:
        yield NOT_SETTLED
    elif expected.settled is not None and story.settled != expected.settled:
        yield f"settled: expected {_format(expected.settled)}, got {_format(story.settled)}"
    for text in [expected.stuck] if isinstance(expected.stuck, str) else expected.stuck:
        if not any(text in reason for reason in story.stuck):
            finding = f"found {len(story.stuck)} without it" if story.stuck else "nothing is stuck"
            yield f'stuck: expected a reason that contains "{text}"; {finding}'
    document = story.document()
    for name, expected_workload in expected.workloads.items():
        if name not in story.workloads:
            hint = nearest(name, story.workloads) or f" There are: {', '.join(story.workloads) or 'none'}."
            yield f"workloads.{name}: expected this workload, found none.{hint}"
        else:
            counts = msgspec.to_builtins(expected_workload)
            evicted = counts.pop("restarts")
            counts["evicted"] = evicted if counts["evicted"] is None else counts["evicted"]
            yield from _compare(counts, document["workloads"][name], f"workloads.{name}")
    yield from _compare(msgspec.to_builtins(expected.nodes), document["nodes"], "nodes")
    yield from _compare({"virtualSeconds": expected.virtual_seconds}, document, "")
    for index, expected_event in enumerate(expected.events):
        yield from _compare_event(expected_event, story, f"events[{index}]")


def _compare_event(expected: ExpectedEvent, story: Story, place: str) -> Iterator[str]:
    alike = [event for event in story.events if expected.text in event.text and expected.subject in ("", event.subject)]
    after = 0 if expected.after is None else seconds_of(expected.after) or 0
    before = inf if expected.before is None else seconds_of(expected.before) or 0
    number = sum(after <= event.at <= before for event in alike)
    if _holds(">=1" if expected.count is None else expected.count, number):
        return
    times = "at least once" if expected.count is None else f"{expected.count} times"
    text = f"{expected.subject}: {expected.text}" if expected.subject else expected.text
    when = f"{f' after {expected.after}' if after else ''}{f' before {expected.before}' if before != inf else ''}"
    at = ", ".join(f"{event.at:g}s" for event in alike[:_MOST_TIMES]) + (", …" if len(alike) > _MOST_TIMES else "")
    yield f'{place}: expected "{text}" {times}{when}, got {number}; it happened {f"at {at}" if alike else "never"}'


def _compare(expected: dict[str, Any], actual: dict[str, Any], place: str) -> Iterator[str]:
    for name, value in expected.items():
        field = f"{place}.{name}".lstrip(".")
        if value is None:
            continue
        if isinstance(value, dict):
            yield from _compare(value, dict.fromkeys(value, 0) | actual.get(name, {}), field)
        elif not _holds(value, actual[name]):
            yield f"{field}: expected {_format(value)}, got {_format(actual[name])}"


def _holds(expected: Any, actual: Any) -> bool:
    bound = bound_of(expected) if isinstance(expected, str) else None
    if bound is None:
        return bool(expected == actual)
    sign, limit = bound
    holds: dict[str, bool] = {">=": actual >= limit, "<=": actual <= limit, ">": actual > limit, "<": actual < limit}
    return holds[sign]


def _format(value: Any) -> str:
    return msgspec.json.encode(value).decode() if isinstance(value, bool) else str(value)
