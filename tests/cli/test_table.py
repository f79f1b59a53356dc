"""Tables at any width: names shortened in the middle, texts folded, columns dropped in a known order and named."""

from __future__ import annotations

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wukong.cli.views import console
from wukong.cli.views.table import Names, Table, fold, name_some, shorten

CLOUD_NAME = "ip-10-0-12-34.eu-central-1.compute.internal"
TEXT = st.text(st.characters(min_codepoint=33, max_codepoint=126) | st.just(" "), max_size=80)


def lines_of(table: Table, width: int) -> list[str]:
    return [line for line, _ in table.fit(width).lines]


def test_a_table_that_fits_is_printed_as_to_a_pipe() -> None:
    table = Table("NODE", "CPU", "REASON", numbers=["CPU"])
    table.add_row("node-with-a-long-name", "7", "too little memory for it")
    table.add_row("b", "100", "fits")
    assert lines_of(table, 80) == [
        "NODE                   CPU  REASON",
        "node-with-a-long-name    7  too little memory for it",
        "b                      100  fits",
    ]
    assert list(table.lines()) == lines_of(table, 80)


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (44, CLOUD_NAME),
        (30, "ip-10-0-12-34.eu-ce…e.internal"),
        (12, "ip-10-0…rnal"),
        (2, "i…"),
        (1, "…"),
    ],
)
def test_a_name_is_shortened_in_the_middle(width: int, expected: str) -> None:
    assert shorten(CLOUD_NAME, width) == expected


def test_names_that_differ_anywhere_but_in_the_middle_stay_different_when_shortened() -> None:
    for names in (
        ["ip-10-0-12-34.eu-central-1.compute.internal", "ip-10-0-12-39.eu-central-1.compute.internal"],
        ["gke-production-default-pool-1f2a3b4c-abcd-x1", "gke-production-default-pool-1f2a3b4c-abcd-x2"],
    ):
        table = Table("NODES", "WHY NOT", names=["NODES"])
        for name in names:
            table.add_row(Names([name, "another", "a-third"]), "lacks 1200m cpu and many other things that it needs")
        shortened = {line.split("  ")[0] for line in lines_of(table, 60)[1:] if line[0] != " "}
        assert len(shortened) == 2
        assert all("…" in name and name.endswith(" and 2 more") for name in shortened)


def test_as_many_whole_names_are_shown_as_there_is_room_for() -> None:
    table = Table("NODES", "N", numbers=["N"], names=["NODES"])
    table.add_row(Names(["node-1", "node-2", "node-3", "node-4"]), "4")
    assert lines_of(table, 40)[1] == "node-1, node-2, node-3 and 1 more  4"
    assert lines_of(table, 34)[1].split("  ")[0] == "node-1, node-2 and 2 more"


def test_columns_are_dropped_in_the_order_the_table_says_and_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = Table(
        *("NODE", "A", "B", "C"), numbers="ABC", names=["NODE"], drops=["C", "A"], elsewhere="-o wide shows them"
    )
    table.add_row(CLOUD_NAME, "111111", "222222", "333333")
    assert table.fit(80).dropped == []
    assert table.fit(50).dropped == ["C"]
    assert table.fit(44).dropped == ["C", "A"]
    assert lines_of(table, 44)[1].endswith("222222")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", "44")
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    console.show(table)
    assert "No room for C, A: -o wide shows them." in terminal.getvalue()


def test_headings_that_are_names_are_shortened_like_names() -> None:
    nodes = [CLOUD_NAME, "ip-10-0-12-39.eu-central-1.compute.internal"]
    table = Table("TERM", *nodes, numbers=nodes, name_headings=nodes, drops=nodes[:0:-1])
    table.add_row("cost", "50.0", "75.0")
    assert max(map(len, lines_of(table, 50))) <= 50
    assert table.fit(50).dropped == []
    assert len(set(lines_of(table, 46)[0].split())) == 3
    assert table.fit(24).dropped == nodes[1:]


def test_long_words_are_folded_where_a_path_or_a_taint_has_a_joint() -> None:
    taint = "taint node.kubernetes.io/unschedulable:NoSchedule"
    assert fold(taint, 30) == ["taint", "node.kubernetes.io/", "unschedulable:NoSchedule"]
    assert fold("a bb ccc", 4) == ["a bb", "ccc"]
    assert fold("x" * 10, 4) == ["xxxx", "xxxx", "xx"]


@given(TEXT, st.integers(1, 40))
def test_folding_loses_nothing_and_keeps_to_the_width(text: str, width: int) -> None:
    folded = fold(text, width)
    assert "".join(folded).replace(" ", "") == text.replace(" ", "")
    assert all(len(line) <= width for line in folded)


@given(st.lists(st.tuples(TEXT, TEXT, st.integers(0, 10**6)), min_size=1, max_size=4), st.integers(60, 160))
def test_no_line_is_wider_than_the_terminal(rows: list[tuple[str, str, int]], width: int) -> None:
    table = Table("NAME", "TEXT", "NUMBER", numbers=["NUMBER"], names=["NAME"])
    for name, text, number in rows:
        table.add_row(Names([name, "b", "c", "d"]), text, str(number))
    assert all(len(line) <= width for line in lines_of(table, width))


@pytest.mark.parametrize(
    ("names", "expected"),
    [("a", "a"), ("abc", "a, b, c"), ("abcd", "a, b, c and 1 more"), ("a" * 5000, "a, a, a and 4,997 more")],
)
def test_three_names_are_listed_and_how_many_more_there_are(names: str, expected: str) -> None:
    assert name_some(list(names)) == expected
