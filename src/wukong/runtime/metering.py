"""Asks a meter now and then, and hands over the usage of all nodes. What the source of the component usage runs.

A meter that does not answer changes nothing: what it said last grows old, and whoever reads it judges its age. Nothing
that a meter says ends the loop: whatever it raises is logged, counted, and it is asked again.
"""

from __future__ import annotations

import asyncio
import logging

from wukong.errors import WukongError
from wukong.ports import Meter
from wukong.runtime.metrics import Metrics
from wukong.runtime.source import HandOver

log = logging.getLogger(__name__)


class MeterReport:
    """What is said and counted about a meter. The same kind of complaint is logged once while it goes on."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._failure = ""
        self._skipped, self._first_skipped = 0, ""  # in the round under way
        self._was_skipping = False

    def record_skip(self, problem: str) -> None:
        """A meter left a sample out."""
        self._metrics.meter_samples_skipped.inc()
        self._skipped += 1
        self._first_skipped = self._first_skipped or problem

    def record_answer(self) -> None:
        """A round is over. Skipped samples are logged in the first of several rounds that have some."""
        self._failure = ""
        if self._skipped and not self._was_skipping:
            facts = {"samples": self._skipped, "first": self._first_skipped}
            log.warning("the meter said what makes no sense, which is left out", extra=facts)
        self._was_skipping = bool(self._skipped)
        self._skipped, self._first_skipped = 0, ""

    def record_failure(self, error: Exception, again_seconds: float) -> None:
        self._metrics.meter_failures.inc()
        self._skipped, self._first_skipped = 0, ""
        message = str(error) or type(error).__name__
        if message != self._failure:
            is_ours = not isinstance(error, WukongError)  # nobody foresaw it
            facts = {"error": message, "again_seconds": again_seconds}
            log.warning("the meter did not answer", extra=facts, exc_info=error if is_ours else None)
        self._failure = message


async def keep_measuring(meter: Meter, hand_over: HandOver, every_seconds: float, report: MeterReport) -> None:
    """For ever."""
    while True:
        try:
            hand_over(await meter.measure())
        except Exception as error:
            report.record_failure(error, every_seconds)
        else:
            report.record_answer()
        await asyncio.sleep(every_seconds)
