"""What `wukong sim run --seeds` shows: each ending with how many seeds have it, and the command that replays one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from rich.text import Text

from wukong.app.endings import Ending, Endings
from wukong.cli.views.console import Part, count
from wukong.cli.views.table import Table
from wukong.embedded.scenario.expectations import list_unmet_expectations

VERSION = 1
_MOST_REASONS = 5


def render_endings(endings: Endings, requested: int, replay: str) -> Iterable[Part]:
    for ending in endings.endings:
        yield from (*_render_ending(ending, endings.seeds, f"{replay} {ending.seeds[0]}"), "")
    if endings.was_interrupted:
        yield Text(f"Interrupted after {endings.seeds} of {count(requested, 'seed')}.", style="bold yellow")
    summary = f"{count(endings.seeds, 'seed')}, {count(len(endings.endings), 'ending')}"
    different = sum(len(ending.seeds) for ending in endings.endings if _list_expectations(ending))
    others = sum(len(ending.seeds) for ending in endings.endings if ending.unmet and not _list_expectations(ending))
    if different or others:
        counts = ((different, "not as expected"), (others, "not settled"))
        verdicts = ", ".join(f"{number} {verdict}" for number, verdict in counts if number)
        yield Text(f"{summary}: {verdicts}.", style="bold red")
    else:
        yield Text(f"{summary}, all as expected." if endings.seeds else f"{summary}.", style="bold green")


def _render_ending(ending: Ending, seeds: int, replay: str) -> Iterable[Part]:
    verdict = "settled" if ending.settled else "not settled"
    yield Text(f"{len(ending.seeds)} of {count(seeds, 'seed')}: {verdict}", style="green" if ending.settled else "red")
    if ending.workloads:
        table = Table("  WORKLOAD", "AVAILABLE", "MIN", numbers=("AVAILABLE", "MIN"), names=("  WORKLOAD",))
        for name, workload in ending.workloads.items():
            available = f"{workload.available}/{workload.replicas}"
            table.add_row(f"  {name}", available, str(workload.min_available))
        yield table
    yield from _list_some("", ending.stuck)
    yield from _list_some("not as expected: ", _list_expectations(ending))
    yield f"  Replay it: {replay}"


def _list_expectations(ending: Ending) -> list[str]:
    """What differs from what somebody wrote, not that it does not settle and why."""
    return list_unmet_expectations(ending.unmet, ending.stuck)


def _list_some(heading: str, reasons: list[str]) -> Iterable[Part]:
    yield from (f"  {heading}{reason}" for reason in reasons[:_MOST_REASONS])
    if len(reasons) > _MOST_REASONS:
        yield f"  … and {len(reasons) - _MOST_REASONS} more; -o json has all."


def build_document(endings: Endings, requested: int, replay: str) -> dict[str, Any]:
    """For programs."""
    return {
        "version": VERSION,
        "seeds": {"asked": requested, "played": endings.seeds},
        "interrupted": endings.was_interrupted,
        "endings": [
            {"count": len(ending.seeds), **msgspec.to_builtins(ending), "replay": f"{replay} {ending.seeds[0]}"}
            for ending in endings.endings
        ],
    }
