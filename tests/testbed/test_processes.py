"""Processes by pid and start time: the right ones end, no others."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testbed import processes
from testbed.processes import Identity

SLEEPER = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]
SPAWNER = """
import sys, time
from pathlib import Path
from testbed import processes
print(processes.spawn(sys.argv[2:], Path(sys.argv[1])).pid, flush=True)
time.sleep(600)
"""


def test_a_process_is_itself_until_it_ends(tmp_path: Path) -> None:
    process = processes.spawn(SLEEPER, tmp_path / "log")
    identity = Identity.of(process.pid)
    assert identity is not None
    claims = [identity.is_alive]
    processes.end([identity])
    claims.append(identity.is_alive)
    assert claims == [True, False]
    assert process.wait(10) == -signal.SIGTERM
    assert Identity.of(process.pid) is None


def test_a_zombie_counts_as_ended(tmp_path: Path) -> None:
    process = processes.spawn(SLEEPER, tmp_path / "log")
    identity = Identity.of(process.pid)
    assert identity is not None
    process.kill()
    assert processes.all_gone([identity], 10)  # nobody has waited for it yet
    process.wait()


def test_another_process_that_got_the_same_pid_is_left_alone() -> None:
    own = Identity.of(os.getpid())
    assert own is not None
    predecessor = Identity(own.pid, "another start")
    assert not predecessor.is_alive
    processes.end([predecessor])  # would have ended this test


def test_a_process_that_does_not_listen_is_killed(tmp_path: Path) -> None:
    deaf = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "deaf\n"
        identity = Identity.of(process.pid)
        assert identity is not None
        processes.end([identity], term_seconds=0.2)
        assert process.wait(10) == -signal.SIGKILL


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_a_child_dies_with_a_parent_that_was_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SPAWNER, str(tmp_path / "log"), *SLEEPER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as parent:
        assert parent.stdout is not None
        child = Identity.of(int(parent.stdout.readline()))
        assert child is not None
        parent.kill()
    assert processes.all_gone([child], 10)
