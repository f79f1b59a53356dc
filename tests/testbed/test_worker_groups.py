"""Tests of one group run on one worker, also when they are in different files; the others go where there is time."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLUGINS = ["-p", "testbed.pytest_plugin", "-p", "testbed.worker_groups", "-p", "no:cacheprovider"]
FILE = """
import os
from pathlib import Path
import pytest

@pytest.mark.xdist_group("shared")
def test_in_the_group():
    Path(__file__).with_suffix(".worker").write_text(os.environ["PYTEST_XDIST_WORKER"])

@pytest.mark.parametrize("number", range(4))
def test_in_no_group(number):
    pass
"""


@pytest.mark.slow
def test_a_group_stays_on_one_worker(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"test_{number}.py").write_text(FILE)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "2",
        "--dist",
        "loadgroup",
        "--no-loadscope-reorder",
        *PLUGINS,
    ]
    options = [f"--rootdir={tmp_path}", "--import-mode=importlib", str(tmp_path)]
    result = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "20 passed" in result.stdout, result.stdout + result.stderr
    assert len({file.read_text() for file in tmp_path.glob("*.worker")}) == 1
    assert len(list(tmp_path.glob("*.worker"))) == 4
