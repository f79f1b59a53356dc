"""What makes controllers act: queue and dispatch without I/O, and the asyncio shell around them. Row 4.

event → State → dispatch → queue → reconcile → Outcome → perform

The shell is imported when one of its names is first asked for: embedded clusters need neither asyncio nor Prometheus.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from wukong.runtime.dispatch import Dispatch, Item
from wukong.runtime.queue import Backoff, Queue

if TYPE_CHECKING:
    from wukong.runtime.leader import Leader, LeaseTimes, decide_lease
    from wukong.runtime.loop import Loop, LoopSettings
    from wukong.runtime.metrics import Metrics
    from wukong.runtime.performer import Performer

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
_MODULES = {
    "Leader": "leader",
    "LeaseTimes": "leader",
    "Loop": "loop",
    "LoopSettings": "loop",
    "Metrics": "metrics",
    "Performer": "performer",
    "decide_lease": "leader",
}


def __getattr__(name: str) -> Any:
    """Import a name of the shell."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
