"""What metrics.k8s.io and Prometheus may answer: usage that makes sense, or an error; and labels only where it does.

A failure names its seed and case: `HOSTILE_SEED=7 pytest tests/hostile/test_meters.py` plays it again.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from conftest import FIGURE
from hostile.answers import draw_body
from hostile.grammar import QUANTITIES, SEED, TEXTS, TIMES, Grammar, write_json
from hostile.neighbourhood import GOOD_NAMES, GOOD_NODES, START, Clock, a_canned_kube
from wukong.actions import Patch
from wukong.api.kinds import NODE_USAGES
from wukong.api.resources import Key
from wukong.api.usage import NodeUsage
from wukong.cluster.meters import MetricsApi, Prometheus
from wukong.cluster.usage_queries import Queries
from wukong.controllers.load.controller import Load
from wukong.errors import WukongError
from wukong.ports import Meter
from wukong.state import State

ROUNDS = 6_000  # of each meter
NODES = write_json({"metadata": {"resourceVersion": "7"}, "items": [msgspec.to_builtins(node) for node in GOOD_NODES]})
PERCENTS: tuple[Any, ...] = (
    "10", "0", "99.9", "NaN", "+Inf", "-Inf", "-1", "1e308", "1e400", "abc", "", " 5 ", "5%", "٣", "0x10", "1_0",
    "9" * 400, None, 7, True, [], "1e-320", "-0",
)  # fmt: skip
MOMENTS: tuple[Any, ...] = (START, 0, -1, 1e308, "@raw-float@", "@raw-nan@", "x", None, "1767225600", START + 1e9)


class Answers:
    """Stands for the connections of both meters: what is answered next, request by request."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def send(self, method: str, path: str, body: object = None, **_: Any) -> bytes:
        return self.next()

    def next(self) -> bytes:
        """The next answer; after the last one, one that ends a list without an end."""
        return self.bodies.pop(0) if self.bodies else b"{}"

    @asynccontextmanager
    async def get(self, url: str, **_: Any) -> AsyncIterator[Any]:
        body = self.next()

        class Content:
            async def iter_any(self) -> AsyncIterator[bytes]:
                yield body

        class Response:
            content = Content()

        yield Response()


def draw_metrics(grammar: Grammar) -> bytes:
    rng = grammar.rng
    items: list[dict[str, Any]] = [
        {
            "metadata": {"name": rng.choice((*GOOD_NAMES, *GOOD_NAMES, *TEXTS, None, 7))},
            "timestamp": rng.choice((*TIMES, None, 7)),
            "usage": rng.choice(
                (
                    {"cpu": rng.choice(QUANTITIES), "memory": rng.choice(QUANTITIES)},
                    {"cpu": rng.choice(QUANTITIES), rng.choice(TEXTS): "1"},
                    {},
                    None,
                    [],
                )
            ),
        }
        for _ in range(rng.randrange(8))
    ]
    body = write_json({"metadata": {}, "items": items})
    return body if rng.random() < 0.85 else draw_body(grammar, body)


def draw_query(grammar: Grammar) -> bytes:
    rng = grammar.rng
    samples = [
        {
            "metric": rng.choice(
                (
                    {Queries().label: rng.choice((*GOOD_NAMES, *GOOD_NAMES, *TEXTS))},
                    {Queries().label: 7},
                    {},
                    None,
                )
            ),
            "value": rng.choice(
                (
                    [START, rng.choice(PERCENTS)],
                    [rng.choice(MOMENTS), rng.choice(PERCENTS)],
                    [rng.choice(MOMENTS)],
                    None,
                    "x",
                )
            ),
        }
        for _ in range(rng.randrange(8))
    ]
    status = "success" if rng.random() < 0.9 else rng.choice(("error", None, *TEXTS))
    answer = {"status": status, "data": {"resultType": "vector", "result": samples}, "error": rng.choice(TEXTS)}
    body = write_json(answer)
    return body if rng.random() < 0.85 else draw_body(grammar, body)


def check_usage(usage: NodeUsage) -> None:
    for percent in (usage.cpu, usage.memory, usage.storage):
        assert percent is None or 0 <= percent <= 10_000, usage
    assert usage.measured_at is not None
    assert usage.measured_at <= START, usage


class Labels:
    """The load controller on a mirror of the good nodes, told what a meter says."""

    def __init__(self) -> None:
        self.state, self.load, self.now = State(), Load(), START
        for node in GOOD_NODES:
            self.state.apply("ADDED", node)

    def take(self, usages: list[NodeUsage]) -> None:
        self.state.replace(NODE_USAGES.group_kind, usages)
        self.now += 60.0
        for name in GOOD_NAMES:
            for action in self.load.reconcile(Key("", name), self.state, self.now).actions:
                assert isinstance(action, Patch)
                for label, value in action.patch.body["metadata"]["labels"].items():
                    assert label.startswith("usage.novasphere.dev/"), action
                    assert value is None or 0 <= int(value) <= 10_000, action


async def play(meter: Meter, answers: Answers, draw: Callable[[], list[bytes]]) -> tuple[int, int]:
    """How often it failed, and how many samples it had."""
    labels, failures, samples = Labels(), 0, 0
    for number in range(ROUNDS):
        answers.bodies = bodies = draw()
        case = f"HOSTILE_SEED={SEED} case {number}: {bodies!r:.2500}"
        try:
            usages = await meter.measure()
            samples += len(usages)
            for usage in usages:
                check_usage(usage)
            labels.take(usages)
        except WukongError:
            failures += 1
        except Exception as error:
            raise AssertionError(f"{case}\n{type(error).__name__}: {error}") from error
    assert not labels.state.unreadable
    assert len(labels.state.of(NodeUsage)) <= 8 * 3
    return failures, samples


@pytest.mark.slow
async def test_whatever_metrics_k8s_io_answers(record_property: Callable[[str, object], None]) -> None:
    grammar, answers = Grammar(random.Random(SEED)), Answers()
    kube, _ = a_canned_kube()
    kube._http = answers  # type: ignore[assignment]
    skipped: list[str] = []
    clock = Clock()
    meter = MetricsApi(kube, clock.now, lambda problem: skipped.append(problem[:0]))

    def draw() -> list[bytes]:
        nodes = NODES if grammar.rng.random() < 0.9 else draw_body(grammar, NODES)
        return [nodes, *[draw_metrics(grammar)] * 3]

    failures, samples = await play(meter, answers, draw)
    figure = (
        f"metrics.k8s.io: {ROUNDS} answers of seed {SEED}, {failures} failed, {samples} samples, {len(skipped)} skipped"
    )
    record_property(FIGURE, figure)
    assert failures < ROUNDS
    assert samples > 0
    assert skipped


@pytest.mark.slow
async def test_whatever_prometheus_answers(record_property: Callable[[str, object], None]) -> None:
    grammar, answers = Grammar(random.Random(SEED)), Answers()
    skipped: list[str] = []
    session: Any = answers
    prometheus = Prometheus(
        "http://127.0.0.1:1", session=session, now=Clock().now, on_skip=lambda problem: skipped.append(problem[:0])
    )
    failures, samples = await play(prometheus, answers, lambda: [draw_query(grammar) for _ in range(3)])
    counts = f"{failures} rounds failed, {samples} samples, {len(skipped)} skipped"
    figure = f"Prometheus: {3 * ROUNDS} answers of seed {SEED}, {counts}"
    record_property(FIGURE, figure)
    assert failures < ROUNDS
    assert samples > 0
    assert skipped
