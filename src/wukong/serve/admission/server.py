"""Admission webhooks over HTTP: POST /mutate for pods, /validate for our own kinds, GET /healthz. app.live serves it.

Decode, call, encode; what is answered is decided in wukong.replies.admission. Whatever comes in, the answer is one of

    200  an AdmissionReview; whatever goes wrong with one that can be answered, the object is allowed as it is
    400  the body is no AdmissionReview: the text says where
    404  405  408  413  415
    503  too much is being asked at once

Never 500. The API server ignores a webhook that does not answer 200 (failurePolicy: Ignore), so none of them is a
reason for a pod not to be created.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Protocol

import aiohttp
import msgspec
from aiohttp import web

from wukong.errors import InputError
from wukong.placement.slices import Slices
from wukong.ports import Clock
from wukong.replies.admission.reply import ObjectRequest, PodRequest, Reply
from wukong.runtime.metrics import AdmissionMetrics
from wukong.serve.admission.request import Question, read_object_review, read_pod_review
from wukong.serve.admission.response import encode_response
from wukong.serve.body_limits import (
    BodyLimits,
    BodyReservation,
    BodyTooLargeError,
    TooManyBodiesError,
    read_body,
)
from wukong.serve.probes import Status
from wukong.serve.turns import take_turns

LIMIT_BYTES = 7 << 20  # of one body: an object of the largest size that etcd takes, twice, and who asks
TOTAL_BYTES = 64 << 20
ANSWER_SECONDS = 1.5  # less than the webhooks' timeoutSeconds: a late answer is better than none
MUTATE, VALIDATE = "mutate", "validate"
_MOST_REASONS = 256  # told once each, until so many are known
log = logging.getLogger(__name__)


class Reviewers(Protocol):
    """What decides: wukong.replies.admission has it."""

    def review_pod(self, request: PodRequest, now: float) -> Slices[Reply]: ...

    def review_object(self, request: ObjectRequest) -> Reply: ...


def build_admission_app(
    reviewers: Reviewers,
    status: Status,
    metrics: AdmissionMetrics,
    clock: Clock,
    *,
    answer_seconds: float = ANSWER_SECONDS,
) -> web.Application:
    def read_pod(body: bytes) -> tuple[Question, Slices[Reply]]:
        question = read_pod_review(body)
        return question, _answer_pod(question, reviewers, clock)

    def read_object(body: bytes) -> tuple[Question, Slices[Reply]]:
        question = read_object_review(body)
        return question, _answer_object(question, reviewers)

    limits = BodyLimits(LIMIT_BYTES, TOTAL_BYTES)
    app = web.Application()
    app.router.add_get("/healthz", _healthz)
    for webhook, read in ((MUTATE, read_pod), (VALIDATE, read_object)):
        handler = _Handler(webhook, read, status, metrics, limits, answer_seconds)
        app.router.add_post(f"/{webhook}", handler.handle)
        app.router.add_route("*", f"/{webhook}", _wrong_method)
    app.router.add_route("*", "/{path:.*}", _not_found)
    return app


def _answer_pod(question: Question, reviewers: Reviewers, clock: Clock) -> Slices[Reply]:
    if not isinstance(question.about, PodRequest):
        return _answer_nothing(question)
    return (yield from reviewers.review_pod(question.about, clock.now()))


def _answer_object(question: Question, reviewers: Reviewers) -> Slices[Reply]:
    yield
    if not isinstance(question.about, ObjectRequest):
        return _answer_nothing(question)
    return reviewers.review_object(question.about)


def _answer_nothing(question: Question) -> Reply:
    return Reply("unreadable", reasons=(question.problem,)) if question.problem else Reply("left-alone")


class _Handler:
    """One webhook."""

    def __init__(
        self,
        webhook: str,
        read: Callable[[bytes], tuple[Question, Slices[Reply]]],
        status: Status,
        metrics: AdmissionMetrics,
        limits: BodyLimits,
        answer_seconds: float,
    ) -> None:
        self._webhook, self._read, self._status = webhook, read, status
        self._metrics, self._limits, self._answer_seconds = metrics, limits, answer_seconds
        self._told_reasons: dict[str, None] = {}

    async def handle(self, request: web.Request) -> web.Response:
        started = time.perf_counter()
        with self._limits.reserve() as reservation:
            result, response = await self._answer(request, reservation)
        self._metrics.record_answer(self._webhook, result, time.perf_counter() - started)
        return response

    async def _answer(self, request: web.Request, reservation: BodyReservation) -> tuple[str, web.Response]:
        if (request.content_length or 0) > LIMIT_BYTES:
            return "too-large", _too_large()
        if "Content-Encoding" in request.headers:
            return "malformed", _error(415, "send the body as it is, not compressed")
        deadline = asyncio.get_running_loop().time() + self._answer_seconds
        try:
            async with asyncio.timeout_at(deadline):
                body = await read_body(request.content, reservation)
            question, slices = self._read(body)
        except BodyTooLargeError:
            return "too-large", _too_large()
        except TooManyBodiesError:
            return "busy", _error(503, "too much is being asked at once")
        except TimeoutError:
            return "late", _error(408, f"the body did not come within {self._answer_seconds:g} s")
        except (InputError, web.RequestPayloadError, aiohttp.ClientPayloadError) as error:
            return "malformed", _error(400, str(error))
        reply = await self._decide(slices, deadline)
        self._tell(reply)
        return reply.result, web.Response(body=encode_response(question.uid, reply), content_type="application/json")

    async def _decide(self, slices: Slices[Reply], deadline: float) -> Reply:
        if not self._status.is_synced:
            return Reply("unsynced")
        try:
            async with asyncio.timeout_at(deadline):
                return await take_turns(slices)
        except TimeoutError:
            return Reply("late")
        except Exception:
            log.exception("a review failed", extra={"webhook": self._webhook})
            return Reply("failed")

    def _tell(self, reply: Reply) -> None:
        """Each reason once: a policy that can never be applied would otherwise be told for every pod."""
        for reason in reply.reasons:
            if reason not in self._told_reasons:
                if len(self._told_reasons) >= _MOST_REASONS:
                    self._told_reasons.clear()
                self._told_reasons[reason] = None
                log.warning("not everything was added", extra={"result": reply.result, "reason": reason[:1000]})


async def _healthz(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


async def _wrong_method(request: web.Request) -> web.Response:
    return _error(405, f"{request.path} answers POST, not {request.method}", {"Allow": "POST"})


async def _not_found(request: web.Request) -> web.Response:
    return _error(404, f"nothing is served at {request.path}; there are /{MUTATE}, /{VALIDATE} and /healthz")


def _too_large() -> web.Response:
    return _error(413, f"the body is larger than {LIMIT_BYTES} bytes")


def _error(code: int, text: str, headers: dict[str, str] | None = None) -> web.Response:
    body = msgspec.json.encode({"error": text})
    return web.Response(status=code, body=body, content_type="application/json", headers=headers)
