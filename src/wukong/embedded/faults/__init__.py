"""Faults between processes and the server, and around them: drawn by seed, counted, and over at a given moment.

`catalogue` lists the types, `Faults` injects them into a world.
"""

from __future__ import annotations

from wukong.embedded.faults.catalogue import TYPES, Episode, plan_episodes, read_types
from wukong.embedded.faults.fault_counts import FaultCounts
from wukong.embedded.faults.faults import Faults

__all__ = ["TYPES", "Episode", "FaultCounts", "Faults", "plan_episodes", "read_types"]
