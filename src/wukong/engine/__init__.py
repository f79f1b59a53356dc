"""The scheduling engine: decides like kube-scheduler, on columns, fast. Row 1: imports only row 0.

snapshot = Snapshot.of(objects)
scheduler = Scheduler(snapshot, default_profile())
scheduler.place(pod)         # "node-7", and the snapshot counts it
scheduler.decide(pod)        # every plugin's verdict and points
"""

from wukong.engine.decision import Decision, Preemption, Refusal
from wukong.engine.scheduler import Scheduler
from wukong.engine.snapshot import Snapshot
from wukong.engine.ties import FIRST_BY_NAME, RandomTies, RoundRobin, Ties

__all__ = [
    "FIRST_BY_NAME",
    "Decision",
    "Preemption",
    "RandomTies",
    "Refusal",
    "RoundRobin",
    "Scheduler",
    "Snapshot",
    "Ties",
]
