"""Every command that the documents show works as written: here those that need no cluster, and all command lines."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from documented_commands import (
    NOT_RUN,
    ON_A_CLUSTER,
    PROGRAMS,
    ROOT,
    Command,
    list_commands,
    words_of,
    write_files,
)
from testbed.__main__ import main as bed_commands
from testbed.fidelity.command import fidelity
from wukong.cli import main
from wukong.cli.main import wukong

SHELL_SIGNS = frozenset("|<>;&")


def test_every_line_of_a_shell_block_is_a_command_and_every_list_is_about_documented_ones() -> None:
    commands = list_commands()
    assert len(commands) > 40
    assert [command for command in commands if words_of(command.text)[0] not in PROGRAMS] == []
    documented = {command.text for command in commands}
    assert sorted((NOT_RUN.keys() | ON_A_CLUSTER) - documented) == []
    assert sorted(NOT_RUN.keys() & ON_A_CLUSTER) == []


def test_command_lines_that_are_not_run_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options that are no more, verbs and targets included."""
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    targets = {line.split(":")[0] for line in (ROOT / "Makefile").read_text("utf-8").splitlines() if ":" in line}
    for text in NOT_RUN:
        match words_of(text):
            case ["wukong", *arguments]:
                read_command_line(wukong, arguments)
            case ["python", "-m", "testbed", "fidelity", *arguments]:
                fidelity.make_context("fidelity", list(arguments))
            case ["python", "-m", "testbed", *arguments]:
                read_command_line(bed_commands, arguments)
            case ["make", target]:
                assert target in targets
            case ["pip", "install", folder]:
                assert (ROOT / folder / "pyproject.toml").is_file()
            case _:
                pytest.fail(f"nobody reads {text}")


def read_command_line(command: click.Command, arguments: list[str]) -> None:
    """Parse it down to the verb, and run nothing. Raises a click.UsageError as the command line would."""
    context = command.make_context(command.name, list(arguments), resilient_parsing=isinstance(command, click.Group))
    if isinstance(command, click.Group):
        name, verb, rest = command.resolve_command(context, list(arguments))
        assert verb is not None, f"no command {name}"
        read_command_line(verb, rest)


@pytest.mark.slow
def test_every_command_that_needs_no_cluster_runs_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    alone = [command for command in list_commands() if command.text not in NOT_RUN.keys() | ON_A_CLUSTER]
    assert len(alone) > 15
    problems = []
    for command in alone:
        code = run_alone(command)
        out, err = capsys.readouterr()
        if code != 0:
            problems.append(f"{command.place}: {command.text}\nended with {code}\n{out[-300:]}{err[-500:]}")
        elif not out and "--out" not in command.text and ">" not in command.text:
            problems.append(f"{command.place}: {command.text}\nprinted nothing")
    assert not problems, "\n\n".join(problems)


def run_alone(command: Command) -> int:
    """In this process, which is quicker, where no shell is needed."""
    words = words_of(command.text)
    if words[0] == "wukong" and not SHELL_SIGNS & set(command.text):
        return main(words[1:])
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    assert shutil.which("wukong", path=environment["PATH"]), "make .venv installs it"
    return subprocess.run(["bash", "-o", "pipefail", "-c", command.text], env=environment, check=False).returncode
