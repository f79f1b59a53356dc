"""What a scenario expects held against its story: one line for each difference. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Any

import msgspec

from wukong.embedded.scenario.format.fields import EventExpected, Expected, bound_of, seconds_of
from wukong.embedded.scenario.record.story import Story
from wukong.errors import nearest

_MOST_TIMES = 6


def differences(expected: Expected, story: Story) -> list[str]:
    """`workloads.default/web.maxPods: expected 4, got 5`, for each there is."""
    return [*_differences(expected, story)]


def differences_under_faults(expected: Expected, story: Story) -> list[str]:
    """What faults excuse nobody from: to come to rest, if that was expected, and to leave checkers nothing to find."""
    is_unsettled = expected.settled and not story.settled
    return [*story.findings, *(["it does not settle", *story.stuck] if is_unsettled else [])]


def _differences(expected: Expected, story: Story) -> Iterator[str]:
    yield from story.findings  # whatever was expected: these must not be
    if story.settled != expected.settled:
        yield f"settled: expected {_shown(expected.settled)}, got {_shown(story.settled)}"
    for text in [expected.stuck] if isinstance(expected.stuck, str) else expected.stuck:
        if not any(text in reason for reason in story.stuck):
            found = f"found {len(story.stuck)} without it" if story.stuck else "nothing is stuck"
            yield f'stuck: expected a reason that contains "{text}"; {found}'
    document = story.document()
    for name, wanted in expected.workloads.items():
        if name not in story.workloads:
            known = nearest(name, story.workloads) or f" There are: {', '.join(story.workloads) or 'none'}."
            yield f"workloads.{name}: expected this workload, found none.{known}"
        else:
            yield from _compare(msgspec.to_builtins(wanted), document["workloads"][name], f"workloads.{name}")
    yield from _compare(msgspec.to_builtins(expected.nodes), document["nodes"], "nodes")
    yield from _compare({"virtualSeconds": expected.virtual_seconds}, document, "")
    for index, wanted_event in enumerate(expected.events):
        yield from _event(wanted_event, story, f"events[{index}]")


def _event(wanted: EventExpected, story: Story, place: str) -> Iterator[str]:
    alike = [it for it in story.events if wanted.text in it.text and wanted.subject in ("", it.subject)]
    after = 0 if wanted.after is None else seconds_of(wanted.after) or 0
    before = inf if wanted.before is None else seconds_of(wanted.before) or 0
    found = sum(after <= event.at <= before for event in alike)
    if _holds(">=1" if wanted.count is None else wanted.count, found):
        return
    times = "at least once" if wanted.count is None else f"{wanted.count} times"
    whose = f"{wanted.subject}: {wanted.text}" if wanted.subject else wanted.text
    when = f"{f' after {wanted.after}' if after else ''}{f' before {wanted.before}' if before != inf else ''}"
    at = ", ".join(f"{event.at:g}s" for event in alike[:_MOST_TIMES]) + (", …" if len(alike) > _MOST_TIMES else "")
    yield f'{place}: expected "{whose}" {times}{when}, got {found}; it happened {f"at {at}" if alike else "never"}'


def _compare(wanted: dict[str, Any], found: dict[str, Any], place: str) -> Iterator[str]:
    for name, value in wanted.items():
        at = f"{place}.{name}".lstrip(".")
        if value is None:
            continue
        if isinstance(value, dict):
            yield from _compare(value, dict.fromkeys(value, 0) | found.get(name, {}), at)
        elif not _holds(value, found[name]):
            yield f"{at}: expected {_shown(value)}, got {_shown(found[name])}"


def _holds(wanted: Any, found: Any) -> bool:
    bound = bound_of(wanted) if isinstance(wanted, str) else None
    if bound is None:
        return bool(wanted == found)
    sign, limit = bound
    holds: dict[str, bool] = {">=": found >= limit, "<=": found <= limit, ">": found > limit, "<": found < limit}
    return holds[sign]


def _shown(value: Any) -> str:
    return msgspec.json.encode(value).decode() if isinstance(value, bool) else str(value)
