"""What docs/spot.md says is shown by a test, is: every test that its table names is there, in both languages."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("docs/spot.md", "docs/spot.zh-CN.md")
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
LEAST_ROWS = 30


def read_rows(document: str) -> list[str]:
    """The rows of the table that has tests in its last column."""
    lines = (ROOT / document).read_text("utf-8").splitlines()
    return [line for line in lines if line.startswith("|") and "`tests/" in line]


@cache
def list_tests(file: Path) -> frozenset[str]:
    if not file.is_file():
        return frozenset()
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    names = [node.name for node in ast.parse(file.read_text("utf-8")).body if isinstance(node, functions)]
    return frozenset(name for name in names if name.startswith("test_"))


def find_missing(rows: list[str]) -> list[str]:
    """What is named and is no test, and rows that name none."""
    missing = [row for row in rows if not NAMED.search(row)]
    for file, name in (pair for row in rows for pair in NAMED.findall(row)):
        if name not in list_tests(ROOT / file):
            missing.append(f"{file}::{name}")
    return missing


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_test_that_the_table_names_is_there(document: str) -> None:
    rows = read_rows(document)
    assert len(rows) >= LEAST_ROWS
    assert find_missing(rows) == []


def test_both_languages_name_the_same_tests_row_by_row() -> None:
    english, chinese = ([NAMED.findall(row) for row in read_rows(document)] for document in DOCUMENTS)
    assert chinese == english


@pytest.mark.parametrize(
    "row",
    [
        "| a | `tests/tidy/test_spot_docs.py::test_of_another_name` |",
        "| a | `tests/tidy/test_of_no_file.py::test_every_test_that_the_table_names_is_there` |",
        "| a | `tests/tidy/test_spot_docs.py::find_missing` |",
        "| a | `tests/tidy/test_spot_docs.py` |",
    ],
)
def test_a_test_that_is_not_there_is_noticed(row: str) -> None:
    assert find_missing([row]) != []
