"""docs/architecture.md and docs/glossary.md name files that exist, and the rows they draw are those that are kept."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tidy.test_rows import ROW_OF

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "wukong"
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
PATH = re.compile(r"`([a-z_]+(?:/[a-z_*]+)*(?:\.py|/))`")


def named_paths(text: str) -> list[str]:
    return sorted(set(PATH.findall(text)))


def is_there(path: str) -> bool:
    places = [PACKAGE / path, ROOT / path]
    if "/" not in path.rstrip("/"):  # named beside its folder
        return any(place.exists() for place in places) or any(PACKAGE.rglob(path.rstrip("/")))
    return any(place.exists() for place in places)


@pytest.mark.parametrize("path", named_paths(GLOSSARY + ARCHITECTURE))
def test_a_path_that_the_documents_name_exists(path: str) -> None:
    assert is_there(path), path


def test_a_path_that_does_not_exist_is_found() -> None:
    assert named_paths("see `runtime/carrying.py` and `weather/`") == ["runtime/carrying.py", "weather/"]
    assert not is_there("runtime/carrying.py")
    assert not is_there("weather/")


def test_every_folder_is_drawn_in_its_row() -> None:
    there = {path.stem for path in PACKAGE.iterdir()}
    for part, row in ((part, row) for part, row in ROW_OF.items() if part in there):
        assert re.search(rf"^\| {row} \|.*`{part}/?`", ARCHITECTURE, re.MULTILINE), (row, part)


def test_words_of_the_glossary_are_sorted_and_there_once() -> None:
    words = [line.split("|")[1].strip() for line in GLOSSARY.splitlines() if line.startswith("| ")][1:]
    assert words == sorted(words, key=str.lower)
    assert len(words) == len(set(words))
