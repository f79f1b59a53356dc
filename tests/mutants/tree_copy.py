"""A copy of the project's tree in which mutants are tried, so that the work tree is never changed.

Called by __main__.py. Bytecode is cached in the copy. It is known by a file's size and whole seconds of its time, so
every version of a file that is written here gets a time of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

_PYTEST = ("-q", "-x", "-p", "no:cacheprovider", "-p", "mutants.quick_examples", "--no-header", "--tb=no")
QUICK = ("--quick",)
SLOW = ("-m", "slow and not control_plane")


class RunResult(NamedTuple):
    """How the tests ended. `noticed_by` is the test that failed, if one did."""

    has_passed: bool
    noticed_by: str
    seconds: float
    is_too_long: bool = False

    @property
    def test_file(self) -> str:
        return self.noticed_by.partition("::")[0]


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
        """Run the tests in this order up to the first that fails. One that takes too long has failed."""
        bases = [*(str(self.folder / base) for base in ("src", "tests", "")), str(Path(__file__).parents[1])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(bases), "PYTHONHASHSEED": "0"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-m", "pytest", *_PYTEST, *which, *paths]
        begin = time.monotonic()
        try:
            process = subprocess.run(
                command,
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=limit_seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return RunResult(False, f"no end after {limit_seconds:.0f} s", time.monotonic() - begin, True)
        words = [line.split() for line in process.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        has_passed = process.returncode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        noticed_by = words[0][1] if words else "" if has_passed else process.stderr.strip()[-200:]
        return RunResult(has_passed, noticed_by, time.monotonic() - begin)
