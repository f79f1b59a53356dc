"""NodeUsage: how much of a node is in use. An internal kind: no API server has it, a meter's answers are held in it.

Objects are named after their nodes. On a real cluster a source puts them into the mirror; in an embedded one they are
written like any object, by a scenario.
"""

from __future__ import annotations

from wukong.api.meta import Object

USAGE_GROUP = "usage.novasphere.dev"


class NodeUsage(Object):
    """In percent of what is allocatable; None: not known."""

    measured_at: float | None = None  # seconds since the epoch; None: it holds until it is replaced
    cpu: float | None = None
    memory: float | None = None
    storage: float | None = None
