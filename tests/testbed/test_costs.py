"""`pytest --costs FILE` records processor time, also that of processes which a test waits for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from testbed.costs import Cost, show

ROOT = Path(__file__).parents[2]
FILE = """
import subprocess, sys, time

SPIN = "import time\\nwhile time.process_time() < 0.3: pass"

def test_of_its_own():
    began = time.process_time()
    while time.process_time() < began + 0.3: pass

def test_by_a_child():
    subprocess.run([sys.executable, "-c", SPIN], check=True)

def test_that_waits():
    time.sleep(0.3)
"""


@pytest.mark.slow
def test_what_a_test_computes_by_itself_and_by_others_is_recorded_and_waiting_is_not(tmp_path: Path) -> None:
    (tmp_path / "test_spinning.py").write_text(FILE)
    costs_file = tmp_path / "costs.jsonl"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "testbed.costs", "-c", "/dev/null"]
    options = [f"--rootdir={tmp_path}", "--costs", str(costs_file), str(tmp_path)]
    alone = {name: value for name, value in os.environ.items() if name != "PYTEST_XDIST_WORKER"}  # no worker of ours
    result = subprocess.run([*command, *options], cwd=ROOT, env=alone, capture_output=True, text=True, check=False)
    assert "3 passed" in result.stdout, result.stdout + result.stderr
    *costs, whole = (msgspec.json.decode(line, type=Cost) for line in costs_file.read_bytes().splitlines())
    assert [(cost.processor > 0.29, cost.children > 0.29) for cost in costs] == [
        (True, False),
        (False, True),
        (False, False),
    ]
    assert costs[2].seconds >= 0.3
    assert (whole.test, whole.processor > 0.29, whole.children > 0.29) == ("", True, True)
    all_folders, *_ = show(costs_file).splitlines()
    assert all_folders == f"{whole.processor + whole.children:8.1f} s       0  all, with collection"
