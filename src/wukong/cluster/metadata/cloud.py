"""What the clouds have in common: a notice, what asks for it, and one question to a metadata server.

An answer is a notice, the certainty that there is none, or an error. An error never means that there is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

from wukong.api.json_values import load_json
from wukong.cluster.single_exchange import Answer, ExchangeError, Request, exchange
from wukong.errors import InputError, WukongError

ANSWER_SECONDS = 5.0
MOST_BYTES = 256 << 10  # of an answer; those that we expect have a few hundred
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_MOST_SHOWN = 80

Now = Callable[[], float]  # seconds since 1970


class CloudNotice(NamedTuple):
    """The cloud is about to take the machine. `deadline` is None where it does not say when."""

    action: str  # terminate, stop, hibernate, rebalance, …: the cloud's own word
    deadline: float | None
    is_exact: bool = True  # else the deadline is counted from when the notice was seen
    is_soft: bool = False  # it may go, some day
    event: str = ""  # the cloud's name for it, where it wants to hear it again


class MetadataError(WukongError):
    """The metadata server did not answer, or nothing that says whether there is a notice."""


class Cloud(Protocol):
    """`name` is how `--cloud` calls it; `pause_seconds` is how long it is left alone between two questions."""

    name: str
    pause_seconds: float

    async def poll(self) -> CloudNotice | None:
        """What it says now; None: there is no notice. Raises MetadataError if that is not known."""
        ...

    async def acknowledge(self, notice: CloudNotice) -> bool:
        """Say that the machine may go now. Gives whether this cloud wanted to hear it. Raises MetadataError."""
        ...


async def ask(
    method: str,
    url: str,
    headers: Iterable[tuple[str, str]] = (),
    body: bytes | None = None,
    *,
    seconds: float = ANSWER_SECONDS,
) -> Answer:
    """Raises MetadataError if there is no whole answer in time."""
    try:
        return await exchange(Request(method, url, headers, body), seconds=seconds, most_bytes=MOST_BYTES)
    except ExchangeError as error:
        raise MetadataError(f"{method} {url}: {error}") from None


def refuse(answer: Answer, url: str) -> MetadataError:
    """The error for a status that says nothing about notices."""
    return MetadataError(f"{url}: expected an answer about this machine, got {answer.status} {show(answer.body)}")


def read_object(body: bytes, url: str) -> dict[str, Any]:
    """A JSON object. Raises MetadataError for anything else."""
    try:
        value = load_json(body)
    except InputError as error:
        raise MetadataError(f"{url}: {show(str(error).encode())}") from None
    if not isinstance(value, dict):
        raise MetadataError(f"{url}: expected a JSON object, got {show(body)}")
    return value


def read_text(value: object) -> str:
    """A text of an answer, "" for anything else."""
    return value if isinstance(value, str) else ""


def show(body: bytes) -> str:
    """The beginning of an answer, fit for a log."""
    return repr(_CONTROL.sub(" ", body[:_MOST_SHOWN].decode("utf-8", "replace")))
