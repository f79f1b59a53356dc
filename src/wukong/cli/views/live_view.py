"""The live view of `wukong sim run` as a picture: the time, a bar per workload, nodes with their pods, the last events.

    00:01:02  at 10x · 3 nodes, 4 pods, 48 writes
    default/web  ████░░░░  3/3  1 new, 3 old
    node-1 spot  ██        …

Called by watching.py with what live_state.py saw. It fits the console it is given, whatever its width and height. Drawn
several times a second, so lines are aligned here: rich's tables take ten times as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.console import Console, Group, RenderableType
from rich.text import Text

from wukong.cli.views.console import count
from wukong.cli.views.live_state import Look, NodeLook, WorkloadLook
from wukong.cli.views.story import Row, clock

LEAST_WORKLOADS, LEAST_NODES, LEAST_EVENTS, MOST_WAITING = 3, 4, 4, 3
_BAR, _SMALL = 24, 16
_COLOURS = ("cyan", "magenta", "blue", "bright_green", "bright_yellow", "bright_cyan", "bright_magenta", "bright_blue")
_BLOCKS = {"ready": "■", "starting": "□", "stopping": "×"}
_PLAIN = {"ready": "#", "starting": "o", "stopping": "x"}
Cell = list[tuple[str, str]]  # texts and their styles


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
        lines = [self._heading(seen), *self._workloads(seen, workloads)]
        if seen.nodes:
            lines += [[], *self._nodes(seen, nodes)]
        if events:
            lines += [[], *_events(rows[-events:])]
        is_cut = self.console.height <= _SMALL
        reasons = seen.waiting[:waiting]
        if len(seen.waiting) > waiting:
            reasons = [*reasons, f"… and {len(seen.waiting) - waiting} more reasons to wait"]
        told = (Text(f"! {text}", style="red", no_wrap=is_cut, overflow="ellipsis") for text in reasons)
        return Group(self._drawn(lines), *told)

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

    def _drawn(self, lines: Iterable[Cell]) -> Text:
        """One text of all lines, each cut to the width of the console."""
        made = Text(no_wrap=True, overflow="crop")
        for number, line in enumerate(lines):
            room = self.console.width
            made.append("\n" if number else "")
            for text, style in line:
                fits = text if len(text) <= room else f"{text[: max(0, room - 1)]}…" if room else ""
                made.append(fits, style)
                room -= len(fits)
        return made

    # ---- parts

    def _heading(self, seen: Look) -> Cell:
        counts = (count(seen.nodes_in_all, "node"), count(seen.pods_in_all, "pod"), count(seen.writes, "write"))
        return [(clock(seen.seconds), "bold"), (f"{self.pace} · {' · '.join(counts)}", "dim")]

    def _workloads(self, seen: Look, most: int) -> list[Cell]:
        table = [
            (
                [(each.name, self._colour(each.name))],
                self._bar(each),
                [(f"{each.available}/{each.wanted}", "green" if each.available >= each.wanted else "yellow")],
                [(_told(each), "")],
            )
            for each in seen.workloads[:most]
        ]
        return [*_aligned(table), *_more(seen.workloads_in_all - most, "more workload")]

    def _bar(self, each: WorkloadLook) -> Cell:
        """New ready, new starting, old, stopping; scaled down where there are many."""
        parts = (
            (each.new_ready, "ready", "green"),
            (each.new_starting, "starting", "yellow"),
            (each.old, "ready", "blue"),
            (each.stopping, "stopping", "dim"),
        )
        total = max(each.wanted, sum(number for number, _, _ in parts))
        scale = min(1.0, _BAR / total) if total else 1.0
        made = [(self.blocks[stage] * -(-int(number * scale * 1000) // 1000), style) for number, stage, style in parts]
        return [*made, ("·" * max(0, int(total * scale) - _length(made)), "dim")]

    def _nodes(self, seen: Look, most: int) -> list[Cell]:
        has_spot = any(each.is_spot for each in seen.nodes)
        table = []
        for each in seen.nodes[:most]:
            word = "spot" if each.is_spot else "on-demand" if has_spot else ""
            name = [(each.name, "strike" if each.remarks else "")]
            kind = [(word, "yellow" if each.is_spot else "dim")]
            table.append((name, kind, self._pods(each), [(", ".join(each.remarks), "bold red")]))
        return [*_aligned(table), *_more(seen.nodes_in_all - most, "more node")]

    def _pods(self, node: NodeLook) -> Cell:
        most = max(8, self.console.width - 50)
        made = []
        for pod, group in groupby(node.pods[:most]):
            colour, block = self._colour(pod.workload), self.blocks[pod.stage]
            if self.console.no_color and pod.stage != "stopping":  # then the workload's first letter tells whose it is
                letter = pod.workload.rpartition("/")[2][:1]
                block = letter.upper() if pod.stage == "ready" else letter.lower()
            made.append((block * len([*group]), f"dim {colour}" if pod.is_old else colour))
        return [*made, (f" +{len(node.pods) - most}" if len(node.pods) > most else "", "dim")]

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


def _events(rows: Sequence[Row]) -> list[Cell]:
    return _aligned([([(clock(second), "dim")], [(subject, "")], [(text, "")]) for second, subject, text in rows])


def _more(number: int, what: str) -> list[Cell]:
    return [[(f"… and {count(number, what)}", "dim")]] if number > 0 else []


def _aligned(table: Sequence[Sequence[Cell]]) -> list[Cell]:
    """Columns side by side; empty ones are left out."""
    widths = [max(map(_length, column)) for column in zip(*table, strict=True)]
    lines = []
    for row in table:
        line: Cell = []
        for cell, width in zip(row, widths, strict=True):
            if width:
                line += [*cell, (" " * (width - _length(cell) + 2), "")]
        while line and not line[-1][0].strip():
            line.pop()
        lines.append(line)
    return lines


def _length(cell: Cell) -> int:
    return sum(len(text) for text, _ in cell)
