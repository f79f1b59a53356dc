"""The heartbeats of all hollow Nodes: their leases, renewed in time and spread evenly. Run by kubelet.py.

A kubelet renews every 10 s and the node controller waits 50 s. With thousands of Nodes on a small machine that alone
would keep the API server busy, so the interval grows with their number: 30 s at most, from 4,500 Nodes on.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable

from testbed import nodes
from testbed.client import UNREACHABLE, ApiError, Client
from testbed.objects import Node

log = logging.getLogger(__name__)

LEAST_SECONDS, MOST_SECONDS = 10.0, 30.0
WRITES_PER_SECOND = 150
AT_ONCE = 16
TICK_SECONDS = 0.25


class Leases:
    """`heard` gives the Nodes whose kubelets are not silent; only those are renewed."""

    def __init__(self, client: Client, heard: Callable[[], list[Node]], seconds: float | None = None) -> None:
        self.client = client
        self.heard = heard
        self.seconds = seconds
        self.due: dict[str, float] = {}  # uid of the Node -> when its lease is renewed next
        self.slots = asyncio.Semaphore(AT_ONCE)

    async def run(self) -> None:
        while True:
            heard, now = self.heard(), time.monotonic()
            late = [node for node in heard if self.due.get(node.metadata.uid, 0.0) <= now]
            await asyncio.gather(*(self.renew(node) for node in late))
            await asyncio.sleep(TICK_SECONDS)

    def interval(self, count: int) -> float:
        return self.seconds or min(MOST_SECONDS, max(LEAST_SECONDS, count / WRITES_PER_SECOND))

    async def renew(self, node: Node) -> None:
        """Renew one, or create it. What fails is due again at the next tick."""
        uid, interval = node.metadata.uid, self.interval(len(self.heard()))
        is_new = uid not in self.due
        async with self.slots:
            try:
                await (self.create(node) if is_new else self.extend(node))
            except (ApiError, *UNREACHABLE) as error:
                log.warning("lease of %s: will try again: %r", node.metadata.name, error)
                return
        # Nodes that were created together are spread over the interval from their second renewal on.
        self.due[uid] = time.monotonic() + interval * (random.uniform(0.2, 1.0) if is_new else 1.0)

    async def create(self, node: Node) -> None:
        try:
            await self.client.create(nodes.LEASES, nodes.lease(node, time.time()))
        except ApiError as error:
            if error.status != 409:
                raise
            await self.extend(node)

    async def extend(self, node: Node) -> None:
        path = f"{nodes.LEASES}/{node.metadata.name}"
        try:
            await self.client.patch(path, {"spec": nodes.renewal(time.time())})
        except ApiError as error:
            if error.status != 404:
                raise
            await self.client.create(nodes.LEASES, nodes.lease(node, time.time()))
