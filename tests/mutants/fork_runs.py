"""Runs the session of forked_trial.py over the mutants of functions: builds its tasks, reads what it found.

Which tests are tried with a mutant is what function_map.py has recorded: those that enter the function, those of the
nearest files first. Called by __main__.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from mutants.forked_trial import Task, TaskResult, find_function
from mutants.function_map import FunctionMap
from mutants.mutations import Mutant

NEAREST_FILES = 6
MOST_SECONDS = 60.0  # of processor time of the tests of one mutant, as they took when the map was made
LEAST_LIMIT, TIMES_SLOWER = 20.0, 4
_PYTEST = ("-q", "-x", "-p", "no:cacheprovider", "-p", "mutants.quick_examples", "--no-header", "--tb=no", "--quick")


def choose_tests(function_map: FunctionMap, path: str, name: str, nearest: list[str]) -> tuple[list[str], float]:
    """The tests that enter a function, and how long they take: as many as there is time for."""
    near = set(nearest[:NEAREST_FILES])
    runs = sorted(function_map.list_tests(path, name), key=lambda run: run.test.partition("::")[0] not in near)
    tests, seconds = list[str](), 0.0
    for run in runs:
        if seconds + run.seconds <= MOST_SECONDS:
            tests.append(run.test)
            seconds += run.seconds
    return tests, seconds


def build_tasks(
    mutants: Iterable[Mutant], sources: dict[str, bytes], function_map: FunctionMap, nearest: dict[str, list[str]]
) -> Iterator[tuple[Mutant, Task]]:
    """Of the mutants that lie in a function which some test enters."""
    for mutant in mutants:
        name = find_function(sources[mutant.path], mutant.start, mutant.end)
        tests, seconds = choose_tests(function_map, mutant.path, name, nearest[mutant.path]) if name else ([], 0.0)
        if tests:
            yield mutant, Task.of(mutant, name, tests, max(LEAST_LIMIT, TIMES_SLOWER * seconds))


def try_in_forks(root: Path, tasks: list[Task], base: Path) -> list[TaskResult]:
    """One result for each task, in order. `base` is the folder in which the package of this module is."""
    if not tasks:
        return []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        file = Path(folder) / "tasks.json"
        file.write_bytes(msgspec.json.encode(tasks))
        files = sorted({test.partition("::")[0] for task in tasks for test in task.tests})
        paths = [str(root / "src"), str(root / "tests"), str(root), str(base)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0"}
        command = [sys.executable, "-m", "pytest", *_PYTEST, "-p", "mutants.forked_trial", f"--mutants={file}", *files]
        run = subprocess.run(
            command, cwd=root, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        output = file.with_suffix(".results")
        lines = output.read_text("utf-8").splitlines() if output.exists() else []
        if len(lines) != len(tasks):
            raise RuntimeError(f"the tests could not be run: {run.stdout[-2000:]}{run.stderr[-2000:]}")
        return [msgspec.json.decode(line, type=TaskResult) for line in lines]
