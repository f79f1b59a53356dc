"""kube-scheduler's rules, read plainly: one pod, one node at a time, no numpy, no caches.

Slow and obviously right: the oracle that tests and the checkers of the embedded cluster hold decisions against. Shares
nothing with what decides but the structs of `api`, and nothing that decides imports it.
"""

from wukong.rules.cluster import Cluster
from wukong.rules.decide import Decision, decide
from wukong.rules.preemption import Preemption
from wukong.rules.verdict import Verdict

__all__ = ["Cluster", "Decision", "Preemption", "Verdict", "decide"]
