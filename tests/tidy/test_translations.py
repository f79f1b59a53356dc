"""What exists in Chinese has what the English document has: headings, code, tables and lists, in the same order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TRANSLATIONS = sorted(path.relative_to(ROOT) for folder in ("", "docs") for path in (ROOT / folder).glob("*.zh-CN.md"))
FENCE = re.compile(r"^\s*```")
COMMENT = re.compile(r"(^|\s)#(\s.*)?$")
Element = tuple[str, object]


def read_elements(text: str) -> Iterator[Element]:
    """Headings by level, blocks of code without comments, tables by their shape, and items of lists, as they come."""
    lines = iter([*text.splitlines(), ""])
    table: list[int] = []  # cells of each row
    for line in lines:
        if line.startswith("|"):
            table.append(len(re.findall(r"(?<!\\)\|", line)) - 1)
            continue
        if table:
            yield "table", tuple(table)
            table = []
        if FENCE.match(line):
            yield "code", (line.strip(), *read_code(lines))
        elif heading := re.match(r"#+(?= )", line):
            yield "heading", len(heading.group())
        elif re.match(r"\s*([-*]|\d+\.) ", line):
            yield "item", line.index(line.lstrip()[0])


def read_code(lines: Iterator[str]) -> Iterator[str]:
    """The lines of a block; those that are all comment are left out, for they may be more or fewer."""
    for line in lines:
        if FENCE.match(line):
            return
        code = COMMENT.sub("", line).rstrip()
        if code or not line.strip():
            yield re.sub(r"\s{2,}", "  ", code)


def test_there_are_translations() -> None:
    assert {path.name for path in TRANSLATIONS} >= {"README.zh-CN.md", "policies.zh-CN.md", "vm.zh-CN.md"}


@pytest.mark.parametrize("path", TRANSLATIONS, ids=str)
def test_a_translation_has_all_that_the_original_has(path: Path) -> None:
    original = path.with_name(path.name.replace(".zh-CN", ""))
    english, chinese = (list(read_elements((ROOT / file).read_text("utf-8"))) for file in (original, path))
    assert chinese == english


@pytest.mark.parametrize("path", TRANSLATIONS, ids=str)
def test_a_translation_names_what_the_original_names(path: Path) -> None:
    """Words in backticks: fields, options, kinds, values. By section, for sentences have another order."""
    original = path.with_name(path.name.replace(".zh-CN", ""))
    english, chinese = (list(read_names((ROOT / file).read_text("utf-8"))) for file in (original, path))
    assert chinese == english


def read_names(text: str) -> Iterator[set[str]]:
    text = re.sub(r"^\s*```.*?^\s*```", "", text, flags=re.DOTALL | re.MULTILINE)
    for section in re.split(r"^#+ .*$", text, flags=re.MULTILINE):
        yield set(re.findall(r"`([^`\n]+)`", section))


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda text: text.replace("## Third", "### Third"), "heading"),
        (lambda text: text.replace("b: 1", "b: 2"), "code"),
        (lambda text: text.replace("| x | y |", "| x |"), "table"),
        (lambda text: text.replace("- two\n", ""), "item"),
    ],
)
def test_what_differs_is_noticed(change: object, kind: str) -> None:
    text = "# First\n```yaml\na: 1 # why\nb: 1\n```\n| a | b |\n|---|---|\n| x | y |\n\n- one\n- two\n## Third\n"
    assert callable(change)
    elements, changed = list(read_elements(text)), list(read_elements(change(text)))
    assert elements != changed
    assert [entry for entry in elements if entry[0] != kind] == [entry for entry in changed if entry[0] != kind]
