"""Google Cloud: whether the machine is being preempted, 30 s ahead, by a question that is answered when that changes.

    GET /computeMetadata/v1/instance/preempted?wait_for_change=true&last_etag=…&timeout_sec=60     → FALSE or TRUE

Without an etag of before it is answered at once. The server answers after `timeout_sec` in any case, so a connection on
which nothing comes for longer is dead. One that is cut is nothing but a question to be asked again.
"""

from __future__ import annotations

import re

from wukong.cluster.metadata.cloud import CloudNotice, MetadataError, Now, ask, refuse, show
from wukong.cluster.single_exchange import Answer

ENDPOINT = "http://169.254.169.254"  # metadata.google.internal: by number no DNS is needed
PATH = "/computeMetadata/v1/instance/preempted"
WAIT_SECONDS = 60
NOTICE_SECONDS = 30.0  # from ACPI G2 to the end
FLAVOR = ("Metadata-Flavor", "Google")  # on questions, and on answers that come from where we think they do
_SLACK_SECONDS = 15.0
_ETAG = re.compile(r"[0-9A-Za-z._-]{1,64}", re.ASCII)


class Gcp:
    name = "gcp"
    pause_seconds = 1.0  # the server does the waiting; this is for one that does not

    def __init__(self, now: Now, endpoint: str = ENDPOINT, wait_seconds: int = WAIT_SECONDS) -> None:
        self._now, self._endpoint, self._wait_seconds = now, endpoint, wait_seconds
        self._etag = ""

    async def poll(self) -> CloudNotice | None:
        wait = f"?wait_for_change=true&last_etag={self._etag}&timeout_sec={self._wait_seconds}" if self._etag else ""
        etag, self._etag = self._etag, ""  # what goes wrong is asked without waiting the next time
        seconds = self._wait_seconds + _SLACK_SECONDS if etag else _SLACK_SECONDS
        answer = await ask("GET", f"{self._endpoint}{PATH}{wait}", [FLAVOR], seconds=seconds)
        notice = read_preempted(answer, self._now())
        self._etag = read_etag(answer)
        return notice

    async def acknowledge(self, notice: CloudNotice) -> bool:
        return False


def read_preempted(answer: Answer, now: float) -> CloudNotice | None:
    """Raises MetadataError if it is neither TRUE nor FALSE, or not Google's."""
    if answer.status != 200:
        raise refuse(answer, PATH)
    if answer.headers.get(FLAVOR[0].lower()) != FLAVOR[1]:
        raise MetadataError(f"{PATH}: expected an answer with {': '.join(FLAVOR)}, got none. Who answers there?")
    text = answer.body[:100].decode("latin-1").strip().upper()
    if text not in ("TRUE", "FALSE"):
        raise MetadataError(f"{PATH}: expected TRUE or FALSE, got {show(answer.body)}")
    return CloudNotice("preempt", now + NOTICE_SECONDS, is_exact=False) if text == "TRUE" else None


def read_etag(answer: Answer) -> str:
    """By which the next question waits; "" if there is none, or one that does not belong into an address."""
    etag = answer.headers.get("etag", "")
    return etag if _ETAG.fullmatch(etag) else ""
