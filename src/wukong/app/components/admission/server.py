"""The webhooks at work: replies.admission's answers over HTTPS, and certificates. Built by the component."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import AsyncExitStack

from prometheus_client import Gauge

from wukong.app.component import Context
from wukong.app.components.admission.certificate_keeper import CertificateKeeper
from wukong.app.components.admission.options import AdmissionOptions, address_of, files_of
from wukong.errors import InputError
from wukong.placement.slices import Slices
from wukong.replies.admission.own_kinds import KindAdmission
from wukong.replies.admission.pods import PodAdmission
from wukong.replies.admission.reply import ObjectRequest, PodRequest, Reply
from wukong.runtime import Loop
from wukong.runtime.metrics import AdmissionMetrics, Metrics
from wukong.serve.admission.server import build_admission_app
from wukong.serve.connections import count_connections
from wukong.serve.site import serve
from wukong.serve.tls import SERVER, CertificateFiles, HeldCertificate

CONNECTIONS = 512  # an API server has one for each pod that it is creating at a time
log = logging.getLogger(__name__)


class Reviewers:
    """Who answers for pods, and who for our own kinds."""

    def __init__(self, pods: PodAdmission, kinds: KindAdmission) -> None:
        self.pods, self.kinds = pods, kinds

    def review_pod(self, request: PodRequest, now: float) -> Slices[Reply]:
        return self.pods.review_in_slices(request, now)

    def review_object(self, request: ObjectRequest) -> Reply:
        return self.kinds.review(request)


class AdmissionServer:
    """Both webhooks over HTTPS, with files that somebody keeps or a certificate of our own."""

    def __init__(self, reviewers: Reviewers, options: AdmissionOptions, context: Context) -> None:
        self.reviewers, self.options, self.context = reviewers, options, context

    async def start(self, stack: AsyncExitStack, loop: Loop) -> Coroutine[None, None, None]:
        """Listen until the stack is left. Returns what must run beside: the keeping of certificates."""
        metrics, clock = self.context.metrics, self.context.clock
        assert metrics is not None, "who listens reports how it does"
        app = build_admission_app(
            self.reviewers, loop, AdmissionMetrics(metrics), clock, answer_seconds=self.options.answer_seconds
        )
        paths, held = files_of(self.options), HeldCertificate()
        keeper = CertificateKeeper(loop.cluster, self.options, held, clock, lambda: loop.is_leading)
        files = CertificateFiles(*paths, None) if paths else None
        tls = files.build_context() if files else held.build_context()
        host, port = address_of(self.options)
        try:
            port = await serve(stack, app, host, port, tls, count_connections(metrics, "admission", CONNECTIONS))
        except InputError as error:
            raise error.at("--admission") from None
        _show_expiry(metrics, files or keeper)
        log.info("the webhooks listen", extra={"host": host, "port": port, "own_certificate": files is None})
        return keeper.run() if files is None else _wait_for_ever()


def _show_expiry(metrics: Metrics, certificates: CertificateFiles | CertificateKeeper) -> None:
    gauge = Gauge(
        "wukong_admission_certificate_expiry_timestamp_seconds",
        "When the webhooks' certificate expires, in seconds since 1970; 0 while there is none",
        registry=metrics.registry,
    )
    if isinstance(certificates, CertificateFiles):
        gauge.set_function(lambda: certificates.expiries().get(SERVER, 0.0))
    else:
        gauge.set_function(certificates.expires_at)


async def _wait_for_ever() -> None:
    await asyncio.Event().wait()
