"""A file is replaced by a whole one or not at all; links, devices and pipes are written to where they lead."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from wukong.cluster import whole_file
from wukong.cluster.whole_file import write_whole_file
from wukong.errors import InputError


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_is_private_and_an_old_one_keeps_its_mode(tmp_path: Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    old.write_bytes(b"before")
    old.chmod(0o640)
    for path in (new, old):
        write_whole_file(str(path), b"after")
        assert path.read_bytes() == b"after"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (new, old)] == [0o600, 0o640]
    assert names_in(tmp_path) == ["new", "old"]


@pytest.mark.parametrize("failing", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_fails_or_is_interrupted_leaves_the_old_file_and_nothing_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str, error: BaseException
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(whole_file.os, failing, fail)  # type: ignore[attr-defined]
    with pytest.raises((InputError, KeyboardInterrupt)):
        write_whole_file(str(path), b"after")
    assert path.read_bytes() == b"before"
    assert names_in(tmp_path) == ["file"]


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link, other = tmp_path / "there" / "target", tmp_path / "link", tmp_path / "other"
    target.write_bytes(b"before")
    os.link(target, other)
    (tmp_path / "between").symlink_to(target)
    link.symlink_to("between")
    write_whole_file(str(link), b"after")
    assert link.is_symlink()
    assert (target.read_bytes(), other.read_bytes()) == (b"after", b"before"), "in one step, not over the old one"
    assert names_in(tmp_path / "there") == ["target"]
    dangling = tmp_path / "dangling"
    dangling.symlink_to("not-yet")
    write_whole_file(str(dangling), b"new")
    assert dangling.is_symlink()
    assert (tmp_path / "not-yet").read_bytes() == b"new"


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    write_whole_file(str(pipe), b"x" * 200_000)
    reader.join(10)
    assert [len(data) for data in received] == [200_000]
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert names_in(tmp_path) == ["pipe"]


def test_a_device_is_written_to_also_through_a_link(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("/dev/null")
    before = os.stat("/dev/null")
    for path in ("/dev/null", str(link)):
        write_whole_file(path, b"after")
    after = os.stat("/dev/null")
    assert (before.st_ino, before.st_rdev, stat.S_ISCHR(after.st_mode)) == (after.st_ino, after.st_rdev, True)
    assert link.is_symlink()
    assert names_in(tmp_path) == ["link"]


def test_an_open_pipe_has_no_name_and_is_written_to_all_the_same() -> None:
    reader, writer = os.pipe()
    write_whole_file(f"/dev/fd/{writer}", b"after")
    os.close(writer)
    with open(reader, "rb") as file:
        assert file.read() == b"after"


def test_a_file_that_is_open_and_has_lost_its_name_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "file"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    path.unlink()
    write_whole_file(f"/dev/fd/{descriptor}", b"after")
    assert os.pread(descriptor, 10, 0) == b"after"
    os.close(descriptor)
    assert names_in(tmp_path) == []


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for path, message in (
        (tmp_path, "Is a directory"),
        (tmp_path / "none" / "file", "No such file or directory"),
        (tmp_path / "a", "Too many levels of symbolic links"),
    ):
        with pytest.raises(InputError, match=f"{path}: cannot be written: {message}"):
            write_whole_file(str(path), b"after")
    assert names_in(tmp_path) == ["a", "b"]
