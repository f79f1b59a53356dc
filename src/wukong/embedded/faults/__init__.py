"""Faults between processes and the server, and around them: by seed, counted, until a moment; then it is calm.

`catalogue` names the types, `Faults` brings them into a world.
"""

from __future__ import annotations

from wukong.embedded.faults.catalogue import TYPES, Episode, episodes, read_types
from wukong.embedded.faults.fault_counts import FaultCounts
from wukong.embedded.faults.faults import Faults

__all__ = ["TYPES", "Episode", "FaultCounts", "Faults", "episodes", "read_types"]
