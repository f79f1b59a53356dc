"""Azure: scheduled events that take this machine away, Preempt and Terminate.

    GET  /metadata/instance/compute?api-version=2021-02-01            → what this machine is called
    GET  /metadata/scheduledevents?api-version=2020-07-01             → {"Events": [{EventId, EventType, Resources, …}]}
    POST /metadata/scheduledevents?api-version=2020-07-01             {"StartRequests": [{"EventId": …}]}: go ahead

The events are those of the whole scale set: Resources says whose. NotBefore is "Mon, 19 Sep 2016 18:29:47 GMT", or ""
once an event has begun. To acknowledge one is to let it begin *now*, without waiting for NotBefore. The first question
switches the service on, which may take two minutes.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import msgspec

from wukong.api.times import parse_time
from wukong.cluster.metadata.cloud import (
    ANSWER_SECONDS,
    CloudNotice,
    MetadataError,
    Now,
    ask,
    read_object,
    read_text,
    refuse,
    show,
)
from wukong.cluster.single_exchange import Answer

ENDPOINT = "http://169.254.169.254"
EVENTS_PATH = "/metadata/scheduledevents?api-version=2020-07-01"
NAME_PATH = "/metadata/instance/compute?api-version=2021-02-01"
HEADER = ("Metadata", "true")
ENDING_TYPES = ("Preempt", "Terminate")  # after a Freeze, Reboot or Redeploy the machine comes back
FIRST_SECONDS = 130.0
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DATE = re.compile(r"(?:\w{3}, )?(\d{1,2}) (\w{3}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) (?:GMT|UTC)", re.ASCII)


class Azure:
    name = "azure"
    pause_seconds = 1.0  # as Azure asks for: some have only seconds between notice and end

    def __init__(self, now: Now, endpoint: str = ENDPOINT, machine: str = "") -> None:
        """`machine` is its name, where the metadata server shall not be asked for it."""
        self._now, self._endpoint, self._machine = now, endpoint, machine
        self._is_on = False

    async def poll(self) -> CloudNotice | None:
        if not self._machine:
            self._machine = read_machine_name(await ask("GET", self._endpoint + NAME_PATH, [HEADER]))
        seconds = ANSWER_SECONDS if self._is_on else FIRST_SECONDS
        answer = await ask("GET", self._endpoint + EVENTS_PATH, [HEADER], seconds=seconds)
        notice = read_events(answer, self._machine, self._now())
        self._is_on = True
        return notice

    async def acknowledge(self, notice: CloudNotice) -> bool:
        body = encode_start_request(notice.event)
        headers = [HEADER, ("Content-Type", "application/json")]
        answer = await ask("POST", self._endpoint + EVENTS_PATH, headers, body)
        if answer.status >= 300:
            raise refuse(answer, EVENTS_PATH)
        return True


def read_machine_name(answer: Answer) -> str:
    """Raises MetadataError if it does not say: whose events are ours is then not known."""
    if answer.status != 200:
        raise refuse(answer, NAME_PATH)
    name = read_text(read_object(answer.body, NAME_PATH).get("name"))
    if not name:
        raise MetadataError(f"{NAME_PATH}: expected the name of this machine, got {show(answer.body)}")
    return name


def read_events(answer: Answer, machine: str, now: float) -> CloudNotice | None:
    """The soonest event that ends this machine. Raises MetadataError if there is no list of events.

    One event that cannot be read does not hide the others.
    """
    if answer.status != 200:
        raise refuse(answer, EVENTS_PATH)
    events = read_object(answer.body, EVENTS_PATH).get("Events")
    if not isinstance(events, list):
        raise MetadataError(f"{EVENTS_PATH}: expected Events, got {show(answer.body)}")
    notices = [notice for event in events if (notice := _read_event(event, machine, now)) is not None]
    return min(notices, key=lambda notice: notice.deadline or now, default=None)


def _read_event(event: Any, machine: str, now: float) -> CloudNotice | None:
    if not isinstance(event, dict) or event.get("EventType") not in ENDING_TYPES:
        return None
    resources = event.get("Resources")
    names = [read_text(name).lower() for name in resources] if isinstance(resources, list) else []
    if machine.lower() not in names:  # Azure's names have no case
        return None
    moment = parse_not_before(read_text(event.get("NotBefore")))
    return CloudNotice(
        action=str(event["EventType"]).lower(),
        deadline=now if moment is None else moment,
        is_exact=moment is not None,
        event=read_text(event.get("EventId")),
    )


def parse_not_before(text: str) -> float | None:
    """Seconds since 1970; None for "" (it has begun) and for what cannot be read."""
    match = _DATE.fullmatch(text.strip())
    if match is None or match[2] not in _MONTHS:
        return parse_time(text.strip())
    day, year, hour, minute, second = (int(match[index]) for index in (1, 3, 4, 5, 6))
    try:
        return datetime(year, _MONTHS.index(match[2]) + 1, day, hour, minute, second, tzinfo=UTC).timestamp()
    except ValueError:
        return None


def encode_start_request(event: str) -> bytes:
    return msgspec.json.encode({"StartRequests": [{"EventId": event}]})
