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
from wukong.serve.direct import HANDLERS, Answer
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
    app[HANDLERS] = {}
    app.router.add_get("/healthz", _healthz)
    for webhook, read in ((MUTATE, read_pod), (VALIDATE, read_object)):
        handler = _Handler(webhook, read, status, metrics, limits, answer_seconds)
        app[HANDLERS][f"/{webhook}"] = handler
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
    """One webhook. Plain requests are answered by serve.direct, others by aiohttp; the answers are the same."""

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
        self._metrics, self._limits, self.body_seconds = metrics, limits, answer_seconds
        self._told_reasons: dict[str, None] = {}

    def answer_in_slices(self, body: bytes, began: float) -> Slices[Answer]:
        try:
            question, slices = self._read(body)
        except InputError as error:
            result, answer = "malformed", _error(400, str(error))
        else:
            reply = yield from self._decide(slices, began + self.body_seconds)
            self._tell(reply)
            result, answer = reply.result, Answer(200, encode_response(question.uid, reply))
        self._record(result, began)
        return answer

    def answer_unsent(self, began: float) -> Answer:
        self._record("late", began)
        return _error(408, f"the body did not come within {self.body_seconds:g} s")

    async def handle(self, request: web.Request) -> web.Response:
        """The same for aiohttp."""
        began = time.perf_counter()
        with self._limits.reserve() as reservation:
            body = await self._read_body(request, reservation, began)
            answer = body if isinstance(body, Answer) else await take_turns(self.answer_in_slices(body, began))
        return _respond(answer)

    async def _read_body(self, request: web.Request, reservation: BodyReservation, began: float) -> bytes | Answer:
        """The body, or the answer to who sends none."""
        try:
            if (request.content_length or 0) > LIMIT_BYTES:
                raise BodyTooLargeError
            if "Content-Encoding" in request.headers:
                self._record("malformed", began)
                return _error(415, "send the body as it is, not compressed")
            async with asyncio.timeout(self.body_seconds):
                return await read_body(request.content, reservation)
        except BodyTooLargeError:
            self._record("too-large", began)
            return _error(413, f"the body is larger than {LIMIT_BYTES} bytes")
        except TooManyBodiesError:
            self._record("busy", began)
            return _error(503, "too much is being asked at once")
        except TimeoutError:
            return self.answer_unsent(began)
        except (web.RequestPayloadError, aiohttp.ClientPayloadError) as error:
            self._record("malformed", began)
            return _error(400, str(error))

    def _record(self, result: str, began: float) -> None:
        self._metrics.record_answer(self._webhook, result, time.perf_counter() - began)

    def _decide(self, slices: Slices[Reply], deadline: float) -> Slices[Reply]:
        if not self._status.is_synced:
            return Reply("unsynced")
        try:
            while True:
                next(slices)
                if time.perf_counter() > deadline:
                    return Reply("late")
                yield
        except StopIteration as end:
            reply: Reply = end.value
            return reply
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
    answer = _error(405, f"{request.path} answers POST, not {request.method}")
    return _respond(answer, {"Allow": "POST"})


async def _not_found(request: web.Request) -> web.Response:
    return _respond(_error(404, f"nothing is served at {request.path}; there are /{MUTATE}, /{VALIDATE} and /healthz"))


def _error(code: int, text: str) -> Answer:
    return Answer(code, msgspec.json.encode({"error": text}))


def _respond(answer: Answer, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(status=answer.status, body=answer.body, content_type="application/json", headers=headers)
