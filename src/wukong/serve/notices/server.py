"""The hook over HTTP: POST /notices, and GET /healthz. The component hook serves it.

Decode, call, encode. Who may call is known before a byte of the body is read. Whatever comes in, the answer is one of

    200  what is on the Node now, and whether that changed
    400  the body is not what the hook takes: the text says every problem
    401  no token, or not the right one
    404  405  408  413  415
    409  the id of an instance is that of several nodes
    503  the API server could not be asked, or did not take it: send it again
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple, Protocol

import aiohttp
import msgspec
from aiohttp import web

from wukong.errors import ClusterError, Conflict, InputError, NotFound
from wukong.ports import Clock
from wukong.serve.body_limits import (
    BodyLimits,
    BodyReservation,
    BodyTooLargeError,
    TooManyBodiesError,
    read_body,
)
from wukong.serve.notices.request import RequestedNotice, read_notice_request

PATH = "/notices"
LIMIT_BYTES = 16 << 10  # of one body: a notice has a few hundred
TOTAL_BYTES = 1 << 20
BODY_SECONDS = 10.0
log = logging.getLogger(__name__)


class WrittenNotice(NamedTuple):
    node: str
    notice: str | None  # the annotation's text
    is_changed: bool


class NoticeWriter(Protocol):
    async def write(self, notice: RequestedNotice) -> WrittenNotice:
        """Put it on its Node. Raises NotFound, AmbiguousMachineError, and other ClusterErrors."""
        ...


class AmbiguousMachineError(Exception):
    """An id that several nodes share."""


Authorize = Callable[[str], bool]  # the header Authorization → whether its sender may call
Count = Callable[[int], None]  # hears the code of every answer


def build_hook_app(writer: NoticeWriter, authorize: Authorize, clock: Clock, count: Count) -> web.Application:
    limits = BodyLimits(LIMIT_BYTES, TOTAL_BYTES)

    async def handle(request: web.Request) -> web.Response:
        with limits.reserve() as reservation:
            response = await respond(request, reservation)
        count(response.status)
        return response

    async def respond(request: web.Request, reservation: BodyReservation) -> web.Response:
        if not authorize(request.headers.get("Authorization", "")):
            return _error(401, "expected Authorization: Bearer with the hook's token", {"WWW-Authenticate": "Bearer"})
        if request.method != "POST":
            return _error(405, f"{PATH} answers POST, not {request.method}", {"Allow": "POST"})
        if "Content-Encoding" in request.headers:
            return _error(415, "send the body as it is, not compressed")
        if (request.content_length or 0) > LIMIT_BYTES:
            return _error(413, f"the body is larger than {LIMIT_BYTES} bytes")
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await read_body(request.content, reservation)
            notice = read_notice_request(body, clock.now())
        except BodyTooLargeError:
            return _error(413, f"the body is larger than {LIMIT_BYTES} bytes")
        except TooManyBodiesError:
            return _error(503, "too much is being sent at once", _LATER)
        except TimeoutError:
            return _error(408, f"the body did not come within {BODY_SECONDS:g} s")
        except (InputError, web.RequestPayloadError, aiohttp.ClientPayloadError) as error:
            return _error(400, str(error))
        return await write(notice)

    async def write(notice: RequestedNotice) -> web.Response:
        try:
            written = await writer.write(notice)
        except NotFound as error:
            return _error(404, str(error))
        except AmbiguousMachineError as error:
            return _error(409, str(error))
        except Conflict as error:
            return _error(503, str(error), _LATER)
        except ClusterError as error:
            log.warning("a notice was not written", extra={"error": str(error)})
            return _error(503, "the API server did not take it; the log says why", _LATER)
        body = {"node": written.node, "notice": written.notice, "changed": written.is_changed}
        return web.Response(body=msgspec.json.encode(body), content_type="application/json")

    app = web.Application()
    app.router.add_get("/healthz", _healthz)
    app.router.add_route("*", PATH, handle)
    app.router.add_route("*", "/{path:.*}", _not_found)
    return app


_LATER = {"Retry-After": "1"}


async def _healthz(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


async def _not_found(_: web.Request) -> web.Response:
    return _error(404, f"nothing is served here; there are {PATH} and /healthz")


def _error(code: int, text: str, headers: dict[str, str] | None = None) -> web.Response:
    body = msgspec.json.encode({"error": text})
    return web.Response(status=code, body=body, content_type="application/json", headers=headers)
