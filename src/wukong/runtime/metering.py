"""Asks a meter now and then and puts its answer where controllers find it. Started by app.live beside the loop.

A meter that does not answer changes nothing: what it said last grows old, and controllers judge its age.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from wukong.api.resources import Key
from wukong.errors import ClusterError
from wukong.ports import Meter
from wukong.runtime.dispatch import Item
from wukong.runtime.loop import Loop

log = logging.getLogger(__name__)


async def keep_measuring(meter: Meter, loop: Loop, controllers: Sequence[str], every_seconds: float) -> None:
    """For ever. `controllers` hear of every node that was measured, before or now."""
    last_complaint = ""  # one that goes on is logged once
    while True:
        try:
            usage = await meter.usage()
        except ClusterError as error:
            if str(error) != last_complaint:
                log.warning("the meter did not answer", extra={"error": str(error), "again_seconds": every_seconds})
            last_complaint = str(error)
        else:
            last_complaint = ""
            nodes = sorted({*loop.state.usage, *usage})
            loop.state.usage = usage
            loop.enqueue(Item(controller, Key("", name)) for controller in controllers for name in nodes)
        await asyncio.sleep(every_seconds)
