"""Room for the file watches of many control planes."""

from pathlib import Path

import pytest

from testbed.file_watches import ENOUGH, make_room


@pytest.mark.parametrize(("before", "after"), [("128\n", f"{ENOUGH}\n"), ("8192\n", "8192\n"), ("many\n", "many\n")])
def test_a_low_limit_is_raised_and_no_other_is_touched(before: str, after: str, tmp_path: Path) -> None:
    limit = tmp_path / "limit"
    limit.write_text(before)
    make_room(limit)
    assert limit.read_text() == after


def test_a_machine_without_the_limit_is_left_alone(tmp_path: Path) -> None:
    make_room(tmp_path / "missing" / "limit")
    assert list(tmp_path.iterdir()) == []
