"""Wukong's webhook for pods beside one in Go: the same reviews, the same patches, the same minutes, the same client.

`python -m bench --webhook` runs it. Wukong finds one of 1,000 policies, decides spot or on-demand and builds the patch;
Go decodes the pod and answers a patch that it was told before. Each is a process of its own; they are asked in turn.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from bench.extender import client
from bench.extender.compare import running
from bench.webhook import requests
from testbed import build

Say = Callable[[str], None]
ROUNDS, ASKED = 5, 400
OURS, GO = "Wukong", "Go"


class Case(NamedTuple):
    title: str
    is_alike: bool
    connections: int


CASES = [
    Case("pods alike, 1 conn.", True, 1),
    Case("pods alike, 8 conn.", True, 8),
    Case("each another, 1 conn.", False, 1),
    Case("each another, 8 conn.", False, 8),
]


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
    bodies = {alike: requests.bodies(ROUNDS * ASKED, alike=alike) for alike in (True, False)}
    size = len(bodies[True][0])
    head = f"p50 and p99 in ms, reviews/s of {size:,} bytes at {requests.POLICIES:,} policies"
    print(f"{head}; ratio of p50, less is better")
    print(f"{'':24}{OURS:>24}{GO:>24}{'ratio':>8}")
    with ExitStack() as stack:
        ports = {
            OURS: stack.enter_context(running([sys.executable, "-m", "bench.webhook.ours"])),
            GO: stack.enter_context(running([str(program)])),
        }
        teach_go(ports, bodies[True])
        for case in CASES:
            say(case.title)
            show(case, compare(case, bodies[case.is_alike], ports))


def teach_go(ports: dict[str, int], bodies: list[bytes]) -> None:
    """The patch of each app, as Wukong answers it."""
    patches: dict[str, Any] = {}
    with client.Connection(ports[OURS]) as connection:
        for number in range(requests.TEMPLATES):
            response = msgspec.json.decode(connection.send("/mutate", bodies[number]))["response"]
            app = requests.app_of(number * 31)
            patches[app] = msgspec.json.decode(base64.b64decode(response["patch"]))
    with client.Connection(ports[GO]) as connection:
        connection.send("/patches", msgspec.json.encode(patches), "PUT")


def compare(case: Case, bodies: list[bytes], ports: dict[str, int]) -> dict[str, client.Figures]:
    rounds: dict[str, list[client.Figures]] = {name: [] for name in ports}
    for number in range(ROUNDS):
        part = bodies[number * ASKED : (number + 1) * ASKED]
        for name, port in ports.items():
            rounds[name].append(client.measure(port, "/mutate", part, ASKED, case.connections))
    return {
        name: client.Figures([seconds for one in found for seconds in one.seconds], sum(one.elapsed for one in found))
        for name, found in rounds.items()
    }


def show(case: Case, found: dict[str, client.Figures]) -> None:
    columns, middle = "", {}
    for name, figures in found.items():
        p50, p99 = np.percentile(figures.seconds, [50, 99]) * 1e3
        middle[name] = p50
        columns += f"{p50:9.2f}{p99:8.2f}{len(figures.seconds) / figures.elapsed:7,.0f}"
    print(f"{case.title:24}{columns}{middle[OURS] / middle[GO]:8.2f}", flush=True)
