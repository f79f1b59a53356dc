"""A copy of the project's tree in which mutants are tried, so that the work tree is never changed.

Called by __main__.py. Bytecode is cached in the copy. It is known by a file's size and whole seconds of its time, so
every version of a file that is written here gets a time of its own. Limits are of processor time: on a busy machine a
run takes many times as long by the clock, and says nothing about the mutant.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

_PYTEST = ("-q", "-x", "-p", "no:cacheprovider", "-p", "mutants.quick_examples", "--no-header", "--tb=no")
QUICK = ("--quick",)
SLOW = ("-m", "slow and not control_plane")
_CLOCK_PER_PROCESSOR_TIME = 10  # a run that only waits ends, too


class RunResult(NamedTuple):
    """How the tests ended. `noticed_by` is the test that failed, if one did; the seconds are of processor time."""

    has_passed: bool
    noticed_by: str
    seconds: float
    is_too_long: bool = False

    @property
    def test(self) -> str:
        """The function that noticed it, with all its parameters; a file that could not be read."""
        return self.noticed_by.partition("[")[0]


class TreeCopy:
    def __init__(self, root: Path, folder: Path) -> None:
        self.folder = folder
        self._times = count(1_000_000_000)
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=root, check=True, capture_output=True, text=True).stdout
        for name in filter(None, names.split("\0")):
            if (root / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, folder / name)

    def write(self, path: str, source: bytes) -> None:
        file = self.folder / path
        file.write_bytes(source)
        moment = next(self._times)
        os.utime(file, (moment, moment))

    def run_tests(
        self, paths: Sequence[str], limit_seconds: float | None = None, which: Sequence[str] = QUICK
    ) -> RunResult:
        """Run the tests in this order up to the first that fails. A run beyond the limit has failed, too."""
        bases = [*(str(self.folder / base) for base in ("src", "tests", "")), str(Path(__file__).parents[1])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(bases), "PYTHONHASHSEED": "0"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-m", "pytest", *_PYTEST, *which, *paths]
        begin = _read_processor_seconds()
        try:
            process = subprocess.run(
                command,
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=None if limit_seconds is None else limit_seconds * _CLOCK_PER_PROCESSOR_TIME,
                preexec_fn=partial(signal.setitimer, signal.ITIMER_PROF, limit_seconds or 0.0),  # 0: no limit
                check=False,
            )
            is_too_long = process.returncode == -signal.SIGPROF
        except subprocess.TimeoutExpired:
            is_too_long = True
        seconds = _read_processor_seconds() - begin
        if is_too_long:
            return RunResult(False, f"no end after {limit_seconds:.0f} s", seconds, True)
        words = [line.split() for line in process.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        has_passed = process.returncode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        noticed_by = words[0][1] if words else "" if has_passed else process.stderr.strip()[-200:]
        return RunResult(has_passed, noticed_by, seconds)


def _read_processor_seconds() -> float:
    """Of the processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
