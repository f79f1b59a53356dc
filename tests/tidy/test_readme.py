"""What the READMEs show is what happens: their Python runs, and every line of output they print is really printed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from demo import output_of_demo_commands
from wukong.api.decode import decode_objects
from wukong.api.placement import PlacementPolicy
from wukong.placement.compile import find_policy_problems
from wukong.placement.rules import BUILT_IN

ROOT = Path(__file__).parents[2]
READMES = ["README.md", "README.zh-CN.md"]


def blocks(name: str, language: str = "") -> list[str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    return [block for found, block in fenced if found == language]


def run(command: list[str]) -> str:
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def output_of(command: str) -> list[str]:
    """The lines that a command prints, without trailing spaces; it is not run again if the demo runs it anyway."""
    lines = output_of_demo_commands().get(command)
    if lines is None:
        lines = [line.rstrip() for line in run(["-m", *shlex.split(command)]).splitlines()]
    return lines


@pytest.mark.parametrize("name", READMES)
def test_the_python_example_runs(name: str) -> None:
    (block,) = blocks(name, "python")
    assert "shop/web-" in run(["-c", block])


@pytest.mark.slow
@pytest.mark.xdist_group("demo")  # the worker that plays the demo, which runs the same commands
def test_the_commands_print_what_the_readme_shows() -> None:
    shown = [block for block in blocks("README.md") if block.startswith("$ wukong")]
    assert len(shown) == 2
    for block in shown:
        command, *lines = block.splitlines()
        printed = output_of(command.removeprefix("$ "))
        assert [line for line in lines if line and line != "…" and line.rstrip() not in printed] == []


def test_the_policy_is_accepted_and_the_same_in_both_languages() -> None:
    (english,), (chinese,) = (blocks(name, "yaml") for name in READMES)
    assert english == chinese
    (policy,) = decode_objects(english.encode())
    assert isinstance(policy, PlacementPolicy)
    assert find_policy_problems(policy, BUILT_IN) == []


def test_both_languages_name_the_same_commands_and_stay_short() -> None:
    english, chinese = ([line for block in blocks(name) for line in block.splitlines()] for name in READMES)
    bare = [
        [line.partition("  #")[0].rstrip() for line in lines if line.startswith("wukong ")]
        for lines in (english, chinese)
    ]
    assert bare[0] == bare[1]
    assert len(bare[0]) > 10
    assert all(len((ROOT / name).read_text(encoding="utf-8").splitlines()) < 150 for name in READMES)


def test_both_languages_show_the_same_commands() -> None:
    english, chinese = ([block for block in blocks(name) if block.startswith("$ wukong")] for name in READMES)
    assert english == chinese
