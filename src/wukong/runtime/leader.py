"""Leader election by a Lease: of several instances only one acts. The rule is `decide_lease`; `Leader` is its shell.

    following ──── the lease is free, or unchanged for its duration by our own clock ───► leading
        ▲                                                                                    │ renewed every `retry`
        └── somebody else holds it, or it could not be renewed within `renew` seconds ◄──────┘

As in client-go, no two clocks are compared: what counts is how long we have seen the lease unchanged. We stop leading
`duration - renew` seconds before anyone may take over, measured from before the last renewal was sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Literal, NamedTuple

import msgspec

from wukong.api.kinds import LEASES
from wukong.api.resources import Key
from wukong.errors import ClusterError, NotFound
from wukong.ports import Clock, Cluster, Document, PatchBody
from wukong.runtime.event_writer import micro_time

log = logging.getLogger(__name__)
_MOST_TRANSITIONS = 2**31 - 1  # what the API server takes
_UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)


class LeaseTimes(msgspec.Struct, frozen=True):
    """Seconds: how long others wait, how long we try to renew before giving up, how often we look."""

    duration: int = 15
    renew: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not self.duration > self.renew > self.retry > 0:
            raise ValueError(f"expected duration > renew > retry > 0, got {self}")


class Lease(NamedTuple):
    holder: str
    duration: float
    transitions: int
    renewed: str


class Claim(NamedTuple):
    """What to do about the lease: write `spec` to it, or nothing."""

    act: Literal["create", "take", "renew", "wait"]
    spec: Document = {}


def decide_lease(
    observed: Lease | None, identity: str, unchanged_since: float, now: float, stamp: str, times: LeaseTimes
) -> Claim:
    """`unchanged_since` and `now` are our own clock's; `stamp` is the time written for people to read."""
    ours: Document = {"holderIdentity": identity, "leaseDurationSeconds": times.duration, "renewTime": stamp}
    if observed is None:
        return Claim("create", {**ours, "acquireTime": stamp, "leaseTransitions": 0})
    if observed.holder == identity:
        return Claim("renew", ours)
    if observed.holder and now < unchanged_since + observed.duration:
        return Claim("wait")
    transitions = min(observed.transitions + 1, _MOST_TRANSITIONS)
    return Claim("take", {**ours, "acquireTime": stamp, "leaseTransitions": transitions})


def read_lease(document: Document) -> Lease:
    spec = document.get("spec") or {}
    return Lease(
        spec.get("holderIdentity") or "",
        float(spec.get("leaseDurationSeconds") or 0),
        int(spec.get("leaseTransitions") or 0),
        str(spec.get("renewTime") or ""),
    )


class Leader:
    """Keeps trying for as long as `run` runs. `on_change` hears of every change, at once."""

    def __init__(
        self,
        cluster: Cluster,
        key: Key,
        identity: str,
        *,
        clock: Clock,
        times: LeaseTimes | None = None,
        on_change: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self.cluster, self.key, self.identity, self.clock = cluster, key, identity, clock
        self.times = times or LeaseTimes()
        self.on_change = on_change
        self._until = float("-inf")  # we lead before this time of the event loop's clock, which never jumps
        self._timer: asyncio.TimerHandle | None = None
        self._was_leading = False
        self._seen: Lease | None = None
        self._unchanged_since = 0.0
        self._problem = ""

    @property
    def is_leading(self) -> bool:
        return asyncio.get_running_loop().time() < self._until

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            begun = loop.time()
            deadline = self._until if self.is_leading else begun + self.times.renew
            try:
                async with asyncio.timeout_at(deadline):
                    await self._claim(begun)
                self._problem = ""
            except (TimeoutError, ClusterError):  # whatever it was, only a renewal keeps us leading
                pass
            except _UNREADABLE as error:
                self._report_unreadable(error)
            await asyncio.sleep(self.times.retry)

    async def release(self) -> None:
        """Stop leading, and let the next one take over without waiting."""
        was_leading = self.is_leading
        self._lead_until(float("-inf"))
        if not was_leading:
            return
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": micro_time(self.clock.now())}
        with suppress(TimeoutError, ClusterError, *_UNREADABLE):
            async with asyncio.timeout(self.times.retry):
                document = await self.cluster.get(LEASES, self.key, dict)
                if read_lease(document).holder == self.identity:
                    await self._patch(document, spec)

    async def _claim(self, begun: float) -> None:
        document = await self._get()
        claim = self._decide(document)
        if claim.act == "wait":
            self._lead_until(float("-inf"))
            return
        if document is None:
            meta = {"name": self.key.name, "namespace": self.key.namespace}
            body = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": meta, "spec": claim.spec}
            await self.cluster.create(LEASES, body, self.key.namespace)
        else:
            await self._patch(document, claim.spec)
        self._lead_until(begun + self.times.renew)

    def _report_unreadable(self, error: Exception) -> None:
        """A Lease that makes no sense may be held by somebody: it is left alone, and told once."""
        problem = f"{type(error).__name__} {error}"
        if problem != self._problem:
            log.warning("the lease cannot be read", extra={"lease": str(self.key), "error": problem})
        self._problem = problem

    async def _get(self) -> Document | None:
        try:
            document: Document = await self.cluster.get(LEASES, self.key, dict)
        except NotFound:
            return None
        return document

    def _decide(self, document: Document | None) -> Claim:
        now = asyncio.get_running_loop().time()
        observed = None if document is None else read_lease(document)
        if observed != self._seen:
            self._seen, self._unchanged_since = observed, now
        stamp = micro_time(self.clock.now())
        return decide_lease(observed, self.identity, self._unchanged_since, now, stamp, self.times)

    async def _patch(self, document: Document, spec: Document) -> None:
        """Only if nobody wrote since we read."""
        body = {"metadata": {"resourceVersion": document["metadata"]["resourceVersion"]}, "spec": spec}
        await self.cluster.patch(LEASES, self.key, PatchBody("merge", body))

    def _lead_until(self, until: float) -> None:
        self._until = until
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(until, self._notify) if self.is_leading else None
        self._notify()

    def _notify(self) -> None:
        is_leading = self.is_leading
        if is_leading != self._was_leading:
            self._was_leading = is_leading
            self.on_change(is_leading)
