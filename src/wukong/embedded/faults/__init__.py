"""Faults between processes and the server, and around them: by seed, counted, until a moment; then it is calm.

`catalogue` names the types, `Faults` brings them into a world.
"""

from __future__ import annotations

from wukong.embedded.faults.catalogue import TYPES, Episode, episodes, read_types
from wukong.embedded.faults.faults import Faults
from wukong.embedded.faults.ledger import Ledger

__all__ = ["TYPES", "Episode", "Faults", "Ledger", "episodes", "read_types"]
