"""Plays examples/demo.sh once per worker, for tests of the demo itself and of the documents that show parts of it."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROMPT = "$ "


@cache
def play_demo() -> str:
    """What the demo prints without a terminal. Takes a quarter of a minute: it decides a whole recording again."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = ["bash", "examples/demo.sh"]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def output_of_demo_commands() -> dict[str, list[str]]:
    """The lines that each command of the demo prints, without trailing spaces."""
    outputs: dict[str, list[str]] = {}
    command = ""
    for line in play_demo().splitlines():
        if line.startswith(PROMPT):
            command = line.removeprefix(PROMPT)
        else:
            outputs.setdefault(command, []).append(line.rstrip())
    return outputs
