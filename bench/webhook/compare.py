"""Wukong's webhook for pods beside one in Go: the same reviews, the same patches, the same minutes, the same client.

`python -m bench --webhook` runs it. Wukong finds one of 1,000 policies, decides spot or on-demand and builds the patch;
Go decodes the pod and answers a patch that it was told before, on as many cores as there are and on one. Each is a
process of its own; they are asked in turn. Besides what a client sees, the servers' own processor time is told: a
machine that is shared distorts it least.
"""

from __future__ import annotations

import base64
import http.client
import os
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec
import numpy as np

from bench.extender import client
from bench.webhook import requests
from testbed import build
from wukong.app.components.admission import rotation

Say = Callable[[str], None]
ROUNDS, ASKED = 5, 800
OURS, GO, GO_ON_ONE = "Wukong", "Go", "Go, 1 core"
_TICKS = os.sysconf("SC_CLK_TCK")


class Case(NamedTuple):
    title: str
    pods: str
    connections: int
    is_tls: bool = False


CASES = [
    Case(f"{title}, {connections} conn.", pods, connections, is_tls)
    for title, pods, is_tls in (
        ("Deployments", requests.DEPLOYMENTS, False),
        ("StatefulSets, Jobs", requests.ORDINALS, False),
        ("each another", requests.STRANGERS, False),
        ("Deployments, TLS", requests.DEPLOYMENTS, True),
    )
    for connections in (1, 8)
]


class Server(NamedTuple):
    pid: int
    port: int


class Figures(NamedTuple):
    seconds: list[float]  # of each review
    elapsed: float
    processor: float  # seconds of the server


def main(say: Say) -> None:
    program = build.built(
        say,
        build.GoProgram(
            folder=Path(__file__).parent,
            program="webhook",
            name="the Go webhook",
            title="a webhook in Go on k8s.io/api v0.35.8",
            minutes=2,
        ),
    )
    print(f"p50, p99 in ms; reviews/s; processor µs/review of the server; {requests.POLICIES:,} policies")
    print(f"{'':28}{OURS:>30}{GO:>30}{GO_ON_ONE:>30}   p50 to Go's")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        certificate = write_certificate(folder)
        files = {pods: write_bodies(folder, pods) for pods in requests.KINDS}
        for is_tls in (False, True):
            servers = start_servers(stack, program, certificate if is_tls else ())
            if not is_tls:
                patches = read_patches(servers[OURS].port)
            for name in (GO, GO_ON_ONE):
                teach(servers[name].port, patches, is_tls=is_tls)
            for case in CASES:
                if case.is_tls == is_tls:
                    say(case.title)
                    show(case, compare(case, program, files[case.pods], servers))


def start_servers(stack: ExitStack, program: Path, certificate: tuple[str, ...]) -> dict[str, Server]:
    one_core = {**os.environ, "GOMAXPROCS": "1"}
    return {
        OURS: stack.enter_context(running([sys.executable, "-m", "bench.webhook.ours", *certificate])),
        GO: stack.enter_context(running([str(program), *certificate])),
        GO_ON_ONE: stack.enter_context(running([str(program), *certificate], one_core)),
    }


@contextmanager
def running(argv: list[str], environment: dict[str, str] | None = None) -> Iterator[Server]:
    """A server that prints its port."""
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout
        try:
            yield Server(process.pid, int(process.stdout.readline()))
        finally:
            process.kill()


def write_certificate(folder: Path) -> tuple[str, str]:
    """A certificate and its key, as Wukong makes them for itself."""
    keys = rotation.take_step("create", None, ["localhost"], datetime.now(UTC), rotation.RotationTimes())
    certificate, key = folder / "tls.crt", folder / "tls.key"
    certificate.write_bytes(keys.server.certificate)
    key.write_bytes(keys.server.key)
    return str(certificate), str(key)


def write_bodies(folder: Path, pods: str) -> Path:
    """A line for each review."""
    path = folder / pods
    path.write_bytes(b"\n".join(requests.bodies(ROUNDS * ASKED, pods)))
    return path


def read_patches(port: int) -> dict[str, Any]:
    """The patch of each app, as Wukong answers it."""
    patches: dict[str, Any] = {}
    with client.Connection(port) as connection:
        for number, body in enumerate(requests.bodies(requests.TEMPLATES, requests.DEPLOYMENTS)):
            response = msgspec.json.decode(connection.send("/mutate", body))["response"]
            patches[requests.app_of(number * 31)] = msgspec.json.decode(base64.b64decode(response["patch"]))
    return patches


def teach(port: int, patches: dict[str, Any], *, is_tls: bool) -> None:
    """Tell a Go server what to answer."""
    anybody = ssl.create_default_context()
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    connection = (
        http.client.HTTPSConnection("127.0.0.1", port, context=anybody)
        if is_tls
        else http.client.HTTPConnection("127.0.0.1", port)
    )
    connection.request("PUT", "/patches", msgspec.json.encode(patches))
    assert connection.getresponse().status == 200
    connection.close()


def compare(case: Case, program: Path, bodies: Path, servers: dict[str, Server]) -> dict[str, Figures]:
    rounds: dict[str, list[Figures]] = {name: [] for name in servers}
    for number in range(ROUNDS):
        for name, server in servers.items():
            rounds[name].append(measure(case, program, bodies, number * ASKED, server))
    return {
        name: Figures(
            [seconds for figures in entries for seconds in figures.seconds],
            sum(figures.elapsed for figures in entries),
            sum(figures.processor for figures in entries),
        )
        for name, entries in rounds.items()
    }


def measure(case: Case, program: Path, bodies: Path, first: int, server: Server) -> Figures:
    url = f"{'https' if case.is_tls else 'http'}://127.0.0.1:{server.port}/mutate?timeout=2s"
    before = read_processor_seconds(server.pid)
    argv = [str(program), "ask", url, str(case.connections), str(first), str(ASKED), str(bodies)]
    found = msgspec.json.decode(subprocess.run(argv, check=True, capture_output=True).stdout)
    processor = read_processor_seconds(server.pid) - before
    return Figures([nanoseconds / 1e9 for nanoseconds in found["took"]], found["elapsed"] / 1e9, processor)


def read_processor_seconds(pid: int) -> float:
    """Of all threads of a process, in user and kernel."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def show(case: Case, found: dict[str, Figures]) -> None:
    columns, middle = "", {}
    for name, figures in found.items():
        p50, p99 = np.percentile(figures.seconds, [50, 99]) * 1e3
        middle[name] = p50
        count = len(figures.seconds)
        columns += f"{p50:8.2f}{p99:8.2f}{count / figures.elapsed:8,.0f}{figures.processor / count * 1e6:6.0f}"
    ratios = "".join(f"{middle[OURS] / middle[name]:7.2f}" for name in (GO, GO_ON_ONE))
    print(f"{case.title:28}{columns}{ratios}", flush=True)
