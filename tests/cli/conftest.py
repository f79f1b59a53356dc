"""Runs the command line in this process, the way the script does, and gives what came of it."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from wukong.cli import main


class Run(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """What -o json printed."""
        return json.loads(self.out)

    @property
    def notes(self) -> list[str]:
        return [line for line in self.err.splitlines() if line.startswith("note: ")]


Wukong = Callable[..., Run]


@pytest.fixture
def wukong(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Wukong:
    """`wukong("capacity", "-s", "cluster.json", stdin=b"…")`, in a directory of its own."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object, stdin: bytes = b"") -> Run:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Run(code, out, err)

    return run
