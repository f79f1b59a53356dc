"""Child processes that cannot be lost: named by pid *and* start time, and dead when their parent is.

control_plane.py starts the components with it, supervisor.py ends what a crash left behind. A process is never looked
up by its name: a recorded pid that was given to somebody else meanwhile has another start time and is left alone.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec

TERM_SECONDS = 5.0
# Asks Linux (PR_SET_PDEATHSIG) for SIGKILL when the parent ends, then becomes the program it was given. A process of
# its own and not a `preexec_fn`, for between fork and exec of a process with threads no Python can safely run.
DIE_WITH_PARENT = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, int(signal.SIGKILL))
if os.getppid() != int(sys.argv[1]):
    sys.exit("the parent was gone already")
os.execv(sys.argv[2], sys.argv[2:])
"""
OUTLIVING: list[subprocess.Popen[bytes]] = []  # kept, for Python complains of a process that nobody waited for


class Identity(msgspec.Struct, frozen=True):
    """One process and no other, even after its pid was used again."""

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> Identity | None:
        """The process that has this pid now; none if there is none, or only its zombie."""
        started = start_of(pid)
        return cls(pid, started) if started else None

    @property
    def is_alive(self) -> bool:
        return start_of(self.pid) == self.started


def spawn(
    argv: Sequence[str],
    log: Path,
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    outlives: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a process that writes to `log`, in a session of its own so that Ctrl-C reaches only us.

    `environment` is added to ours, where it does not name the same.

    Unless it `outlives` us it dies when we do, however we die. Linux watches the *thread* that started it: call this
    from one that lives as long as the process should.
    """
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*([] if outlives else dying_with(os.getpid())), *argv],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env={**(environment or {}), **os.environ},
            start_new_session=True,
        )
    if outlives:
        OUTLIVING.append(process)
    return process


def dying_with(parent: int) -> list[str]:
    """What to put before an argv. Only Linux has it; elsewhere `python -m testbed down` clears up."""
    if sys.platform != "linux":
        return []
    return [sys.executable, "-I", "-S", "-c", DIE_WITH_PARENT, str(parent)]


def end(processes: Iterable[Identity], *, term_seconds: float = TERM_SECONDS) -> None:
    """Ask all of them to stop, wait for them together, kill those that did not."""
    living = [process for process in processes if process.is_alive]
    for process in living:
        send(process, signal.SIGTERM)
    if not all_gone(living, term_seconds):
        for process in living:
            send(process, signal.SIGKILL)
        all_gone(living, term_seconds)


def reap() -> None:
    """Take note of those that outlived their call and have ended since."""
    OUTLIVING[:] = [process for process in OUTLIVING if process.poll() is None]


@atexit.register
def leave_running() -> None:
    """They are meant to go on without us: Python need not complain."""
    for process in OUTLIVING:
        process.returncode = 0


def all_gone(processes: Iterable[Identity], seconds: float) -> bool:
    waiting, deadline = list(processes), time.monotonic() + seconds
    while waiting := [process for process in waiting if process.is_alive]:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def send(process: Identity, number: signal.Signals) -> None:
    if process.is_alive:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


def start_of(pid: int) -> str:
    """When the process was started, in words that no other process with this pid shares; empty if it is gone."""
    if not Path("/proc/self/stat").exists():
        shown = subprocess.run(
            ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
        )
        return "" if shown.stdout.startswith("Z") else " ".join(shown.stdout.split()[1:])
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = stat[stat.rindex(")") + 2 :].split()  # the command before it may contain spaces and brackets
    state, ticks = fields[0], fields[19]
    return "" if state in "ZX" else f"{boot()} {ticks}"


@cache
def boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
