"""Asks a meter now and then, and hands over the usage of all nodes. What the source of the component usage runs.

A meter that does not answer changes nothing: what it said last grows old, and whoever reads it judges its age.
"""

from __future__ import annotations

import asyncio
import logging

from wukong.errors import ClusterError
from wukong.ports import Meter
from wukong.runtime.source import HandOver

log = logging.getLogger(__name__)


async def keep_measuring(meter: Meter, hand_over: HandOver, every_seconds: float) -> None:
    """For ever. A complaint that goes on is logged once."""
    complaint = ""
    while True:
        try:
            usages = await meter.measure()
        except ClusterError as error:
            if str(error) != complaint:
                log.warning("the meter did not answer", extra={"error": str(error), "again_seconds": every_seconds})
            complaint = str(error)
        else:
            complaint = ""
            hand_over(usages)
        await asyncio.sleep(every_seconds)
