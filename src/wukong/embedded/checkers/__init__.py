"""Judges of a world, from outside: they hear every change of the truth, and ask nobody whose decisions they judge.

    histories    versions rise, generations never fall, uids stay, what is over stays over, who goes goes
    budgets      no eviction takes a budget below what it asks for
    bindings     no pod is bound against a required rule or beyond a node's capacity, nor twice
    arrivals     nobody makes more pods than are wanted
    departures   nobody deletes a pod without a reason
    counts       created less removed is what is there; at rest statuses say what is there, and nothing is lost
    own_writes   no key is decided on a mirror that lacks its own last write
    mirrors      at rest, every process has seen everything

`Checkers` attaches all of them, always. What they find makes a story fail.
"""

from __future__ import annotations

from wukong.embedded.checkers.checkers import Checkers
from wukong.embedded.checkers.findings import Finding

__all__ = ["Checkers", "Finding"]
