"""What makes controllers act: queue and dispatch without I/O, and the asyncio shell around them. Row 4.

event → State → dispatch → queue → reconcile → Outcome → perform
"""

from wukong.runtime.dispatch import Dispatch, Item
from wukong.runtime.leader import Leader, LeaseTimes, decide_lease
from wukong.runtime.loop import Loop, LoopSettings
from wukong.runtime.metrics import Metrics
from wukong.runtime.performer import Performer
from wukong.runtime.queue import Backoff, Queue

__all__ = [
    "Backoff",
    "Dispatch",
    "Item",
    "Leader",
    "LeaseTimes",
    "Loop",
    "LoopSettings",
    "Metrics",
    "Performer",
    "Queue",
    "decide_lease",
]
