"""What is printed about the examples, and the help of every verb, stays until somebody means to change it."""

from __future__ import annotations

import pytest

from cli.golden_outputs import COMMANDS, FOLDER, file_of, tell


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_prints_what_is_in_its_golden_file(name: str) -> None:
    assert tell(name) == file_of(name).read_text("utf-8")


def test_every_golden_file_has_its_command() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {file_of(name).name for name in COMMANDS}
