"""As many replicas that must be apart as there are domains, and none may be missing: the next rollout never ends.

A new pod finds every domain taken by an old one, and no old one goes before the new one is ready (kubernetes#116891).
"""

from __future__ import annotations

from collections.abc import Iterator

from wukong.embedded.actors.deployment.sizes import resolve_limits
from wukong.forecast.fields import PlanWarning
from wukong.forecast.warnings.replicas_above_domains import list_separations
from wukong.forecast.warnings.situation import Situation, TouchedWorkload

CODE = "next-rollout-never-ends"
TEMPLATE_HASH = "pod-template-hash"
_DEFAULT_SHARE = "25%"


def find(situation: Situation) -> Iterator[PlanWarning]:
    for workload in situation.workloads:
        if not _keeps_all_available(workload):
            continue
        for path, term, domains in list_separations(situation, workload):
            if domains == workload.replicas and TEMPLATE_HASH not in term.match_label_keys:
                yield PlanWarning(
                    code=CODE,
                    subject=workload.subject,
                    path=path,
                    text=f"{domains} replicas fill all {domains} domains of {term.topology_key}, and maxUnavailable "
                    "comes to 0: a rollout finds no place for its first new pod and never ends.",
                    fix=f"Add matchLabelKeys: [{TEMPLATE_HASH}] to the term, or set maxUnavailable: 1.",
                )


def _keeps_all_available(workload: TouchedWorkload) -> bool:
    """Whether a rollout of it takes no pod away before a new one is there."""
    if workload.kind != "Deployment" or not workload.replicas:
        return False
    strategy = workload.workload.spec.strategy
    if strategy is not None and strategy.type == "Recreate":
        return False
    rolling = strategy.rolling_update if strategy is not None else None
    surge = rolling.max_surge if rolling is not None and rolling.max_surge is not None else _DEFAULT_SHARE
    unavailable = (
        rolling.max_unavailable if rolling is not None and rolling.max_unavailable is not None else _DEFAULT_SHARE
    )
    try:
        return resolve_limits(workload.replicas, surge, unavailable).unavailable == 0
    except ValueError:  # no number and no percentage: the API server refuses it
        return False
