"""Hostile files for every verb that reads one: our own error with a place, or an answer; in little time and memory.

A failure names reader and seed, by which `try_reader` makes the same file again. HOSTILE_SEED chooses others.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
import time
import traceback
from pathlib import Path

import pytest

from hostile.grammar import shift_seeds
from hostile.hostile_files import a_hostile_text
from hostile.readers import READERS, Reader
from wukong.errors import InputError

MOST_SECONDS = 1.0
MOST_MEGABYTES = 200  # more than before, over all cases of a reader


@pytest.fixture(autouse=True)
def _few_authorities(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kubeconfig without an authority trusts the system's: all of them are read, each time, for most of the time."""
    monkeypatch.setenv("SSL_CERT_FILE", os.devnull)
    monkeypatch.setenv("SSL_CERT_DIR", os.devnull)


def try_reader(name: str, reader: Reader, seed: int, path: Path) -> str:
    """Read one hostile file. Return what went wrong, "" if nothing did."""
    rng = random.Random(f"{name} {seed}")
    data = a_hostile_text(rng, reader.documents)
    if reader.is_lines and rng.random() < 0.8:
        data = data.replace(b"\n", b" ")
    path.write_bytes(data)
    started = time.process_time()
    try:
        reader.read(str(path))
        problem = ""
    except InputError as error:
        has_places = all(str(path) in problem or problem.startswith("--") for problem in error.problems)  # or a flag
        problem = "" if error.problems and has_places else f"no place in: {error}"
    except Exception:
        problem = traceback.format_exc()
    seconds = time.process_time() - started
    if seconds > MOST_SECONDS:
        problem += f"took {seconds:.1f} s"
    return problem and f"{name}, seed {seed}: {data[:2000]!r}\n{problem}"


def try_many(name: str, seeds: range, path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sys.stdout.write(f"{name}: seeds {seeds.start} to {seeds.stop - 1}\n")  # shown where it fails
    problems = [problem for seed in seeds if (problem := try_reader(name, READERS[name], seed, path))]
    assert not problems, f"{len(problems)} of {len(seeds)}:\n{problems[0]}"
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10 < MOST_MEGABYTES


@pytest.mark.parametrize("name", READERS)
def test_a_good_file_is_read(name: str, tmp_path: Path) -> None:
    """Otherwise the others would fail for dull reasons."""
    problems = []
    for document in READERS[name].documents:
        (tmp_path / "file").write_text(json.dumps(document))
        try:
            READERS[name].read(str(tmp_path / "file"))
        except InputError as error:
            problems.append(str(error))
    assert len(problems) < len(READERS[name].documents), problems


@pytest.mark.parametrize("name", READERS)
def test_a_hostile_file_is_told_or_read(name: str, tmp_path: Path) -> None:
    try_many(name, shift_seeds(range(60)), tmp_path / "file")


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_thousands_of_hostile_files_are_told_or_read(name: str, tmp_path: Path) -> None:
    try_many(name, shift_seeds(range(60, 1_060)), tmp_path / "file")
