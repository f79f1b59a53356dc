"""Builds the control plane from Go modules, once: the program is kept in the user's cache under the hash of its source.

programs.py calls it, and `python -m testbed build` before the tests. It never writes to the repository.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.errors import TestbedError, UnavailableError

SOURCE = Path(__file__).parent / "controlplane"
SOURCE_FILES = ("go.mod", "go.sum", "main.go")
PROGRAM = "controlplane"
THREADS = 2
PROGRESS_SECONDS = 10.0

Say = Callable[[str], None]


def built(say: Say) -> Path:
    """The program; built first if it is not in the cache. Two processes that ask at once build it once."""
    program = cached_program()
    if program.exists():
        return program
    go = shutil.which("go")
    if go is None:
        raise UnavailableError(
            "the control plane is not built and there is no Go on the PATH to build it. Install Go 1.25 or newer "
            "(https://go.dev/dl), or set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver, "
            "kube-controller-manager and kube-scheduler"
        )
    program.parent.mkdir(parents=True, exist_ok=True)
    with locked(program.parent / "lock", on_wait=lambda: say("another process builds the control plane: waiting")):
        if not program.exists():
            build(go, program, say)
    return program


def cached_program() -> Path:
    return cache_folder() / source_hash() / PROGRAM


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wukong" / "testbed"


def source_hash() -> str:
    """Of everything the program is made of, and of the kind of machine it runs on."""
    digest = hashlib.sha256(repr((link_flags(), sys.platform, platform.machine())).encode())
    for name in SOURCE_FILES:
        digest.update(f"\0{name}\0".encode() + (SOURCE / name).read_bytes())
    return digest.hexdigest()[:16]


def kubernetes_version() -> str:
    """The version that go.mod pins, such as `v1.35.8`."""
    pinned = re.search(r"^\s*k8s\.io/kubernetes (v[\d.]+)$", (SOURCE / "go.mod").read_text(), re.MULTILINE)
    assert pinned, "go.mod requires k8s.io/kubernetes"
    return pinned[1]


def link_flags() -> str:
    """Without the version set here the server would call itself v0.0.0-master+$Format."""
    version = kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".")
    named = {
        "k8s.io/component-base/version.gitVersion": version,
        "k8s.io/component-base/version.gitMajor": major,
        "k8s.io/component-base/version.gitMinor": minor,
        "k8s.io/client-go/pkg/version.gitVersion": version,
    }
    return " ".join(["-s -w", *(f"-X {name}={value}" for name, value in named.items())])


def build(go: str, program: Path, say: Say) -> None:
    began = time.monotonic()
    say(f"building the Kubernetes {kubernetes_version()} control plane, once; about 6 minutes on 2 cores")
    packages = len(run([go, "list", "-deps", "."], downloads(say)))
    with tempfile.TemporaryDirectory(dir=program.parent) as folder:
        unfinished = Path(folder, PROGRAM)
        command = [
            go,
            "build",
            "-v",
            "-p",
            str(THREADS),
            "-trimpath",
            "-ldflags",
            link_flags(),
            "-o",
            str(unfinished),
            ".",
        ]
        run(command, compiled(say, packages))
        unfinished.replace(program)  # nobody ever sees half a program
    say(f"built in {time.monotonic() - began:.0f} s, {program.stat().st_size / 1e6:.0f} MB: {program}")


def run(command: list[str], progress: Callable[[str], None]) -> list[str]:
    """Run Go in the source folder; each line it says goes to `progress`. What it prints is the result."""
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    nice = ["nice"] if shutil.which("nice") else []
    with (
        tempfile.TemporaryFile("w+") as output,
        subprocess.Popen(
            [*nice, *command], cwd=SOURCE, env=environment, stdout=output, stderr=subprocess.PIPE, text=True
        ) as process,
    ):
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            progress(line)
        if process.wait() != 0:
            raise TestbedError(f"`{' '.join(command[:2])}` failed in {SOURCE}:\n{''.join(said[-20:])}")
        output.seek(0)
        return output.read().splitlines()


def downloads(say: Say) -> Callable[[str], None]:
    tick, count = Ticker(), 0

    def progress(line: str) -> None:
        nonlocal count
        count += line.startswith("go: downloading")
        if tick.is_due():
            say(f"  downloaded {count} modules, last {line.split()[2] if count else ''}")

    return progress


def compiled(say: Say, total: int) -> Callable[[str], None]:
    tick, count = Ticker(), 0

    def progress(line: str) -> None:
        nonlocal count
        count += 1
        if tick.is_due():
            say(f"  {min(count, total)}/{total} packages, last {line.strip()}")

    return progress


class Ticker:
    """True now and then: a line of progress every ten seconds is enough."""

    def __init__(self) -> None:
        self.next = time.monotonic() + PROGRESS_SECONDS

    def is_due(self) -> bool:
        now = time.monotonic()
        if now < self.next:
            return False
        self.next = now + PROGRESS_SECONDS
        return True


@contextmanager
def locked(path: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """One process at a time; the kernel lets go when the holder dies."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
