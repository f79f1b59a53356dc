"""What a change will do, said before it is applied: the cluster is forked, and the change played on it. Row 7.

plan = make_plan(baseline, change, range(1, 17), executor)
plan.verdict.kind                    # completes, degrades, needs-nodes or never-ends
plan.document()                      # all of it for programs
"""

from wukong.forecast.fields import Plan
from wukong.forecast.plan import PlanOptions, make_plan
from wukong.forecast.planned_change import PlannedChange

__all__ = ["Plan", "PlanOptions", "PlannedChange", "make_plan"]
