"""kube-scheduler's rules, read plainly: one pod, one node at a time, no numpy, no caches.

Slow and obviously right. The engine is tested against it; it never imports the engine. What the API server does to a
manifest before the scheduler sees it is here too (admit, problems).
"""

from wukong.rules.admission import admit
from wukong.rules.cluster import Cluster
from wukong.rules.decide import Decision, decide
from wukong.rules.preemption import Preemption
from wukong.rules.validate import problems
from wukong.rules.verdict import Verdict

__all__ = ["Cluster", "Decision", "Preemption", "Verdict", "admit", "decide", "problems"]
