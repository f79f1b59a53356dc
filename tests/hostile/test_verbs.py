"""Hostile files through the command line: an exit code, a message, no traceback, and nothing that moves a terminal."""

from __future__ import annotations

import io
import json
import random
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hostile import good_files
from hostile.grammar import shift_seeds
from hostile.hostile_files import a_hostile_text
from hostile.readers import READERS
from wukong.cli import main

# The verb and its other files; FILE is the hostile one.
VERBS: dict[str, list[list[str]]] = {
    "snapshot": [
        ["capacity", "-s", "FILE", "-f", "pod.json"],
        ["explain", "-s", "FILE", "-f", "pod.json", "-o", "wide"],
        ["explain", "-s", "FILE", "default/rich", "--extender"],
    ],
    "snapshot to play on": [["sim", "run", "-s", "FILE", "-f", "pod.json"]],
    "manifest": [["explain", "-s", "snapshot.json", "-f", "FILE"], ["capacity", "-s", "snapshot.json", "-f", "FILE"]],
    "manifest to play": [["sim", "run", "scenario.json", "-f", "FILE"]],
    "policy": [["explain", "-s", "snapshot.json", "-f", "pod.json", "--policy", "FILE"]],
    "wukongs": [["lint", "-f", "FILE"], ["lint", "-f", "FILE", "-s", "snapshot.json", "-o", "json"]],
    "scheduler config": [["capacity", "-s", "snapshot.json", "-f", "pod.json", "--scheduler-config", "FILE"]],
    "prices": [["explain", "-s", "snapshot.json", "-f", "pod.json", "--policy", "policy.json", "--prices", "FILE"]],
    "latencies": [
        ["explain", "-s", "snapshot.json", "-f", "pod.json", "--policy", "policy.json", "--latencies", "FILE"]
    ],
    "scenario": [["sim", "run", "FILE"]],
    "recording": [["replay", "FILE", "-o", "wide"]],
}
MOST_SECONDS = 20.0  # a scenario may be hours of a cluster


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    good: dict[str, Any] = {
        "pod": good_files.MANIFESTS[0],
        "snapshot": good_files.SNAPSHOTS[0],
        "policy": good_files.POLICIES[1],
        "scenario": {"nodes": [{"name": "a"}], "until": "10m"},
    }
    for name, document in good.items():
        Path(f"{name}.json").write_text(json.dumps(document))
    return tmp_path


def run(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    sys.stdin = io.TextIOWrapper(io.BytesIO(b""))
    code = main(arguments)
    out, err = capsys.readouterr()
    return code, out + err


def try_verbs(name: str, seeds: range, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reader = READERS[name]
    for seed in seeds:
        rng = random.Random(f"verb {name} {seed}")
        data = a_hostile_text(rng, reader.documents)
        (folder / "FILE").write_bytes(data.replace(b"\n", b" ") if reader.is_lines else data)
        arguments = rng.choice(VERBS[name])
        started = time.process_time()
        try:
            code, text = run(arguments, capsys)
        except Exception as error:
            raise AssertionError(f"{name}, seed {seed}: {' '.join(arguments)}: {data[:2000]!r}") from error
        assert code in (0, 1, 2), f"{name}, seed {seed}: {text}"
        assert "Traceback" not in text
        assert not find_control_characters(text), f"{name}, seed {seed}: {text!r}"
        assert time.process_time() - started < MOST_SECONDS, f"{name}, seed {seed}"


def find_control_characters(text: str) -> list[str]:
    return re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]", text)


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_survives_hostile_files(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try_verbs(name, shift_seeds(range(8)), folder, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("name", VERBS)
def test_a_verb_survives_many_hostile_files(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try_verbs(name, shift_seeds(range(8, 150)), folder, capsys)
