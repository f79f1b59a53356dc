"""Wukong's extender beside plain Python and Go: the same requests, the same minutes, the same client.

`python -m bench --extender` runs it. Wukong decides by policy, usage, rules and leaving nodes; the others only look
whether a node is spot. Each is a process of its own; they are asked in turn.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.extender import client, requests
from testbed import build

Say = Callable[[str], None]
VERBS = ("filter", "prioritize")
ROUNDS = 3
OURS, PLAIN, GO, SLIM = "Wukong", "aiohttp+json", "Go", "Go, names+labels"


class Case(NamedTuple):
    nodes: int
    full: bool
    connections: int
    asked: int  # requests in a round

    @property
    def title(self) -> str:
        return f"{self.nodes:,} {'nodes' if self.full else 'names'}, {self.connections} conn."


CASES = [
    Case(500, False, 1, 300),
    Case(500, False, 8, 400),
    Case(5_000, False, 1, 100),
    Case(5_000, False, 8, 160),
    Case(5_000, True, 1, 8),
    Case(5_000, True, 8, 16),
]


def main(say: Say) -> None:
    go_program = build.GoProgram(
        folder=Path(__file__).parent,
        program="extender",
        name="the Go extender",
        title="an extender in Go on k8s.io/api v0.35.8",
        minutes=2,
    )
    program = build.built(say, go_program)
    print("p50 and p99 of a request in ms, requests/s; the ratios are of p50 to each of Go's, less is better")
    print(f"{'':22}{'':12}{OURS:>24}{PLAIN:>24}{GO:>24}{SLIM:>24}{'ratios':>14}")
    with ExitStack() as stack:
        ports = {
            OURS: stack.enter_context(running([sys.executable, "-m", "bench.extender.ours"])),
            PLAIN: stack.enter_context(running([sys.executable, "-m", "bench.extender.plain"])),
            GO: stack.enter_context(running([str(program)])),
        }
        with client.Connection(ports[GO]) as connection:
            connection.send("/nodes", requests.node_list(), "PUT")
        for case in CASES:
            bodies = requests.bodies(case.nodes, case.full, 2 if case.full else 16)
            for verb in VERBS:
                say(f"{case.title} {verb}")
                show(case, verb, compare(case, verb, bodies, ports))


def compare(case: Case, verb: str, bodies: list[bytes], ports: Mapping[str, int]) -> dict[str, client.Figures]:
    paths = {OURS: f"/{verb}", PLAIN: f"/{verb}", GO: f"/{'nodes' if case.full else 'names'}/{verb}"}
    if case.full:
        paths[SLIM] = f"/slim/{verb}"
    rounds: dict[str, list[client.Figures]] = {name: [] for name in paths}
    for _ in range(ROUNDS):
        for name, path in paths.items():
            few = name == PLAIN and case.full  # it takes most of a second for each
            count = case.connections if few else case.asked
            port = ports[GO if name == SLIM else name]
            rounds[name].append(client.measure(port, path, bodies, count, case.connections))
    return {
        name: client.Figures([each for one in found for each in one.seconds], sum(one.elapsed for one in found))
        for name, found in rounds.items()
    }


def show(case: Case, verb: str, found: Mapping[str, client.Figures]) -> None:
    columns, middle = "", {}
    for name, figures in found.items():
        p50, p99 = np.percentile(figures.seconds, [50, 99]) * 1e3
        middle[name] = p50
        columns += f"{p50:9.2f}{p99:8.2f}{len(figures.seconds) / figures.elapsed:7,.0f}"
    columns += "" if SLIM in found else " " * 24
    ratios = "".join(f"{middle[OURS] / middle[name]:7.2f}" for name in (GO, SLIM) if name in found)
    print(f"{case.title:22}{verb:12}{columns}{ratios}", flush=True)


@contextmanager
def running(argv: list[str]) -> Iterator[int]:
    """The port of a server that prints it."""
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        assert process.stdout
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()
