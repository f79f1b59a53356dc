"""What `wukong sim` shows people of a story: the timeline, condensed; a table of workloads; the verdict."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Iterator

from rich.text import Text

from wukong.cli.console import Part, Table, count
from wukong.embedded.scenario.story import Event, Story

_MOST_NODES = 6
_COUNTED = (
    "added",
    "created",
    "ready",
    "not ready",
    "stopping",
    "gone",
)  # counted; everything else is told in its own words


def story_view(story: Story, unmet: list[str]) -> Iterable[Part]:
    yield from (_timeline(story.events), "")
    if story.workloads:
        yield from (_workloads(story), "")
    nodes = story.nodes
    yield f"Nodes: {nodes.start} at the start, {nodes.max} at most, {nodes.end} at the end."
    took = f"{count(story.writes, 'write')} in {clock(story.virtual_seconds)} of virtual time"
    yield f"{took}; digest {story.digest[:16]}."
    if story.settled:
        yield Text("Settled: every workload is as it should be.", style="bold green")
    else:
        yield Text("Not settled:" if story.stuck else "Not settled when time was up.", style="bold red")
    for reason in story.stuck:
        yield f"  {reason}"
    if unmet:
        yield Text(f"{count(len(unmet), 'expectation')} not met:", style="bold red")
    for each in unmet:
        yield f"  {each}"


def clock(seconds: float) -> str:
    """`00:10:01`, hours first."""
    whole = int(seconds)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"


def _timeline(events: list[Event]) -> Table:
    groups: dict[tuple[int, str], list[str]] = {}
    for event in events:
        subject = "nodes" if event.text == "added" else event.subject
        groups.setdefault((int(event.at), subject), []).append(event.text)
    made = Table("TIME", "WHAT", "HAPPENED")
    for (second, subject), texts in groups.items():
        for text in texts if subject.startswith("node ") else _condensed(texts):
            made.add_row(clock(second), subject, text)
    return made


def _condensed(texts: list[str]) -> Iterator[str]:
    """What happened to several within a second as numbers on one line; the rest one line each, once."""
    pods = Tally(text for text in texts if text in _COUNTED)
    if pods:
        yield ", ".join(f"{pods[text]} {text}" for text in _COUNTED if pods[text])
    yield from dict.fromkeys(text for text in texts if text not in _COUNTED)


def _workloads(story: Story) -> Table:
    numbers = ("REPLICAS", "AVAILABLE", "MIN AVAILABLE", "MAX PODS", "RESTARTS", "UNAVAILABLE")
    made = Table("WORKLOAD", "KIND", *numbers, "NODES", numbers=numbers)
    for name, fate in story.workloads.items():
        counts = (fate.replicas, fate.available, fate.min_available, fate.max_pods, fate.restarts)
        made.add_row(name, fate.kind, *map(str, counts), f"{fate.unavailable_seconds:g} s", _spread(fate.per_node))
    return made


def _spread(per_node: dict[str, int]) -> str:
    """By name while they are few; of many, how many and how full."""
    if len(per_node) <= _MOST_NODES:
        return ", ".join(f"{node} {number}" for node, number in per_node.items())
    least, most = min(per_node.values()), max(per_node.values())
    return f"{count(len(per_node), 'node')}, {least if least == most else f'{least} to {most}'} each"
