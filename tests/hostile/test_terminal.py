"""Whatever stands in the names and texts of a cluster or file, a terminal and a log only ever get to see it.

Escape sequences are planted in one text after the other of what each verb reads: nothing but newlines and tabs may
come out of it, and -o json and yaml still mean the same.
"""

from __future__ import annotations

import io
import json
import logging
import random
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.text import Text

from hostile import good_files
from hostile.hostile_files import places_of
from hostile.readers import READERS
from hostile.test_verbs import VERBS, find_control_characters, folder, run
from wukong.cli.views import console
from wukong.cli.views.escaping import escape, escape_json, escape_line
from wukong.cli.views.live_view import LiveView
from wukong.cli.views.log_lines import log_to_stderr
from wukong.cli.views.table import Table

__all__ = ["folder"]  # a fixture
PLANTED = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e[red]\r\x7f\x85\u2028"
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
OUTPUTS = {
    "capacity": ["json", "yaml", "wide"],
    "explain": ["json", "yaml", "wide"],
    "replay": ["json", "yaml", "wide"],
}


def plant(rng: random.Random, document: Any) -> Any:
    """The document with the sequences in one of its texts or names, or in several."""
    copy = json.loads(json.dumps(document))
    places = [(holder, name) for holder, name in places_of(copy) if isinstance(holder[name], str)]
    for holder, name in rng.sample(places, min(len(places), rng.choice([1, 1, 1, 2, 9]))):
        if isinstance(holder, dict) and rng.random() < 0.2:
            holder[f"{name}{PLANTED}"] = holder.pop(name, "")
        elif name in (holder if isinstance(holder, dict) else range(len(holder))):
            holder[name] = f"{holder[name]}{PLANTED}" if rng.random() < 0.7 else PLANTED
    return copy


def plant_and_run(name: str, seed: int, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = random.Random(f"terminal {name} {seed}")
    (folder / "FILE").write_text(json.dumps(plant(rng, rng.choice(READERS[name].documents))))
    arguments = [*rng.choice(VERBS[name])]
    form = rng.choice(["", *OUTPUTS.get(arguments[0], ["json", "yaml"])])
    if "-o" not in arguments and form:
        arguments += ["-o", form]
    code, text = run(arguments, capsys)
    assert code in (0, 1, 2)
    assert not find_control_characters(text), f"{name}, seed {seed}: {' '.join(arguments)}: {text!r}"


@pytest.mark.parametrize("name", VERBS)
def test_nothing_planted_reaches_the_terminal(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(8):
        plant_and_run(name, seed, folder, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("name", VERBS)
def test_nothing_planted_reaches_the_terminal_in_many(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in range(8, 120):
        plant_and_run(name, seed, folder, capsys)


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, *parts: console.Part) -> str:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    console.show(*parts)
    return terminal.getvalue()


def test_on_a_terminal_there_are_our_colours_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table("NAME", "PODS")
    table.add_row(f"[bold]a[/bold]{PLANTED}", "1", style="red")
    shown = on_a_terminal(monkeypatch, Text(f"x{PLANTED}", style="green"), f"[red]y{PLANTED}", table)
    assert COLOURS.search(shown)
    assert not find_control_characters(COLOURS.sub("", shown)), repr(shown)
    for text in ("[red]y", "[bold]a[/bold]", r"\x1b]0;title\x07", r"\u202e"):
        assert text in COLOURS.sub("", shown)


def test_the_live_view_shows_names_as_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    safe = console.SafeConsole(stderr=False)
    safe.print(LiveView(safe)._join_lines([[(f"a{PLANTED}", "red")]]))
    assert not find_control_characters(COLOURS.sub("", terminal.getvalue()))


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_log_shows_what_it_is_about_as_text(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    root = logging.getLogger()
    before, level = [*root.handlers], root.level
    try:
        log_to_stderr(form)
        logging.getLogger("wukong.test").warning("about %s", PLANTED, extra={"pod": f"{PLANTED}\nfaked line"})
    finally:
        root.handlers[:], root.level = before, level
    text = stream.getvalue()
    assert not find_control_characters(text)
    assert len(text.splitlines()) == 1
    if form == "json":
        assert json.loads(text)["pod"] == f"{PLANTED}\nfaked line"


def test_documents_keep_their_meaning() -> None:
    document = {PLANTED: [PLANTED, "plain", "ä", "\U000e0041", "a\nb\tc"], "n": {"x": f"- {PLANTED}: #"}}
    for form, load in (("json", json.loads), ("yaml", yaml.safe_load)):
        text = console.document_text(document, form)
        assert not find_control_characters(text)
        assert "ä" in text
        assert load(text) == document


def test_a_snapshot_on_standard_output_keeps_its_meaning(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    good = json.dumps(good_files.SNAPSHOTS[0]).encode()
    planted = json.dumps({"a": PLANTED}, ensure_ascii=False).encode()
    for text in (good, planted):
        console.show_json(text)
        sys.stdout.flush()
        shown = capsysbinary.readouterr().out
        assert json.loads(shown) == json.loads(text)
        assert not find_control_characters(shown.decode())


def test_every_character_is_either_harmless_or_escaped() -> None:
    for code in (*range(0x3000), *range(0xD800, 0xE000), *range(0xFE00, 0x10000), *range(0xE0000, 0xE0080)):
        character = chr(code)
        for shown in (escape(character), escape_line(character), escape_json(character)):
            assert not find_control_characters(shown), hex(code)
            shown.encode()  # no half of a pair is left
    assert escape("a\nb\tc ä 猴 \U0001f412") == "a\nb\tc ä 猴 \U0001f412"
    assert escape_line("a\nb") == r"a\nb"
