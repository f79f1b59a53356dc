"""What people are shown of a story: how many pods were available in each step of its timeline."""

from __future__ import annotations

import pytest

from wukong.cli.views.story import render_story
from wukong.cli.views.table import Table
from wukong.embedded.scenario.record.story import Event, Move, NodeCount, RefusingNodes, Story, StuckDetail

WEB = "default/web"
History = list[tuple[float, int, int]]  # when, how many available, how many wanted


def show_available(history: History, events: list[tuple[float, str]]) -> dict[str, str]:
    """The column AVAILABLE of the lines about this workload, by the time of the line."""
    story = Story(
        settled=True,
        stuck=[],
        workloads={},
        nodes=NodeCount(),
        availability={WEB: history},
        writes=1,
        virtual_seconds=300,
        digest="d",
        events=[Event(at=at, subject=WEB, text=text) for at, text in events],
    )
    table = next(iter(render_story(story, [])))
    assert isinstance(table, Table)
    return {str(time): str(available) for (time, _, available, _), _ in table.rows}


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([(5.2, 1, 3)], "1/3"),
        ([(4.0, 3, 3), (5.9, 2, 3)], "2/3"),
        ([(4.0, 3, 3), (6.0, 2, 3)], "3/3"),
        ([(1.0, 3, 3), (5.1, 2, 3), (5.5, 3, 3)], "2 → 3/3"),
        ([(1.0, 1, 3), (5.1, 2, 3), (5.5, 3, 3)], "3/3"),
        ([(1.0, 3, 3), (5.1, 3, 2)], "3/2"),
        ([(6.0, 3, 3)], ""),
        ([], ""),
    ],
    ids=[
        "what began within the step",
        "as it was at the end of the step",
        "not what came with the next step",
        "what was less meanwhile",
        "not the way up at the start",
        "what was wanted at the end of the step",
        "nothing before it was there",
        "nothing of what is no workload",
    ],
)
def test_a_line_shows_what_was_available_at_the_end_of_its_step(history: History, expected: str) -> None:
    assert show_available(history, [(5.0, "ready")]) == {"00:00:05": expected}


def test_in_longer_steps_too_the_end_of_the_step_is_shown() -> None:
    """300 lines of a second each are shown in steps of ten seconds."""
    history = [(float(second), second, 300) for second in range(300)]
    shown = show_available(history, [(float(second), "ready") for second in range(300)])
    assert shown == {f"00:{second // 60:02}:{second % 60:02}": f"{second + 9}/300" for second in range(0, 300, 10)}


def test_of_a_very_long_timeline_the_beginning_and_the_end_are_told() -> None:
    events = [(3600.0 * hour, "ready") for hour in range(100)]
    story = Story(
        settled=True,
        stuck=[],
        workloads={},
        nodes=NodeCount(),
        writes=1,
        virtual_seconds=360_000,
        digest="d",
        events=[Event(at=at, subject=WEB, text=text) for at, text in events],
    )
    table, pointer = list(render_story(story, []))[:2]
    assert isinstance(table, Table)
    rows = [cells for cells, _ in table.rows]
    assert [row[0] for row in rows] == [
        *(f"{hour:02}:00:00" for hour in range(20)),
        "…",
        *(f"{hour:02}:00:00" for hour in range(80, 100)),
    ]
    assert rows[20] == ("…", "60 more", "", "")
    assert rows[-1] == ("99:00:00", WEB, "", "1 ready")
    assert str(pointer).startswith("In steps of an hour;")


def test_what_checkers_found_is_no_expectation() -> None:
    story = Story(
        settled=True,
        stuck=[],
        workloads={},
        nodes=NodeCount(),
        writes=1,
        virtual_seconds=1,
        digest="d",
        findings=["a budget was broken"],
    )
    lines = [str(part) for part in render_story(story, ["a budget was broken", "nodes.end: expected 2, got 1"])]
    assert lines[-4:] == [
        "Found to be wrong, whatever was expected:",
        "  a budget was broken",
        "1 expectation not met:",
        "  nodes.end: expected 2, got 1",
    ]


def test_the_reasons_of_a_stuck_story_have_their_details_below_them() -> None:
    nodes = [
        RefusingNodes(nodes=[f"n{number}"], count=1, reasons=["lacks 1 cpu", "cordoned"], refusals={})
        for number in range(8)
    ]
    drain = "drain: pod default/web-1: no"
    story = Story(
        settled=False,
        stuck=["default/web: pending: 0/8", f"node n1: {drain}", "default/db: pending: 0/8"],
        stuck_details=[
            StuckDetail(subject=WEB, reason="pending: 0/8", pod="default/web-2", nodes=nodes),
            StuckDetail(subject="node n1", reason=drain, pod="default/web-1", budget=WEB, text="budget x lets 0 go"),
        ],
        workloads={},
        nodes=NodeCount(),
        writes=1,
        virtual_seconds=1,
        digest="d",
    )
    parts = render_story(story, [])
    lines = [line for part in parts for line in (part.lines() if isinstance(part, Table) else [str(part)])]
    assert lines[lines.index("Not settled:") + 1 :] == [
        "  default/web: pending: 0/8",
        "    NODES  COUNT  WHY NOT",
        *(f"    n{number}         1  lacks 1 cpu; cordoned" for number in range(6)),
        "    … and 2 more nodes; -o json has them.",
        f"  node n1: {drain}",
        "    budget x lets 0 go",
        "  default/db: pending: 0/8",
    ]


def test_only_the_first_ten_ways_of_moving_are_told() -> None:
    def a_move(number: int) -> Move:
        return Move(workload=WEB, pod="a", replacement="b", start=f"n{number}", end="n0", left=1.0, ready=2.0)

    story = Story(
        settled=True,
        stuck=[],
        workloads={},
        nodes=NodeCount(),
        writes=1,
        virtual_seconds=1,
        digest="d",
        moves=[a_move(1), *(a_move(number) for number in range(1, 13))],
    )
    lines = [str(part) for part in render_story(story, []) if not isinstance(part, Table)]
    moves = lines[lines.index("13 pods had to move:") :]
    assert moves[1:3] == [f"  {WEB}: n1 → n0, 2 pods", f"  {WEB}: n2 → n0"]
    assert moves[10:12] == [f"  {WEB}: n10 → n0", "  … and 2 more ways; -o json has every move."]
    assert lines[0] == "Nothing happened."
