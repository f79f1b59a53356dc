"""Builds programs from Go modules, once: each is kept in the user's cache under the hash of its source.

programs.py calls it for the control plane and for KubeVirt, and `python -m testbed build` before the tests; the
benchmarks have other programs. It never writes to the repository.
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

import msgspec

from testbed.errors import TestbedError, UnavailableError

SOURCE = Path(__file__).parent / "controlplane"
KUBEVIRT_SOURCE = Path(__file__).parent / "kubevirt" / "program"
KARPENTER_SOURCE = Path(__file__).parent / "karpenter" / "program"
KUBECTL_SOURCE = Path(__file__).parent / "kubectl"
SOURCE_FILES = ("go.mod", "go.sum", "main.go")
THREADS = 2
PROGRESS_SECONDS = 10.0

Say = Callable[[str], None]


class GoProgram(msgspec.Struct, frozen=True):
    """A program of ours: the folder of its main.go and modules, and what people are told about it."""

    folder: Path
    program: str
    name: str  # "the control plane"
    title: str  # the same with its version
    minutes: int
    settings: dict[str, str] = {}  # variables of the program that are set when it is linked
    otherwise: str = ""  # what to do instead where there is no Go
    package: str = "."  # of another module where that has a program of its own

    @property
    def link_flags(self) -> str:
        return " ".join(["-s -w", *(f"-X {name}={value}" for name, value in self.settings.items())])


def control_plane() -> GoProgram:
    """Without the version set here the server would call itself v0.0.0-master+$Format."""
    version = kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".")
    return GoProgram(
        folder=SOURCE,
        program="controlplane",
        name="the control plane",
        title=f"the Kubernetes {version} control plane",
        minutes=6,
        settings={
            "k8s.io/component-base/version.gitVersion": version,
            "k8s.io/component-base/version.gitMajor": major,
            "k8s.io/component-base/version.gitMinor": minor,
            "k8s.io/client-go/pkg/version.gitVersion": version,
        },
        otherwise=", or set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver, "
        "kube-controller-manager and kube-scheduler",
    )


def kubevirt() -> GoProgram:
    """virt-api and virt-controller; without the version set here they would print placeholders for it."""
    version = kubevirt_version()
    return GoProgram(
        folder=KUBEVIRT_SOURCE,
        program="kubevirt",
        name="KubeVirt",
        title=f"KubeVirt {version}",
        minutes=5,
        settings={"kubevirt.io/client-go/version.gitVersion": version},
    )


def karpenter() -> GoProgram:
    """Karpenter's own program with its provider of nodes that exist in the API alone. Not built by `make test`."""
    version = pinned_version(KARPENTER_SOURCE, "sigs.k8s.io/karpenter")
    return GoProgram(
        folder=KARPENTER_SOURCE,
        program="karpenter",
        name="Karpenter",
        title=f"Karpenter {version}",
        minutes=4,
        package="sigs.k8s.io/karpenter/kwok",
    )


def kubectl() -> GoProgram:
    """Of the control plane's version, and quick to build beside it: most of its packages are the same."""
    version = kubernetes_version()
    return GoProgram(
        folder=KUBECTL_SOURCE,
        program="kubectl",
        name="kubectl",
        title=f"kubectl {version}",
        minutes=1,
        settings={"k8s.io/component-base/version.gitVersion": version},
    )


def built(say: Say, go_program: GoProgram | None = None) -> Path:
    """The program; built first if it is not in the cache. Two processes that ask at once build it once."""
    go_program = go_program or control_plane()
    program = cached_program(go_program)
    if program.exists():
        return program
    go = shutil.which("go")
    if go is None:
        raise UnavailableError(
            f"{go_program.name} is not built and there is no Go on the PATH to build it. Install Go 1.25 or newer "
            f"(https://go.dev/dl){go_program.otherwise}"
        )
    program.parent.mkdir(parents=True, exist_ok=True)
    with locked(program.parent / "lock", on_wait=lambda: say(f"another process builds {go_program.name}: waiting")):
        if not program.exists():
            build(go, go_program, program, say)
    return program


def cached_program(go_program: GoProgram | None = None) -> Path:
    go_program = go_program or control_plane()
    return cache_folder() / source_hash(go_program) / go_program.program


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wukong" / "testbed"


def source_hash(go_program: GoProgram | None = None) -> str:
    """Of everything the program is made of, and of the kind of machine it runs on."""
    go_program = go_program or control_plane()
    digest = hashlib.sha256(repr((go_program.link_flags, sys.platform, platform.machine())).encode())
    for name in (name for name in SOURCE_FILES if (go_program.folder / name).exists()):
        digest.update(f"\0{name}\0".encode() + (go_program.folder / name).read_bytes())
    return digest.hexdigest()[:16]


def kubernetes_version() -> str:
    """The version that go.mod pins, such as `v1.35.8`."""
    return pinned_version(SOURCE, "k8s.io/kubernetes")


def kubevirt_version() -> str:
    """Likewise, such as `v1.7.0`."""
    return pinned_version(KUBEVIRT_SOURCE, "kubevirt.io/kubevirt")


def pinned_version(source: Path, module: str) -> str:
    requirement = rf"^\s*{re.escape(module)} (v[\d.]+)(?: // indirect)?$"
    pinned = re.search(requirement, (source / "go.mod").read_text(), re.MULTILINE)
    assert pinned, f"go.mod requires {module}"
    return pinned[1]


def build(go: str, go_program: GoProgram, program: Path, say: Say) -> None:
    began = time.monotonic()
    duration = f"{go_program.minutes} minute{'s' if go_program.minutes > 1 else ''}"
    say(f"building {go_program.title}, once; about {duration} on 2 cores")
    packages = len(run([go, "list", "-deps", go_program.package], go_program.folder, downloads(say)))
    with tempfile.TemporaryDirectory(dir=program.parent) as folder:
        unfinished = Path(folder, go_program.program)
        command = [
            go,
            "build",
            "-v",
            "-p",
            str(THREADS),
            "-trimpath",
            "-ldflags",
            go_program.link_flags,
            "-o",
            str(unfinished),
            go_program.package,
        ]
        run(command, go_program.folder, compiled(say, packages))
        unfinished.replace(program)  # nobody ever sees half a program
    say(f"built in {time.monotonic() - began:.0f} s, {program.stat().st_size / 1e6:.0f} MB: {program}")


def run(command: list[str], source: Path, progress: Callable[[str], None]) -> list[str]:
    """Run Go in the source folder; each line it says goes to `progress`. What it prints is the result."""
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    nice = ["nice"] if shutil.which("nice") else []
    with (
        tempfile.TemporaryFile("w+") as output,
        subprocess.Popen(
            [*nice, *command], cwd=source, env=environment, stdout=output, stderr=subprocess.PIPE, text=True
        ) as process,
    ):
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            progress(line)
        if process.wait() != 0:
            raise TestbedError(f"`{' '.join(command[:2])}` failed in {source}:\n{''.join(said[-20:])}")
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
