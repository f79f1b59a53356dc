"""The live view of `wukong sim run` as a picture: the time, a bar per workload, nodes with their pods, the last events.

    00:01:02  at 10x · 3 nodes, 4 pods, 48 writes
    default/web  ████░░░░  3/3  1 new, 3 old
    node-1 spot  ██        …

Called by spectator.py with what live_state.py read. It fits the console it is given, whatever its width and height.
Drawn several times a second, so lines are aligned here: rich's tables take ten times as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TypeVar

from rich.console import Console, Group, RenderableType
from rich.text import Text

from wukong.cli.views.console import count
from wukong.cli.views.escaping import escape_line
from wukong.cli.views.live_state import LiveState, NodeState, WorkloadState
from wukong.cli.views.story import Row, format_clock
from wukong.cli.views.table import shorten

LEAST_WORKLOADS, LEAST_NODES, LEAST_EVENTS, MOST_WAITING = 3, 4, 4, 3
_BAR, _SMALL, _LEAST_NAME = 24, 16, 15
_COLOURS = ("cyan", "magenta", "blue", "bright_green", "bright_yellow", "bright_cyan", "bright_magenta", "bright_blue")
_BLOCKS = {"ready": "■", "starting": "□", "stopping": "×"}
_PLAIN = {"ready": "#", "starting": "o", "stopping": "x"}
Cell = list[tuple[str, str]]  # texts and their styles
S = TypeVar("S", WorkloadState, NodeState)


class LiveView:
    def __init__(self, console: Console, pace: str = "") -> None:
        self.console, self.pace = console, pace
        self.blocks = _BLOCKS if "utf" in (console.encoding or "").lower() else _PLAIN
        self._colours: dict[str, str] = {}  # workload → its colour, in the order they appear

    @property
    def most_rows(self) -> int:
        """How many workloads, or nodes, there could be room for."""
        return max(LEAST_NODES, self.console.height)

    @property
    def _longest_name(self) -> int:
        """Characters of a name: longer ones are shortened in the middle."""
        return max(_LEAST_NAME, self.console.width * 3 // 8)

    def render(self, live_state: LiveState, rows: Sequence[Row]) -> RenderableType:
        workloads, nodes, events, waiting = self._share_lines(live_state, rows)
        lines = [self._render_heading(live_state), *self._render_workloads(live_state, workloads)]
        if live_state.nodes:
            lines += [[], *self._render_nodes(live_state, nodes)]
        if events:
            lines += [[], *_render_events(rows[-events:], self._longest_name)]
        is_cut = self.console.height <= _SMALL
        reasons = live_state.reasons[:waiting]
        if len(live_state.reasons) > waiting:
            reasons = [*reasons, f"… and {len(live_state.reasons) - waiting} more reasons to wait"]
        warnings = (
            Text(escape_line(f"! {text}"), style="red", no_wrap=is_cut, overflow="ellipsis") for text in reasons
        )
        return Group(self._join_lines(lines), *warnings)

    def _share_lines(self, live_state: LiveState, rows: Sequence[Row]) -> tuple[int, int, int, int]:
        """How many lines each part gets: its least first, then nodes, workloads and events in this order."""
        room = self.console.height - 6  # heading, two empty lines, two lines of "… and more", the cursor's
        waiting = min(MOST_WAITING if self.console.height > _SMALL else 1, len(live_state.reasons))
        if self.console.height > _SMALL:  # there they are folded
            room -= sum(-(-(len(text) + 2) // self.console.width) for text in live_state.reasons[:waiting])
        wanted = {"nodes": len(live_state.nodes), "workloads": len(live_state.workloads), "events": min(12, len(rows))}
        least = {"nodes": LEAST_NODES, "workloads": LEAST_WORKLOADS, "events": LEAST_EVENTS}
        lines = {name: min(least[name], wanted[name]) for name in wanted}
        room -= waiting + sum(lines.values())
        for name in ("events", "nodes", "workloads"):  # in a very small window
            fewer = max(0, min(-room, lines[name] - 1))
            lines[name] -= fewer
            room += fewer
        for name in ("nodes", "workloads", "events"):
            more = max(0, min(room, wanted[name] - lines[name]))
            lines[name] += more
            room -= more
        return lines["workloads"], lines["nodes"], lines["events"], waiting

    def _join_lines(self, lines: Iterable[Cell]) -> Text:
        """One text of all lines, each cut to the width of the console."""
        joined = Text(no_wrap=True, overflow="crop")
        for number, line in enumerate(lines):
            room = self.console.width
            joined.append("\n" if number else "")
            for part, style in line:
                text = escape_line(part)
                fits = text if len(text) <= room else f"{text[: max(0, room - 1)]}…" if room else ""
                joined.append(fits, style)
                room -= len(fits)
        return joined

    # ---- parts

    def _render_heading(self, live_state: LiveState) -> Cell:
        counts = (
            count(live_state.total_nodes, "node"),
            count(live_state.total_pods, "pod"),
            count(live_state.writes, "write"),
        )
        return [(format_clock(live_state.seconds), "bold"), (f"{self.pace} · {' · '.join(counts)}", "dim")]

    def _render_workloads(self, live_state: LiveState, most: int) -> list[Cell]:
        table = [
            (
                [(shorten(workload.name, self._longest_name), self._colour_of(workload.name))],
                self._render_bar(workload),
                [
                    (
                        f"{workload.available}/{workload.wanted}",
                        "green" if workload.available >= workload.wanted else "yellow",
                    )
                ],
                [(_describe(workload), "")],
            )
            for workload in _select(live_state.workloads, most)
        ]
        return [*_align(table), *_render_rest(live_state.total_workloads - most, "more workload")]

    def _render_bar(self, workload: WorkloadState) -> Cell:
        """New ready, new starting, old, stopping; scaled down where there are many."""
        parts = (
            (workload.new_ready, "ready", "green"),
            (workload.new_starting, "starting", "yellow"),
            (workload.old, "ready", "blue"),
            (workload.stopping, "stopping", "dim"),
        )
        total = max(workload.wanted, sum(number for number, _, _ in parts))
        scale = min(1.0, _BAR / total) if total else 1.0
        blocks = [
            (self.blocks[stage] * -(-int(number * scale * 1000) // 1000), style) for number, stage, style in parts
        ]
        return [*blocks, ("·" * max(0, int(total * scale) - _length(blocks)), "dim")]

    def _render_nodes(self, live_state: LiveState, most: int) -> list[Cell]:
        has_spot = any(node.is_spot for node in live_state.nodes)
        table = []
        for node in _select(live_state.nodes, most):
            word = "spot" if node.is_spot else "on-demand" if has_spot else ""
            name = [(shorten(node.name, self._longest_name), "strike" if node.remarks else "")]
            kind = [(word, "yellow" if node.is_spot else "dim")]
            table.append((name, kind, self._render_pods(node), [(", ".join(node.remarks), "bold red")]))
        return [*_align(table), *_render_rest(live_state.total_nodes - most, "more node")]

    def _render_pods(self, node: NodeState) -> Cell:
        most = max(8, self.console.width - 50)
        blocks = []
        for pod, group in groupby(node.pods[:most]):
            colour, block = self._colour_of(pod.workload), self.blocks[pod.stage]
            if self.console.no_color and pod.stage != "stopping":  # then the workload's first letter tells whose it is
                letter = pod.workload.rpartition("/")[2][:1]
                block = letter.upper() if pod.stage == "ready" else letter.lower()
            blocks.append((block * len([*group]), f"dim {colour}" if pod.is_old else colour))
        return [*blocks, (f" +{len(node.pods) - most}" if len(node.pods) > most else "", "dim")]

    def _colour_of(self, name: str) -> str:
        return self._colours.setdefault(name, _COLOURS[len(self._colours) % len(_COLOURS)])


def _describe(workload: WorkloadState) -> str:
    parts = []
    if workload.old:
        parts.append(f"{workload.new_ready + workload.new_starting} new, {workload.old} old")
    if workload.stopping:
        parts.append(f"{workload.stopping} stopping")
    if not parts and not workload.is_complete and workload.new_starting:
        parts.append(f"{workload.new_starting} starting")
    return ", ".join(parts) or ("complete" if workload.is_complete else "")


def _render_events(rows: Sequence[Row], longest: int) -> list[Cell]:
    return _align([
        ([(format_clock(second), "dim")], [(shorten(subject, longest), "")], [(text, "")])
        for second, subject, text in rows
    ])  # fmt: skip


def _select(states: Sequence[S], most: int) -> Sequence[S]:
    """All where there is room for them, by name; else what is under way and what changed last, in this order."""
    if len(states) <= most:
        return states
    return sorted(states, key=lambda state: (_is_at_rest(state), -state.change))[:most]


def _is_at_rest(state: WorkloadState | NodeState) -> bool:
    if isinstance(state, WorkloadState):
        return state.is_complete
    return not state.remarks and all(pod.stage == "ready" and not pod.is_old for pod in state.pods)


def _render_rest(number: int, what: str) -> list[Cell]:
    return [[(f"… and {count(number, what)}", "dim")]] if number > 0 else []


def _align(table: Sequence[Sequence[Cell]]) -> list[Cell]:
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
