"""Asks a meter now and then and puts its answer where controllers find it. Started by app.live beside the loop.

A meter that does not answer changes nothing: what it said last grows old, and controllers judge its age.
"""

from __future__ import annotations

import asyncio
import logging

from wukong.api.resources import Key
from wukong.errors import ClusterError
from wukong.ports import Meter
from wukong.runtime.dispatch import Item
from wukong.runtime.loop import Loop

log = logging.getLogger(__name__)


async def keep_measuring(meter: Meter, loop: Loop, controller: str, every_seconds: float) -> None:
    """For ever. `controller` hears of every node that was measured, before or now."""
    while True:
        try:
            usage = await meter.usage()
        except ClusterError as error:
            log.warning("the meter did not answer", extra={"error": str(error), "again_seconds": every_seconds})
        else:
            known = {*loop.state.usage, *usage}
            loop.state.usage = usage
            loop.enqueue(Item(controller, Key("", name)) for name in sorted(known))
        await asyncio.sleep(every_seconds)
