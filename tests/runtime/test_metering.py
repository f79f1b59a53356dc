"""Nothing that a meter says or raises ends the loop that asks it; a complaint that goes on is logged once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

import pytest

from wukong.api.meta import Object, ObjectMeta
from wukong.api.usage import NodeUsage
from wukong.errors import ClusterError, InputError
from wukong.runtime.metering import MeterReport, keep_measuring
from wukong.runtime.metrics import Metrics

USAGE = NodeUsage(metadata=ObjectMeta(name="a"), cpu=1.0)
Round = Exception | Sequence[str]  # what a meter raises, or the samples that it leaves out


class Scripted:
    def __init__(self, rounds: Sequence[Round], skip: Callable[[str], None]) -> None:
        self.rounds, self.skip, self.over = list(rounds), skip, asyncio.Event()

    async def measure(self) -> list[NodeUsage]:
        if not self.rounds:
            self.over.set()
            await asyncio.Event().wait()
        scripted = self.rounds.pop(0)
        if isinstance(scripted, Exception):
            raise scripted
        for problem in scripted:
            self.skip(problem)
        return [USAGE]


async def play(*rounds: Round) -> tuple[int, Metrics]:
    """How often usage was handed over, and what was counted."""
    metrics, taken = Metrics(), list[Sequence[Object]]()
    report = MeterReport(metrics)
    meter = Scripted(rounds, report.record_skip)
    loop = asyncio.create_task(keep_measuring(meter, taken.append, 0, report))
    over = asyncio.create_task(meter.over.wait())
    await asyncio.wait([loop, over], return_when=asyncio.FIRST_COMPLETED)
    assert not loop.done(), loop
    loop.cancel()
    return len(taken), metrics


def count(metrics: Metrics, name: str) -> float:
    value = metrics.registry.get_sample_value(name)
    assert value is not None
    return value


@pytest.mark.parametrize(
    "error",
    [
        ClusterError("no"),
        InputError("abc"),
        ValueError("abc"),
        RecursionError(),
        OverflowError(),
        KeyError("x"),
        OSError(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_whatever_a_meter_raises_it_is_asked_again(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    handed_over, metrics = await play(error, error, ())
    assert handed_over == 1
    assert count(metrics, "wukong_meter_failures_total") == 2
    (record,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert record.getMessage() == "the meter did not answer"


async def test_skipped_samples_are_counted_and_logged_once_while_there_are_some(
    caplog: pytest.LogCaptureFixture,
) -> None:
    handed_over, metrics = await play(["x", "y"], ["x"], [], ["z"])
    assert handed_over == 4
    assert count(metrics, "wukong_meter_samples_skipped_total") == 4
    told = [(record.__dict__["samples"], record.__dict__["first"]) for record in caplog.records]
    assert told == [(2, "x"), (1, "z")]


async def test_a_failure_is_logged_with_what_it_says_and_when_the_meter_is_asked_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    report = MeterReport(Metrics())
    report.record_failure(ClusterError("no route"), 30.0)
    report.record_failure(OSError(), 15.0)
    told = [(record.__dict__["error"], record.__dict__["again_seconds"]) for record in caplog.records]
    assert told == [("no route", 30.0), ("OSError", 15.0)]
    has_traceback = [record.exc_info is not None for record in caplog.records]
    assert has_traceback == [False, True], "only what nobody foresaw needs its place in the code"


async def test_a_failure_that_comes_back_after_an_answer_is_logged_again(caplog: pytest.LogCaptureFixture) -> None:
    await play(ClusterError("no"), ClusterError("no"), (), ClusterError("no"), ClusterError("other"))
    assert [record.__dict__["error"] for record in caplog.records] == ["no", "no", "other"]


async def test_samples_skipped_in_a_round_that_fails_are_counted_and_not_told_in_the_next(
    caplog: pytest.LogCaptureFixture,
) -> None:
    metrics = Metrics()
    report = MeterReport(metrics)
    report.record_skip("x")
    report.record_failure(ClusterError("no"), 30.0)
    report.record_answer()
    report.record_skip("y")
    report.record_answer()
    assert count(metrics, "wukong_meter_samples_skipped_total") == 2
    assert [record.__dict__.get("first") for record in caplog.records] == [None, "y"]
