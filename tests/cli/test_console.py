"""How things are printed: no colour where nobody sees it, no bar where nobody waits, whole lines for programs."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from cli.conftest import Wukong
from cli.manifests import node, pod, write_json, write_yaml
from wukong.cli.views import console
from wukong.errors import InputError

ESCAPE = "\x1b"


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    write_json(tmp_path / "cluster.json", node("a"), node("b"))
    write_yaml(tmp_path / "web.yaml", pod("web"))


def on_a_terminal(tmp_path: Path, *arguments: str, **environment: str) -> str:
    """What a terminal receives when wukong runs on it."""
    master, slave = pty.openpty()
    clean = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "TERM")}
    with subprocess.Popen(
        [sys.executable, "-m", "wukong", *arguments],
        cwd=tmp_path,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**clean, "TERM": "xterm-256color", "COLUMNS": "100", **environment},
    ) as process:
        os.close(slave)
        received = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # the terminal is closed once the process has ended
                break
            if not part:
                break
            received += part
        assert process.wait() == 0
    os.close(master)
    return received.decode()


def test_a_terminal_sees_colour(tmp_path: Path) -> None:
    assert f"{ESCAPE}[1;32mPod default/web" in on_a_terminal(
        tmp_path, "explain", "-s", "cluster.json", "-f", "web.yaml"
    )


def test_a_terminal_sees_no_colour_if_no_color_is_set(tmp_path: Path) -> None:
    text = on_a_terminal(tmp_path, "explain", "-s", "cluster.json", "-f", "web.yaml", NO_COLOR="1")
    assert "Pod default/web fits on 2 of 2 nodes" in text
    assert "[32m" not in text
    assert ";32m" not in text


def test_elsewhere_there_is_no_colour_no_padding_and_no_wrapping(wukong: Wukong, tmp_path: Path) -> None:
    long_names = [node("x" * 60 + str(number)) for number in range(3)]
    write_json(tmp_path / "cluster.json", *long_names)
    run = wukong("explain", "-s", "cluster.json", "-f", "web.yaml")
    assert ESCAPE not in run.out
    assert run.out.splitlines()[3].startswith(f"★  {'x' * 60}0, {'x' * 60}1, {'x' * 60}2")
    assert not any(line.endswith(" ") for line in run.out.splitlines())


def test_a_bar_shows_only_after_a_moment_and_only_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr("wukong.cli.views.console.time.monotonic", lambda: now)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    with console.progress("Placing") as tell:
        now = 9.0
        tell(1, 2)
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    with console.progress("Placing") as tell:
        tell(1, 2)
    assert "Placing" not in capsys.readouterr().err
    with console.progress("Placing") as tell:
        now = 18.0
        tell(1, 2)
    assert "Placing" in capsys.readouterr().err


def test_help_of_every_verb_has_an_example(wukong: Wukong) -> None:
    for verb in ("replay", "capacity", "explain"):
        run = wukong(verb, "--help")
        assert run.code == 0
        assert f"Example:\n    wukong {verb} " in run.out
        assert "-o, --output [json|yaml|wide]" in run.out


def test_a_script_sees_the_exit_code_and_clean_json(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "wukong", "capacity", "-s", "cluster.json", "-f", "web.yaml", "-o", "json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stdout[0], result.stdout[-2:]) == (0, "{", "}\n")
    assert all(line.startswith("note: ") for line in result.stderr.splitlines())


def test_a_bad_file_ends_a_script_with_2_and_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "wukong", "explain", "-s", "no.json", "-f", "web.yaml"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (2, "", "error: no.json: no such file.\n")


@pytest.mark.parametrize(
    ("number", "words", "expected"),
    [
        (0, ("node",), "0 nodes"),
        (1, ("node",), "1 node"),
        (2, ("policy", "policies"), "2 policies"),
        (5000, ("node",), "5,000 nodes"),
    ],
)
def test_things_are_counted_in_words(number: int, words: tuple[str, ...], expected: str) -> None:
    assert console.count(number, *words) == expected


class _Answers(io.StringIO):
    """What somebody types at a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("text", "is_yes"), [("y\n", True), ("YES\n", True), ("\n", False), ("no\n", False), ("", False)]
)
def test_only_a_plain_yes_is_an_answer(
    text: str, is_yes: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", _Answers(text))
    assert console.ask("Change it?") is is_yes
    assert capsys.readouterr() == ("", "Change it? [y/N] ")


def test_where_nobody_sits_it_is_said_how_to_agree_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    with pytest.raises(InputError, match="say --yes"):
        console.ask("Change it?")
