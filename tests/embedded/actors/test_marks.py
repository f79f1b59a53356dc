"""The names of each mark are those that a look at every name finds, in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wukong.embedded.actors.marks import Marks

STEPS = st.lists(st.tuples(st.integers(0, 9), st.frozensets(st.sampled_from("abc"))), max_size=40)


@given(STEPS, STEPS)
def test_names_are_kept_by_mark_and_forks_apart(
    steps: list[tuple[int, frozenset[str]]], more: list[tuple[int, frozenset[str]]]
) -> None:
    marks: Marks[int, str] = Marks()
    expected: dict[int, frozenset[str]] = {}
    for number, given_marks in steps:
        marks.put(number, given_marks)
        expected[number] = given_marks
    fork, expected_of_fork = marks.fork(), dict(expected)
    for number, given_marks in more:
        fork.put(number, given_marks)
        expected_of_fork[number] = given_marks
    for current, wanted in ((marks, expected), (fork, expected_of_fork)):
        for mark in "abc":
            names = sorted(number for number, given_marks in wanted.items() if mark in given_marks)
            assert (list(current.names(mark)), current.count(mark)) == (names, len(names))
