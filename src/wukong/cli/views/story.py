"""What `wukong sim` shows people of a story: the timeline, condensed; moves; a table of workloads; the verdict."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from rich.text import Text

from wukong.cli.views.console import Part, count
from wukong.cli.views.table import Cell, Names, Table
from wukong.embedded.scenario.expectations import list_unmet_expectations
from wukong.embedded.scenario.record.story import Event, Move, RefusingNodes, Story, StuckDetail, WorkloadSummary

Row = tuple[int, str, str]  # second, subject, what happened
_MOST_NODES, _MOST_ROWS, _MOST_MOVES, _MOST_GROUPS = 6, 40, 10, 6
_INDENT = "    "
_DROPS = ("NODES", "KIND", "MAX PODS", "EVICTED", "SHORT", "MIN")  # where a terminal is too narrow
_FEW = 4  # so many nodes or pods have a line each
STEPS = ((1, ""), (10, "10 s"), (60, "a minute"), (600, "10 minutes"), (3600, "an hour"))
_COUNTED = (
    "added",
    "created",
    "ready",
    "not ready",
    "stopping",
    "gone",
)  # counted; every other event has a line of its own


def render_story(story: Story, unmet: list[str]) -> Iterable[Part]:
    yield from (*_show_timeline(story), "")
    if story.moves:
        yield from (*_show_moves(story.moves), "")
    if affected := _find_affected(story):
        yield _show_workloads(affected)
    if (rest := len(story.workloads) - len(affected)) > 0:
        yield Text(f"Nothing happened to {count(rest, 'other workload')}; -o json has them.", style="dim")
    if story.workloads:
        yield ""
    nodes = story.nodes
    yield f"Nodes: {nodes.start} at the start, {nodes.max} at most, {nodes.end} at the end."
    took = f"{count(story.writes, 'write')} in {format_clock(story.virtual_seconds)} of virtual time"
    yield f"{took}; digest {story.digest[:16]}."
    yield from _show_verdict(story)
    if story.findings:
        yield Text("Found to be wrong, whatever was expected:", style="bold red")
        yield from (f"  {finding}" for finding in story.findings)
    unmet_expectations = list_unmet_expectations(unmet, [*story.stuck, *story.findings])
    if unmet_expectations:
        yield Text(f"{count(len(unmet_expectations), 'expectation')} not met:", style="bold red")
    for difference in unmet_expectations:
        yield f"  {difference}"


def _show_verdict(story: Story) -> Iterator[Part]:
    if story.settled:
        text = "the change makes nothing worse" if story.stuck_before else "every workload is as it should be"
        yield Text(f"Settled: {text}.", style="bold green")
    elif story.interrupted:
        yield Text(
            f"Interrupted at {format_clock(story.virtual_seconds)}: this is the story so far.", style="bold yellow"
        )
    else:
        yield Text("Not settled:" if story.stuck else "Not settled when time was up.", style="bold red")
    for reason in story.stuck:
        yield f"  {reason}"
        yield from _show_details(reason, story.stuck_details)
    if story.stuck_before:
        yield Text("Wrong before, and no worse now:", style="dim")
    for reason in story.stuck_before:
        yield Text(f"  {reason}", style="dim")


def _show_details(reason: str, details: Sequence[StuckDetail]) -> Iterator[Part]:
    """What a reason is about, below it: the nodes that refuse the pod, the budget that refuses the drain."""
    for detail in details:
        if reason == f"{detail.subject}: {detail.reason}":
            if detail.text:
                yield f"    {detail.text}"
            if detail.nodes:
                yield _build_node_table(detail.nodes[:_MOST_GROUPS])
            if hidden := sum(group.count for group in detail.nodes[_MOST_GROUPS:]):
                yield f"    … and {count(hidden, 'more node')}; -o json has them."


def _build_node_table(groups: Sequence[RefusingNodes]) -> Table:
    """Why a pod fits on none of these nodes, below the reason."""
    table = Table(f"{_INDENT}NODES", "COUNT", "WHY NOT", numbers=["COUNT"], names=[f"{_INDENT}NODES"])
    for group in groups:
        first, *others = group.nodes
        table.add_row(Names([f"{_INDENT}{first}", *others]), f"{group.count:,}", "; ".join(group.reasons))
    return table


def format_clock(seconds: float) -> str:
    """`00:10:01`, hours first."""
    whole = int(seconds)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"


# ---- the timeline


def rows_of(events: Iterable[Event], step: int = 1) -> list[Row]:
    """Time, subject, what happened: what happened to several within a step of so many seconds on one line."""
    groups: dict[tuple[int, str], list[str]] = {}
    for second, subject, text in _gather(events, step):
        groups.setdefault((second, subject), []).append(text)
    return [
        (second, subject, text)
        for (second, subject), texts in groups.items()
        for text in (dict.fromkeys(texts) if subject.startswith("node ") else _condense(texts))
    ]


def _gather(events: Iterable[Event], step: int) -> Iterator[Row]:
    """With `nodes` or `pods` as the subject where the same happened to more than a few."""
    rows = [(int(event.at) // step * step, event.subject, event.text) for event in events]
    alike = Tally((second, subject.split(" ")[0], text) for second, subject, text in set(rows))
    for second, subject, text in rows:
        word = subject.split(" ")[0]
        many = word in ("node", "pod") and alike[second, word, text] > _FEW
        yield second, f"{word}s" if many or text == "added" else subject, text


def _condense(texts: list[str]) -> Iterator[str]:
    """What happened to several as numbers on one line; the rest one line each, once, with how often."""
    pods = Tally(text for text in texts if text in _COUNTED)
    if pods:
        yield ", ".join(f"{pods[text]} {text}" for text in _COUNTED if pods[text])
    for text, number in Tally(text for text in texts if text not in _COUNTED).items():
        yield text if number == 1 or text.startswith("pending") else f"{text} ({number} times)"


def _show_timeline(story: Story) -> Iterator[Part]:
    if not story.events:
        yield "Nothing happened."
        return
    step, step_name, rows = choose_step(story.events, _MOST_ROWS)
    left_out = max(0, len(rows) - _MOST_ROWS)
    head = rows[: _MOST_ROWS // 2] if left_out else rows
    table = Table("TIME", "WHAT", "AVAILABLE", "HAPPENED", whole=("TIME", "AVAILABLE"), names=["WHAT"])
    for row in head:
        table.add_row(*_row_cells(story, row, step))
    if left_out:
        table.add_row("…", f"{left_out} more", "", "")
        for row in rows[-_MOST_ROWS // 2 :]:
            table.add_row(*_row_cells(story, row, step))
    yield table
    if step_name:
        yield Text(f"In steps of {step_name}; -o json has every event, --trace FILE every action.", style="dim")


def choose_step(events: Sequence[Event], most_rows: int) -> tuple[int, str, list[Row]]:
    """Step, its name and the rows, in the shortest steps that give no more than so many of them, or in the longest."""
    for step, step_name in STEPS[:-1]:
        rows = rows_of(events, step)
        if len(rows) <= most_rows:
            return step, step_name, rows
    step, step_name = STEPS[-1]
    return step, step_name, rows_of(events, step)


def _row_cells(story: Story, row: Row, step: int) -> tuple[str, str, str, str]:
    second, subject, text = row
    available = _format_available(story.availability.get(subject, []), second, second + step)
    return format_clock(second), subject, available, _first_sentence(text)


def _format_available(history: Sequence[tuple[float, int, int]], start: float, end: float) -> str:
    """`3/3` as it was at the end of a step, `2 → 3/3` if it was less meanwhile; nothing for what is no workload."""
    first, last = (bisect_left(history, second, key=lambda entry: entry[0]) for second in (start, end))
    if not last:
        return ""
    _, available, wanted = history[last - 1]
    place = min(range(first, last), key=lambda index: history[index][1], default=last - 1)
    least = history[place][1]
    is_loss = least < available and any(
        number >= goal for _, number, goal in history[:place]
    )  # not the way up at the start
    return f"{least} → {available}/{wanted}" if is_loss else f"{available}/{wanted}"


def _first_sentence(text: str) -> str:
    """Of the scheduler's message; the verdict has it whole."""
    first, dot, _ = text.partition(". ")
    return f"{first}." if dot and text.startswith("pending: ") else text


# ---- what became of it


def _show_moves(moves: Sequence[Move]) -> Iterator[Part]:
    yield Text(f"{count(len(moves), 'pod')} had to move:", style="bold")
    alike = Tally((move.workload, move.start, move.end) for move in moves)
    for (workload, start, end), number in list(alike.items())[:_MOST_MOVES]:
        yield f"  {workload}: {start} → {end}" + (f", {number} pods" if number > 1 else "")
    if len(alike) > _MOST_MOVES:
        yield f"  … and {len(alike) - _MOST_MOVES} more ways; -o json has every move."


def _find_affected(story: Story) -> dict[str, WorkloadSummary]:
    """All of them; of a snapshot's only those that something happened to, or that are not as they should be."""
    if story.before is None:
        return story.workloads
    subjects = {event.subject for event in story.events}
    return {
        name: summary for name, summary in story.workloads.items() if name in subjects or summary.is_short_of_before
    }


def _show_workloads(workloads: dict[str, WorkloadSummary]) -> Table:
    """The kind is shown where they are not all Deployments, and how many are up to date where not all are: there is
    little room in 80 columns.
    """
    has_kinds = any(summary.kind != "Deployment" for summary in workloads.values())
    has_old = any(summary.up_to_date < summary.replicas for summary in workloads.values())
    numbers = ("AVAILABLE", *(["UP TO DATE"] if has_old else []), "MIN", "MAX PODS", "EVICTED", "SHORT")
    table = Table(
        *("WORKLOAD", *(["KIND"] if has_kinds else []), *numbers, "NODES"),
        numbers=numbers,
        whole=["KIND"],
        names=("WORKLOAD", "NODES"),
        drops=_DROPS,
        elsewhere="a wider terminal shows them, and -o json",
    )
    for name, summary in workloads.items():
        kind = [summary.kind] if has_kinds else []
        up_to_date = [f"{summary.up_to_date}/{summary.replicas}"] if has_old else []
        cells = (_format_available_change(summary), *up_to_date, *_format_numbers(summary))
        table.add_row(name, *kind, *cells, _format_nodes(summary.per_node))
    return table


def _format_available_change(summary: WorkloadSummary) -> str:
    """`15/15 → 1/1` where a story changed it, else as it is."""
    now, before = f"{summary.available}/{summary.replicas}", summary.before
    was = now if before is msgspec.UNSET else f"{before.available}/{before.replicas}"
    return now if was == now else f"{was} → {now}"


def _format_numbers(summary: WorkloadSummary) -> tuple[str, ...]:
    counts = (summary.min_available, summary.max_pods, summary.restarts)
    return (*map(str, counts), f"{summary.unavailable_seconds:g} s")


def _format_nodes(per_node: dict[str, int]) -> Cell:
    """By name while they are few; of many, how many and how full."""
    if len(per_node) <= _MOST_NODES:
        return Names((f"{node} {number}" for node, number in per_node.items()), most=_MOST_NODES)
    least, most = min(per_node.values()), max(per_node.values())
    return f"{count(len(per_node), 'node')}, {least if least == most else f'{least} to {most}'} each"
