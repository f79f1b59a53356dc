"""Our scheduler at work on a real cluster, in this process."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from testbed.pytest_plugin import Bed
from wukong.cluster.credentials import load
from wukong.cluster.kube import Kube
from wukong.cluster.list_watch import follow
from wukong.controllers.scheduler.controller import Scheduler
from wukong.runtime import Loop
from wukong.runtime.loop import LoopSettings


class WallClock:
    def now(self) -> float:
        return time.time()


@asynccontextmanager
async def scheduling(bed: Bed, name: str, *, grace_seconds: float = 20.0) -> AsyncIterator[None]:
    """It answers to this schedulerName. Without grace, what is under way in the end is dropped."""
    async with Kube(load(str(bed.kubeconfig))) as kube:
        settings = LoopSettings(grace_seconds=grace_seconds)
        chance = random.Random(1).random
        loop = Loop(kube, [Scheduler([name])], follow, clock=WallClock(), random=chance, settings=settings)
        stop = asyncio.Event()
        running = asyncio.create_task(loop.run(stop))
        try:
            yield
        finally:
            stop.set()
            await running
