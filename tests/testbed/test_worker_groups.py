"""Tests of one group run on one worker, also when they are in different files; who waits longest starts first."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.pytest_plugin import SharedUse
from testbed.worker_groups import GROUPS

ROOT = Path(__file__).parents[2]
PLUGINS = ["-p", "testbed.pytest_plugin", "-p", "testbed.worker_groups", "-p", "no:cacheprovider"]
IN_PARALLEL = ["-n", "2", "--dist", "loadgroup", "--no-loadscope-reorder"]
FILE = """
import os
from pathlib import Path
import pytest

def note(group):
    with Path(__file__).with_suffix(f".{group}").open("a") as file:
        file.write(os.environ["PYTEST_XDIST_WORKER"] + " ")

@pytest.mark.xdist_group("shared")
def test_in_the_group():
    note("shared")

@pytest.fixture
def FIXTURE():
    pass

def test_that_uses_what_is_shared(FIXTURE):
    note("by-fixture")

@pytest.mark.parametrize("number", range(4))
def test_quick(number):
    note(f"quick-{Path(__file__).stem}")
"""
ORDER = """
import pytest

@pytest.fixture
def testbed_programs():
    pass

def test_fifth(): pass
def test_third(testbed_programs): pass
@pytest.mark.slow
def test_fourth(): pass
@pytest.mark.slow(waits=20)
def test_second(testbed_programs): pass
@pytest.mark.slow(waits=3, real_time=True)
def test_first(testbed_programs): pass
"""
CLOSING = """
import pytest
from testbed.pytest_plugin import close_with_last_use

closed = []

@pytest.fixture(scope="session")
def shared(request):
    stack = close_with_last_use(request)
    stack.callback(lambda: closed.append(1))
    return closed

@pytest.mark.parametrize("number", range(2))
def test_that_uses_it(shared, number):
    assert shared == []

def test_after_the_last_use():
    assert closed == [1]
"""


WAITING = """
import os
from pathlib import Path
import pytest

def note(kind):
    with Path(__file__).with_suffix(f".{kind}").open("a") as file:
        file.write(f"{os.environ['PYTEST_XDIST_WORKER']}:{os.nice(0)} ")

@pytest.fixture
def testbed_programs():
    pass

@pytest.mark.slow(waits=20)
@pytest.mark.parametrize("number", range(6))
def test_that_waits(testbed_programs, number):
    note("waiting")

@pytest.mark.slow
@pytest.mark.parametrize("number", range(12))
def test_that_computes(number):
    note("computing")
"""


def run_pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", *PLUGINS, "--import-mode=importlib", f"--rootdir={folder}"]
    return subprocess.run([*command, *options, str(folder)], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_group_stays_on_one_worker(tmp_path: Path) -> None:
    fixture = next(iter(GROUPS.values())).fixture
    for number in range(4):
        (tmp_path / f"test_{number}.py").write_text(FILE.replace("FIXTURE", fixture))
    result = run_pytest(tmp_path, *IN_PARALLEL)
    assert "24 passed" in result.stdout, result.stdout + result.stderr
    for group in ("shared", "by-fixture"):
        assert len({file.read_text() for file in tmp_path.glob(f"*.{group}")}) == 1
        assert len(list(tmp_path.glob(f"*.{group}"))) == 4
    quick_ones = [file.read_text().split() for file in tmp_path.glob("*.quick-*")]
    assert [(len(workers), len(set(workers))) for workers in quick_ones] == [(4, 1)] * 4  # those of a file


@pytest.mark.slow
def test_what_waits_starts_first_and_who_waits_longest_before_the_others(tmp_path: Path) -> None:
    (tmp_path / "test_order.py").write_text(ORDER)
    result = run_pytest(tmp_path, "--collect-only", "-c", os.devnull)
    names = [line.rpartition("::test_")[2] for line in result.stdout.splitlines() if "::" in line]
    assert names == ["first", "second", "third", "fourth", "fifth"], result.stdout + result.stderr


@pytest.mark.slow
def test_workers_that_do_not_compute_run_what_waits_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "test_waiting.py").write_text(WAITING)
    result = run_pytest(tmp_path, *IN_PARALLEL, "--computing", "1")
    assert "18 passed" in result.stdout, result.stdout + result.stderr
    computing, waiting = ((tmp_path / f"test_waiting.{kind}").read_text().split() for kind in ("computing", "waiting"))
    assert set(computing) == {f"gw0:{os.nice(0) + 5}"}  # it gives way a little
    assert f"gw1:{os.nice(0)}" in waiting
    assert (len(computing), len(waiting)) == (12, 6)


@pytest.mark.slow
def test_workers_that_compute_run_what_waits_when_nothing_else_is_left(tmp_path: Path) -> None:
    (tmp_path / "test_waiting.py").write_text(WAITING.replace("range(12)", "range(0)"))
    result = run_pytest(tmp_path, *IN_PARALLEL, "--computing", "2")
    assert "6 passed" in result.stdout, result.stdout + result.stderr
    assert len((tmp_path / "test_waiting.waiting").read_text().split()) == 6


def test_what_is_shared_ends_once_with_the_last_test_that_may_use_it() -> None:
    ended: list[str] = []
    use = SharedUse({"a", "b"}, lambda: ended.append("now"))
    for nodeid, count in (("a", 0), ("other", 0), ("a", 0), ("b", 1), ("b", 1), ("other", 1)):
        use.finish(nodeid)
        assert len(ended) == count


@pytest.mark.slow
def test_a_fixture_of_the_session_may_be_closed_with_the_last_test_that_uses_it(tmp_path: Path) -> None:
    (tmp_path / "test_closing.py").write_text(CLOSING)
    result = run_pytest(tmp_path)
    assert "3 passed" in result.stdout, result.stdout + result.stderr
