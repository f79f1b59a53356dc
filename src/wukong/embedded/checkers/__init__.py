"""Checkers judge a world from outside: they observe every change of the truth and ask no controller they judge.

    histories      versions rise, generations never fall, uids stay, finished pods stay finished, deletions are final
    budgets        no eviction takes a budget below what it asks for
    bindings       no pod is bound against a required rule or beyond a node's capacity, nor twice
    pod_creations  no controller creates a pod without the right to, or more pods than are wanted
    pod_deletions  no controller deletes a pod without the right to, or without a reason
    machines       no virtual machine runs twice, is lost, or leaves something behind
    moves          every surge of a workload is taken back; no node stays closed without a notice
    counts         created less removed is what is there; at rest statuses say what is there, and nothing is lost
    own_writes     no key is decided on a mirror that lacks its own last write
    mirrors        at rest, every process has seen everything

They know no controller by name: by what right one creates or deletes pods it declares itself (`PodRight`).
`Checkers` attaches all of them, always. What they find makes a story fail.
"""

from __future__ import annotations

from wukong.embedded.checkers.checkers import Checkers
from wukong.embedded.checkers.findings import Finding

__all__ = ["Checkers", "Finding"]
