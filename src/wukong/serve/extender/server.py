"""The scheduler extender over HTTP: POST /filter, /prioritize and /preempt, GET /healthz. app.live serves it.

Decode, call, encode; what is decided is decided in wukong.replies.extender. Whatever comes in, the answer is one of

    200  what was asked
    400  the body is not what kube-scheduler sends: the text says where
    404  405  413  415
    408  the body did not come in time
    503  we cannot say: not every kind has been listed yet, too much is being asked at once, or deciding failed (logged,
         counted)

Never 500, and never a filter result with Error: that fails the pod even where the extender is `ignorable`.

Whatever is asked, the event loop is held for some 10 ms at a time: what takes longer is done in slices, between which
everybody else has a turn.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import aiohttp
import msgspec
from aiohttp import web

from wukong.api.core import Node, Pod
from wukong.api.decode import decode_one
from wukong.errors import InputError
from wukong.placement.slices import Slices
from wukong.ports import Clock
from wukong.runtime.metrics import ExtenderMetrics
from wukong.serve.body_limits import (
    LIMIT_BYTES,
    TOTAL_BYTES,
    BodyLimits,
    BodyReservation,
    BodyTooLargeError,
    TooManyBodiesError,
    read_body,
)
from wukong.serve.extender.offered_nodes import UNKNOWN, FleetNames, FleetNamesCache, NodeRows, Offer, Rows
from wukong.serve.extender.request import ExtenderArgs, read_args, read_preemption
from wukong.serve.extender.response import (
    FilterResult,
    Scores,
    encode_filter_result,
    encode_preemption_result,
    encode_priorities,
)
from wukong.serve.probes import Status
from wukong.serve.turns import take_turns

BODY_SECONDS = 30.0  # for a body to come, and for a large answer to go; kube-scheduler itself waits 3 to 5
VERBS = ("filter", "prioritize", "preempt")
_PIECE = 1 << 18
_SYNCING = "not every kind has been listed yet"
_FAILED = "deciding failed; the log says why"
_BUSY = "too much is being asked at once"

log = logging.getLogger(__name__)


class ExtenderVerbs(Protocol):
    """What decides: wukong.replies.extender.verbs.Extender has it."""

    def fleet_in_slices(self, now: float) -> Slices[Any]: ...

    def fleet_of(self, nodes: Sequence[Node | str], now: float) -> Any: ...

    def filter_in_slices(self, pod: Pod, fleet: Any, rows: Rows, now: float) -> Slices[FilterResult]: ...

    def prioritize_in_slices(self, pod: Pod, fleet: Any, rows: Rows, now: float) -> Slices[Scores]: ...

    def preempt_in_slices(
        self, pod: Pod, candidates: Mapping[str, list[Pod] | list[str]], now: float
    ) -> Slices[list[str]]: ...


Decision = Slices[bytes]  # the bytes of an answer


class RequestHandler:
    """From the bytes of a request to the bytes of its answer, without HTTP: reading first, in slices, then deciding."""

    def __init__(self, extender: ExtenderVerbs, clock: Clock) -> None:
        self._extender = extender
        self._clock = clock
        self._fleet_names = FleetNamesCache()

    def filter(self, body: bytes) -> Slices[Decision]:
        args, now = read_args(body), self._clock.now()
        fleet, _, offer = yield from self._read_offer(args, now)

        def decide() -> Decision:
            result = yield from self._extender.filter_in_slices(args.pod, fleet, offer.rows, now)
            return encode_filter_result(offer, result)

        return decide()

    def prioritize(self, body: bytes) -> Slices[Decision]:
        args, now = read_args(body), self._clock.now()
        fleet, fleet_names, offer = yield from self._read_offer(args, now)

        def decide() -> Decision:
            scores = yield from self._extender.prioritize_in_slices(args.pod, fleet, offer.rows, now)
            return encode_priorities(offer, fleet_names, scores)

        return decide()

    def preempt(self, body: bytes) -> Slices[Decision]:
        pod, candidates = yield from read_preemption(body)
        victims = {node: candidate.pods for node, candidate in candidates.items()}

        def decide() -> Decision:
            remaining = yield from self._extender.preempt_in_slices(pod, victims, self._clock.now())
            return encode_preemption_result(candidates, remaining)

        return decide()

    def _read_offer(self, args: ExtenderArgs, now: float) -> Slices[tuple[NodeRows, FleetNames, Offer]]:
        fleet = yield from self._extender.fleet_in_slices(now)
        yield
        fleet_names = self._fleet_names.of(fleet)
        yield
        if args.names is not None:
            return fleet, fleet_names, fleet_names.offer_names(args.names)
        items = args.items or []
        offer = fleet_names.offer_items(items)
        yield
        if (offer.rows != UNKNOWN).all():
            return fleet, fleet_names, offer
        # Some are newer than our mirror: what was sent says all about them that the mirror would.
        nodes: list[Node | str] = []
        for index, (row, item) in enumerate(zip(offer.rows.tolist(), offer.items or (), strict=True)):
            nodes.append(_read_node(item, index) if row == UNKNOWN else fleet.names[row])
            yield
        fleet = self._extender.fleet_of(nodes, now)
        yield
        fleet_names = FleetNames(fleet)
        return fleet, fleet_names, fleet_names.offer_items(items)


def build_extender_app(
    extender: ExtenderVerbs,
    status: Status,
    metrics: ExtenderMetrics,
    clock: Clock,
    *,
    limit_bytes: int = LIMIT_BYTES,
    total_bytes: int = TOTAL_BYTES,
) -> web.Application:
    handler, limits = RequestHandler(extender, clock), BodyLimits(limit_bytes, total_bytes)
    app = web.Application()
    app.router.add_get("/healthz", _healthz)
    for verb in VERBS:
        app.router.add_post(f"/{verb}", _build_handler(verb, getattr(handler, verb), status, metrics, limits))
        app.router.add_route("*", f"/{verb}", _wrong_method)
    app.router.add_route("*", "/{path:.*}", _not_found)
    return app


def _build_handler(
    verb: str,
    read: Callable[[bytes], Slices[Decision]],
    status: Status,
    metrics: ExtenderMetrics,
    limits: BodyLimits,
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        started = time.perf_counter()
        with limits.reserve() as reservation:
            response = await answer(request, reservation)
            metrics.record_answer(verb, response.status, time.perf_counter() - started)
            if isinstance(response.body, bytes) and len(response.body) > _PIECE:
                return await _send_in_pieces(request, response.body)
        return response

    async def answer(request: web.Request, reservation: BodyReservation) -> web.Response:
        if not status.is_synced:
            return _error(503, _SYNCING)
        if (request.content_length or 0) > limits.limit_bytes:
            return _too_large(limits.limit_bytes)
        if "Content-Encoding" in request.headers:
            return _error(415, "send the body as it is, not compressed")
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await read_body(request.content, reservation)
            decision = await take_turns(read(body))
        except BodyTooLargeError:
            return _too_large(limits.limit_bytes)
        except TooManyBodiesError:
            return _error(503, _BUSY)
        except TimeoutError:
            return _error(408, f"the body did not come within {BODY_SECONDS:g} s")
        except (InputError, web.RequestPayloadError, aiohttp.ClientPayloadError) as error:
            return _error(400, str(error))
        except Exception:
            return respond_failed()
        try:
            return web.Response(body=await take_turns(decision), content_type="application/json")
        except Exception:
            return respond_failed()

    def respond_failed() -> web.Response:
        log.exception("extender failed", extra={"verb": verb})
        return _error(503, _FAILED)

    return handle


async def _send_in_pieces(request: web.Request, body: bytes) -> web.StreamResponse:
    """Written whole, what the socket does not take at once would be copied twice by asyncio.

    Whoever does not read its answer in time is cut off: the answer, and what was asked, are in memory meanwhile.
    """
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.content_length = len(body)
    try:
        async with asyncio.timeout(BODY_SECONDS):
            await response.prepare(request)
            view = memoryview(body)
            for index in range(0, len(body), _PIECE):
                await response.write(view[index : index + _PIECE])
            await response.write_eof()
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
    return response


def _read_node(item: msgspec.Raw, index: int) -> Node:
    try:
        node = decode_one(item, "Node")
    except InputError as error:
        raise error.at(f"Nodes.items[{index}]") from None
    assert isinstance(node, Node)
    return node


async def _healthz(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


async def _wrong_method(request: web.Request) -> web.Response:
    return _error(405, f"{request.path} answers POST, not {request.method}", {"Allow": "POST"})


async def _not_found(request: web.Request) -> web.Response:
    return _error(404, f"nothing is served at {request.path}; there are /{', /'.join(VERBS)} and /healthz")


def _too_large(limit_bytes: int) -> web.Response:
    return _error(413, f"the body is larger than {limit_bytes} bytes; set nodeCacheCapable to send names only")


def _error(code: int, text: str, headers: dict[str, str] | None = None) -> web.Response:
    body = msgspec.json.encode({"error": text})
    return web.Response(status=code, body=body, content_type="application/json", headers=headers)
