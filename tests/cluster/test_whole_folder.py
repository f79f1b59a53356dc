"""A folder is written whole or not at all, and takes the place of nothing but an empty one."""

from __future__ import annotations

from pathlib import Path

import pytest

from wukong.cluster.whole_folder import check_new_folder, write_new_folder
from wukong.errors import InputError

FILES = {"a.yaml": "a: ä\n", "b.yaml": "b: 1\n"}


def read(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text("utf-8") for file in folder.iterdir()}


@pytest.mark.parametrize("is_there", [False, True])
def test_a_new_or_an_empty_folder_gets_all_files(tmp_path: Path, is_there: bool) -> None:
    target = tmp_path / "patch"
    if is_there:
        target.mkdir()
    write_new_folder(str(target), FILES)
    assert read(target) == FILES
    assert [entry.name for entry in tmp_path.iterdir()] == ["patch"]  # nothing is left beside it


def test_what_is_there_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a.yaml").write_text("mine", "utf-8")
    (tmp_path / "file").write_text("mine", "utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("full", "file", "link"):
        with pytest.raises(InputError, match="expected a folder that is not there yet, or is empty"):
            write_new_folder(str(tmp_path / name), FILES)
    assert read(tmp_path / "full") == {"a.yaml": "mine"}
    assert not (tmp_path / "elsewhere").exists()


def test_a_place_that_cannot_be_is_said_before_anything_is_done(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Make .*no first"):
        check_new_folder(str(tmp_path / "no" / "such"))
    with pytest.raises(InputError, match="cannot be written"):
        check_new_folder(str(tmp_path / ("x" * 5000)))


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        write_new_folder(str(tmp_path / "patch"), {"a.yaml": "a", "no/such/b.yaml": "b"})
    assert list(tmp_path.iterdir()) == []
