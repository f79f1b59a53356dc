"""Two budgets on one pod: the API server answers every eviction with an error, whatever the budgets allow."""

from __future__ import annotations

from collections.abc import Iterator

from wukong.forecast.fields import PlanWarning
from wukong.forecast.warnings.situation import Situation

CODE = "two-budgets"


def find(situation: Situation) -> Iterator[PlanWarning]:
    written = {str(entry.key) for entry in situation.written if entry.group_kind == "PodDisruptionBudget.policy"}
    touched = {workload.subject for workload in situation.workloads}
    for workload in situation.all_workloads:
        names = [budget.key for budget in situation.budgets_of(workload)]
        if len(names) > 1 and (workload.subject in touched or written.intersection(names)):
            yield PlanWarning(
                code=CODE,
                subject=workload.subject,
                path="$.spec.template.metadata.labels",
                text=f"its pods are covered by {len(names)} budgets ({', '.join(names)}): every eviction is refused.",
                fix="Keep one of them, or narrow their selectors.",
            )
