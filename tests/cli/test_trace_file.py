"""The trace is written while the story goes on; there is a whole one in the end, or what was there before."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from wukong.cli.views.trace_file import TraceFile

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


def test_without_a_path_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with TraceFile(None) as file:
        file.write("dropped\n")
    assert list(tmp_path.iterdir()) == []
