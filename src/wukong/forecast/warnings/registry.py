"""Every warning, one file each, and the front door: what is to be said of a change whatever its verdict is."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from wukong.app.snapshots import Baseline
from wukong.forecast.fields import PlanWarning
from wukong.forecast.planned_change import PlannedChange
from wukong.forecast.warnings import (
    budget_never_allows,
    managed_by_another_tool,
    next_rollout_never_ends,
    patch_drops_rules,
    preference_never_applies,
    preferred_without_room,
    replicas_above_domains,
    replicas_of_autoscaler,
    rules_bar_each_other,
    selector_matches_nothing,
    two_budgets,
)
from wukong.forecast.warnings.situate import situate
from wukong.forecast.warnings.situation import Situation

# Code → what finds it, in the order in which they are told: what can never work first.
WARNINGS: dict[str, Callable[[Situation], Iterator[PlanWarning]]] = {
    rules_bar_each_other.CODE: rules_bar_each_other.find,
    replicas_above_domains.CODE: replicas_above_domains.find,
    selector_matches_nothing.CODE: selector_matches_nothing.find,
    two_budgets.CODE: two_budgets.find,
    budget_never_allows.CODE: budget_never_allows.find,
    next_rollout_never_ends.CODE: next_rollout_never_ends.find,
    patch_drops_rules.CODE: patch_drops_rules.find,
    preferred_without_room.CODE: preferred_without_room.find,
    preference_never_applies.CODE: preference_never_applies.find,
    replicas_of_autoscaler.CODE: replicas_of_autoscaler.find,
    managed_by_another_tool.CODE: managed_by_another_tool.find,
}


def find_warnings(baseline: Baseline, change: PlannedChange) -> list[PlanWarning]:
    """What is to be said of a change to this cluster. It is applied to a fork, and nothing is played."""
    return judge(situate(baseline, change))


def judge(situation: Situation) -> list[PlanWarning]:
    """All warnings, in the order of the registry; each is told once."""
    warnings = (warning for find in WARNINGS.values() for warning in find(situation))
    return list(dict.fromkeys(warnings))
