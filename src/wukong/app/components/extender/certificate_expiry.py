"""Says in time that the extender's certificates are about to expire: as a metric, in the log, and by an Event.

Run beside the server. Renewed files are noticed without a restart, and the warnings end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from datetime import UTC, datetime

from prometheus_client import Gauge

from wukong.actions import Note
from wukong.api.kinds import PODS
from wukong.api.resources import Key
from wukong.ports import Clock
from wukong.runtime.metrics import Metrics
from wukong.runtime.performer import Performer
from wukong.serve.tls import CLIENT_CA, SERVER, CertificateFiles

log = logging.getLogger(__name__)
DAY = 86_400.0
WARNING_SECONDS = 30 * DAY
LOOK_SECONDS = 3_600.0  # how often files are looked at; a warning is repeated daily
REASON = "CertificateExpires"
_TITLES = {SERVER: "the extender's certificate", CLIENT_CA: "the authority of the extender's clients"}


def find_expiry_problem(expiries: Mapping[str, float], now: float) -> str:
    """Which certificates expire within 30 days, or have expired; "" if none. The same text all day."""
    problems = []
    for name, end in sorted(expiries.items(), key=lambda expiry: expiry[1]):
        if end - now < WARNING_SECONDS:
            verb = "expires" if end > now else "has expired"
            problems.append(f"{_TITLES[name]} {verb} on {datetime.fromtimestamp(end, UTC):%Y-%m-%d}")
    return f"{', '.join(problems)}. Renew them: wukong manifests extender" if problems else ""


def show_expiries(files: CertificateFiles, metrics: Metrics) -> None:
    """As a metric, read from the files whenever somebody looks."""
    gauge = Gauge(
        "wukong_certificate_expiry_timestamp_seconds",
        "When a certificate of the extender expires, in seconds since 1970",
        ["certificate"],
        registry=metrics.registry,
    )
    for name in (SERVER, CLIENT_CA):
        gauge.labels(name).set_function(lambda name=name: files.expiries().get(name, 0.0))  # type: ignore[misc]


async def keep_warning(files: CertificateFiles, performer: Performer, clock: Clock, pod: Key | None) -> None:
    """For ever. The Event is about our own pod; outside of one there is none, only the log line."""
    warned_at = float("-inf")
    while True:
        now = clock.now()
        problem = find_expiry_problem(files.expiries(), now)
        if problem and now - warned_at >= DAY:
            warned_at = now
            log.warning("certificates expire: %s", problem)
            if pod is not None:
                await _write_event(Note(PODS, pod, REASON, problem, is_warning=True), performer, now)
        if not problem:
            warned_at = float("-inf")
        await asyncio.sleep(LOOK_SECONDS)


async def _write_event(note: Note, performer: Performer, now: float) -> None:
    try:
        await performer.perform(note, now)
    except Exception as error:  # the log and the metric have said it, too
        log.warning("an event was not written", extra={"error": str(error)})
