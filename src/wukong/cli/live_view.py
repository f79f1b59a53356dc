"""The live view of `wukong sim run` as a picture: the time, a bar per workload, nodes with their pods, the last events.

    00:01:02  at 10x · 3 nodes, 4 pods, 48 writes
    default/web  ████░░░░  3/3  1 new, 3 old
    node-1 spot  ██        …

Called by watching.py with what live_state.py saw. It fits the console it is given, whatever its width and height.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from wukong.cli.console import count
from wukong.cli.live_state import Look, NodeLook, PodLook, WorkloadLook
from wukong.cli.story_view import Row, clock

LEAST_WORKLOADS, LEAST_NODES, LEAST_EVENTS, MOST_WAITING = 3, 4, 4, 3
_BAR, _SMALL = 24, 16
_COLOURS = ("cyan", "magenta", "blue", "bright_green", "bright_yellow", "bright_cyan", "bright_magenta", "bright_blue")
_BLOCKS = {"ready": "■", "starting": "□", "stopping": "×"}
_PLAIN = {"ready": "#", "starting": "o", "stopping": "x"}


class LiveView:
    def __init__(self, console: Console, pace: str = "") -> None:
        self.console, self.pace = console, pace
        self.blocks = _BLOCKS if "utf" in (console.encoding or "").lower() else _PLAIN
        self._colours: dict[str, str] = {}  # workload → its colour, given in the order they appear

    @property
    def most(self) -> int:
        """How many workloads, or nodes, there could be room for."""
        return max(LEAST_NODES, self.console.height)

    def picture(self, seen: Look, rows: Sequence[Row]) -> RenderableType:
        workloads, nodes, events, waiting = self._shares(seen, rows)
        parts: list[RenderableType] = [self._heading(seen), self._workloads(seen, workloads)]
        if seen.nodes:
            parts += [Text(), self._nodes(seen, nodes)]
        if events:
            parts += [Text(), _events(rows[-events:])]
        is_cut = self.console.height <= _SMALL
        parts += [
            Text(f"! {text}", style="red", no_wrap=is_cut, overflow="ellipsis") for text in seen.waiting[:waiting]
        ]
        if len(seen.waiting) > waiting:
            parts.append(Text(f"! … and {len(seen.waiting) - waiting} more reasons to wait", style="red"))
        return Group(*parts)

    def _shares(self, seen: Look, rows: Sequence[Row]) -> tuple[int, int, int, int]:
        """How many lines each part gets: its least first, then nodes, workloads and events in this order."""
        room = self.console.height - 6  # heading, two empty lines, two lines of "… and more", the cursor's
        waiting = min(MOST_WAITING if self.console.height > _SMALL else 1, len(seen.waiting))
        if self.console.height > _SMALL:  # there they are folded
            room -= sum(-(-(len(text) + 2) // self.console.width) for text in seen.waiting[:waiting])
        wanted = {"nodes": len(seen.nodes), "workloads": len(seen.workloads), "events": min(12, len(rows))}
        least = {"nodes": LEAST_NODES, "workloads": LEAST_WORKLOADS, "events": LEAST_EVENTS}
        given = {name: min(least[name], wanted[name]) for name in wanted}
        room -= waiting + sum(given.values())
        for name in ("events", "nodes", "workloads"):  # in a very small window
            fewer = max(0, min(-room, given[name] - 1))
            given[name] -= fewer
            room += fewer
        for name in ("nodes", "workloads", "events"):
            more = max(0, min(room, wanted[name] - given[name]))
            given[name] += more
            room -= more
        return given["workloads"], given["nodes"], given["events"], waiting

    # ---- parts

    def _heading(self, seen: Look) -> Text:
        counts = (count(seen.nodes_in_all, "node"), count(seen.pods_in_all, "pod"), count(seen.writes, "write"))
        made = Text(clock(seen.seconds), style="bold", no_wrap=True, overflow="ellipsis")
        return made.append(f"{self.pace} · {' · '.join(counts)}", style="not bold dim")

    def _workloads(self, seen: Look, most: int) -> RenderableType:
        table = _grid()
        for each in seen.workloads[:most]:
            name = Text(each.name, style=self._colour(each.name), no_wrap=True, overflow="ellipsis")
            state = Text(
                f"{each.available}/{each.wanted}", style="green" if each.available >= each.wanted else "yellow"
            )
            table.add_row(name, self._bar(each), state, Text(_told(each), no_wrap=True, overflow="ellipsis"))
        rest = seen.workloads_in_all - most
        return Group(table, Text(f"… and {count(rest, 'more workload')}", style="dim")) if rest > 0 else table

    def _bar(self, each: WorkloadLook) -> Text:
        """New ready, new starting, old, stopping; scaled down where there are many."""
        parts = (
            (each.new_ready, "ready", "green"),
            (each.new_starting, "starting", "yellow"),
            (each.old, "ready", "blue"),
            (each.stopping, "stopping", "dim"),
        )
        total = max(each.wanted, sum(number for number, _, _ in parts))
        scale = min(1.0, _BAR / total) if total else 1.0
        made = Text(no_wrap=True)
        for number, stage, style in parts:
            made.append(self.blocks[stage] * -(-int(number * scale * 1000) // 1000), style=style)
        return made.append("·" * max(0, int(total * scale) - len(made)), style="dim")

    def _nodes(self, seen: Look, most: int) -> RenderableType:
        table = _grid()
        has_spot = any(each.is_spot for each in seen.nodes)
        for each in seen.nodes[:most]:
            word = "spot" if each.is_spot else "on-demand" if has_spot else ""
            kind = Text(word, style="yellow" if each.is_spot else "dim")
            name = Text(each.name, no_wrap=True, overflow="ellipsis", style="strike" if each.remarks else "")
            table.add_row(name, kind, self._pods(each), Text(", ".join(each.remarks), style="bold red", no_wrap=True))
        rest = seen.nodes_in_all - most
        return Group(table, Text(f"… and {count(rest, 'more node')}", style="dim")) if rest > 0 else table

    def _pods(self, node: NodeLook) -> Text:
        most = max(8, self.console.width - 50)
        made = Text(no_wrap=True, overflow="ellipsis")
        for name, group in groupby(node.pods[:most], key=lambda pod: pod.workload):
            self._draw(made, name, group)
        if len(node.pods) > most:
            made.append(f" +{len(node.pods) - most}", style="dim")
        return made

    def _draw(self, made: Text, name: str, group: Iterable[PodLook]) -> None:
        colour = self._colour(name)
        for pod in group:
            made.append(self.blocks[pod.stage], style=f"dim {colour}" if pod.is_old else colour)

    def _colour(self, name: str) -> str:
        return self._colours.setdefault(name, _COLOURS[len(self._colours) % len(_COLOURS)])


def _told(each: WorkloadLook) -> str:
    parts = []
    if each.old:
        parts.append(f"{each.new_ready + each.new_starting} new, {each.old} old")
    if each.stopping:
        parts.append(f"{each.stopping} stopping")
    if not parts and not each.is_complete and each.new_starting:
        parts.append(f"{each.new_starting} starting")
    return ", ".join(parts) or ("complete" if each.is_complete else "")


def _events(rows: Sequence[Row]) -> Table:
    table = _grid()
    for second, subject, text in rows:
        name = Text(subject, no_wrap=True, overflow="ellipsis")
        table.add_row(Text(clock(second), style="dim"), name, Text(text, no_wrap=True, overflow="ellipsis"))
    return table


def _grid() -> Table:
    return Table.grid(padding=(0, 2, 0, 0))
