"""What is printed of an example stays, word for word and second by second, until somebody means to change it."""

from __future__ import annotations

import pytest

from scenarios.golden_stories import FOLDER, list_files, tell

FILES = list_files()


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_the_story_is_told_as_in_its_golden_file(file: str) -> None:
    assert tell(*FILES[file]) == (FOLDER / file).read_text("utf-8")


def test_every_golden_file_has_its_example() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(FILES)
