"""docs/explain.md names every type of detail that filters give, and shows what is really printed."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "explain.md").read_text("utf-8")


GIVEN = re.compile(r'(?:RefusalDetail|_describe_requirement|_describe_term)\(\s*(?:details, )?"(\w+)"')
ROW = re.compile(r"^\| ((?:`\w+`(?:, )?)+) \|", flags=re.MULTILINE)


def test_every_type_of_detail_is_documented_and_no_other() -> None:
    sources = [path.read_text("utf-8") for path in (ROOT / "src" / "wukong" / "engine" / "plugins").glob("*.py")]
    used = {kind for text in sources for kind in GIVEN.findall(text)} | {"topologySpread"}  # a variable there
    rows = ROW.findall(DOCUMENT.partition("## On a narrow terminal")[0])
    documented = {kind for row in rows for kind in re.findall(r"`(\w+)`", row)} - {"type"}
    assert documented == used


def test_the_lines_it_shows_are_printed() -> None:
    printed = (ROOT / "tests" / "golden" / "outputs" / "explain-stuck.txt").read_text("utf-8").splitlines()
    block = re.findall(r"^```\n(.*?)^```$", DOCUMENT, flags=re.DOTALL | re.MULTILINE)[0]
    assert [line for line in block.splitlines()[1:] if line != "…" and line not in printed] == []
