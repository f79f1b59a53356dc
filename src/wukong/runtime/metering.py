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
    said = ""  # the last complaint: one that goes on is told once
    while True:
        try:
            usage = await meter.usage()
        except ClusterError as error:
            if str(error) != said:
                log.warning("the meter did not answer", extra={"error": str(error), "again_seconds": every_seconds})
            said = str(error)
        else:
            said = ""
            known = {*loop.state.usage, *usage}
            loop.state.usage = usage
            loop.enqueue(Item(controller, Key("", name)) for controller in controllers for name in sorted(known))
        await asyncio.sleep(every_seconds)
