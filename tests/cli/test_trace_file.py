"""The trace is written while the story goes on; there is a whole one in the end, or what was there before."""

from __future__ import annotations

import errno
import io
import os
import stat
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from wukong.cli.views.trace_file import TraceFile
from wukong.errors import InputError

SCENARIO = b"{nodes: [{name: n1}]}"


def test_the_digest_of_a_story_is_that_of_its_trace(wukong: Any) -> None:
    run = wukong("sim", "run", "-", "-o", "json", "--trace", "trace.jsonl", stdin=SCENARIO)
    assert run.code == 0
    assert sha256(Path("trace.jsonl").read_bytes()).hexdigest() in run.out


def test_a_story_that_is_not_told_leaves_the_old_trace(wukong: Any) -> None:
    Path("trace.jsonl").write_text("before\n", "utf-8")
    bad = b"{nodes: [{name: n1}], timeline: [{at: 1s, kill: n1}, {at: 2s, kill: n1}]}"
    run = wukong("sim", "run", "-", "--trace", "trace.jsonl", stdin=bad)
    assert run.code == 2
    assert Path("trace.jsonl").read_text("utf-8") == "before\n"
    assert [path.name for path in Path().iterdir()] == ["trace.jsonl"]


def test_lines_are_on_disk_before_the_story_is_over(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    with TraceFile(str(path)) as file:
        for _ in range(10_000):
            file.write("a line\n")
        assert sum(beside.stat().st_size for beside in tmp_path.iterdir()) > 50_000
        assert not path.exists()
    assert path.read_text("utf-8") == "a line\n" * 10_000


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with TraceFile(str(path)) as file:
        file.write_all(["one\n", "two\n"])
    assert os.read(reader, 100) == b"one\ntwo\n"
    os.close(reader)
    assert path.is_fifo()


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "trace.jsonl", tmp_path / "link"
    target.write_text("before\n", "utf-8")
    target.chmod(0o640)
    link.symlink_to(target)
    with TraceFile(str(link)) as file:
        file.write("after\n")
        assert target.read_text("utf-8") == "before\n"
    assert link.is_symlink()
    assert (target.read_text("utf-8"), stat.S_IMODE(target.stat().st_mode)) == ("after\n", 0o640)
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["trace.jsonl"]


def test_a_file_that_is_open_and_has_lost_its_name_is_written_to(tmp_path: Path) -> None:
    """So is /dev/stdout, where that leads to a file that is gone."""
    path = tmp_path / "file"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    path.unlink()
    with TraceFile(f"/dev/fd/{descriptor}") as file:
        file.write("after\n")
    assert os.pread(descriptor, 10, 0) == b"after\n"
    os.close(descriptor)
    assert list(tmp_path.iterdir()) == []


def test_a_new_trace_can_be_read_by_others(tmp_path: Path) -> None:
    with TraceFile(str(tmp_path / "trace.jsonl")) as file:
        file.write("after\n")
    assert stat.S_IMODE((tmp_path / "trace.jsonl").stat().st_mode) == 0o644


@pytest.mark.parametrize("failing", ["write", "close"])
def test_a_full_disk_leaves_the_old_trace_and_nothing_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text("before\n", "utf-8")

    class Full(io.StringIO):
        def fail(self, *_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    setattr(Full, failing, Full.fail)

    def open_full(handle: int, *_: object, **__: object) -> Full:
        os.close(handle)
        return Full()

    monkeypatch.setattr("wukong.cli.views.trace_file.os.fdopen", open_full)
    with pytest.raises(InputError, match="cannot be written: No space left"), TraceFile(str(path)) as file:
        file.write("after\n")
    assert path.read_text("utf-8") == "before\n"
    assert [path.name for path in tmp_path.iterdir()] == ["trace.jsonl"]


def test_without_a_path_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with TraceFile(None) as file:
        file.write("dropped\n")
    assert list(tmp_path.iterdir()) == []
