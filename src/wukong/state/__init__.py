"""The mirror of a cluster: objects fed by watch events, indexes over them, and the one live engine snapshot. Row 2.

state = State()
state.replace("Node", nodes)         # a list, or a list again: what changed comes out
state.apply("MODIFIED", pod)         # one watch event
state.pods.on_node("node-7")         # keys, sorted
state.snapshot                       # the engine's, current with every event so far
"""

from wukong.state.assumed_placements import Assumed
from wukong.state.attempts import Attempt, Attempts
from wukong.state.mirror import Change, State

__all__ = ["Assumed", "Attempt", "Attempts", "Change", "State"]
