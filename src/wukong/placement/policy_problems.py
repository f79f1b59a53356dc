"""What is wrong with the parts of a policy that change pods, each with its path, what was expected, and the fix. Pure.

Called by compile.py. The CustomResourceDefinition refuses most of it already; an older one may have let it through, and
files that people hand to `wukong explain` have met none.
"""

from __future__ import annotations

from collections.abc import Iterator

from wukong.admission.affinity_validation import find_topology_key_problems, find_weight_problems
from wukong.admission.pod_validation import find_spread_problems, find_toleration_problems
from wukong.admission.problem_text import describe_problem, format_choices
from wukong.api.placement import APPLIES, MODES, ON_DEADLINE, PlacementPolicySpec, PolicyScheduling
from wukong.api.policy_parts import (
    FALLBACKS,
    HIGHEST_PRIORITY,
    PREEMPTION_POLICIES,
    STRATEGIES,
    Capacity,
    Disruption,
    Priority,
    VersionAntiAffinity,
)
from wukong.errors import nearest
from wukong.placement.affinity_problems import find_node_affinity_problems, find_pod_affinity_problems
from wukong.placement.capacity import SPOT_LABELS
from wukong.placement.limits import MOST_NODE_TERMS
from wukong.placement.percent import parse_share
from wukong.semantics.label_syntax import is_subdomain

_SHARE = 'a number of pods, such as 2, or a share from "0%" to "100%"'


def find_pod_rule_problems(spec: PlacementPolicySpec) -> Iterator[str]:
    """Everything but the selectors and what a scheduling block says of resources and rules."""
    if spec.capacity is not None:
        yield from _find_capacity_problems(spec.capacity, "$.spec.capacity")
    yield from find_choice_problems(spec.mode, MODES, "$.spec.mode")
    yield from find_choice_problems(spec.apply, APPLIES, "$.spec.apply")
    yield from find_choice_problems(spec.on_deadline, ON_DEADLINE, "$.spec.onDeadline")
    if spec.scheduling is not None:
        yield from _find_scheduling_problems(spec.scheduling, "$.spec.scheduling")
    if spec.version_anti_affinity is not None:
        yield from _find_version_problems(spec.version_anti_affinity, "$.spec.versionAntiAffinity")
    if spec.priority is not None:
        yield from _find_priority_problems(spec.priority, "$.spec.priority")
    if spec.disruption is not None:
        yield from _find_disruption_problems(spec.disruption, "$.spec.disruption")
    yield from _find_contradictions(spec)


def find_choice_problems(value: str, known: tuple[str, ...], path: str) -> Iterator[str]:
    """Of a text that must be one of these words."""
    if value not in known:
        yield describe_problem(path, format_choices(known), value, nearest(value, known).strip() or "Choose one.")


def _find_capacity_problems(capacity: Capacity, path: str) -> Iterator[str]:
    yield from find_choice_problems(capacity.strategy, STRATEGIES, f"{path}.strategy")
    if capacity.on_demand_base is not None:
        yield from _find_share_problems(capacity.on_demand_base, f"{path}.onDemandBase")
    if capacity.spot_percent is not None and not 0 <= capacity.spot_percent <= 100:
        yield describe_problem(
            f"{path}.spotPercent", "a percentage from 0 to 100", capacity.spot_percent, "Write a number such as 70."
        )
    if capacity.fallback:
        yield from find_choice_problems(capacity.fallback, FALLBACKS, f"{path}.fallback")
    is_split = capacity.on_demand_base is not None or capacity.spot_percent is not None
    if is_split and capacity.strategy.endswith("-only"):
        yield describe_problem(
            f"{path}.strategy",
            "a strategy that leaves a choice with onDemandBase or spotPercent",
            capacity.strategy,
            "Use spot-first, or remove the numbers.",
        )
    if capacity.fallback and not is_split:
        yield describe_problem(
            f"{path}.fallback",
            "onDemandBase or spotPercent beside fallback",
            capacity.fallback,
            "Add one of them, or remove it: the strategy says what happens, and spot-only waits.",
        )


def _find_scheduling_problems(scheduling: PolicyScheduling, path: str) -> Iterator[str]:
    yield from find_pod_affinity_problems(scheduling.pod_affinity, f"{path}.podAffinity")
    yield from find_pod_affinity_problems(scheduling.pod_anti_affinity, f"{path}.podAntiAffinity")
    yield from find_node_affinity_problems(scheduling.node_affinity, f"{path}.nodeAffinity")
    yield from find_toleration_problems(scheduling.tolerations, f"{path}.tolerations")
    yield from find_spread_problems(scheduling.topology_spread_constraints, f"{path}.topologySpreadConstraints")


def _find_version_problems(versions: VersionAntiAffinity, path: str) -> Iterator[str]:
    if versions.required == (versions.preferred is not None):
        got = "both" if versions.required else None
        yield describe_problem(path, "either required: true or preferred with a weight", got, "Keep one of them.")
    if versions.preferred is not None:
        yield from find_weight_problems(versions.preferred.weight, f"{path}.preferred")
    yield from find_topology_key_problems(versions.topology_key, f"{path}.topologyKey")


def _find_priority_problems(priority: Priority, path: str) -> Iterator[str]:
    if (priority.value is not None) == bool(priority.class_name):
        got = "both" if priority.class_name else None
        yield describe_problem(path, "either value or className", got, "Keep one of them.")
    if priority.value is not None and priority.value > HIGHEST_PRIORITY:
        yield describe_problem(
            f"{path}.value",
            f"at most {HIGHEST_PRIORITY:,}, the highest that is not the system's",
            priority.value,
            "Lower it.",
        )
    if priority.class_name and not is_subdomain(priority.class_name):
        yield describe_problem(
            f"{path}.className", "the name of a PriorityClass", priority.class_name, "Mend the name."
        )
    if priority.preemption_policy:
        yield from find_choice_problems(priority.preemption_policy, PREEMPTION_POLICIES, f"{path}.preemptionPolicy")
        if priority.value is None:
            yield describe_problem(
                f"{path}.preemptionPolicy",
                "no preemptionPolicy with className, for the class has its own",
                priority.preemption_policy,
                "Remove it, or give a value.",
            )


def _find_disruption_problems(disruption: Disruption, path: str) -> Iterator[str]:
    bounds = {"minAvailable": disruption.min_available, "maxUnavailable": disruption.max_unavailable}
    given = {name: value for name, value in bounds.items() if value is not None}
    if len(given) != 1:
        yield describe_problem(
            path, "either minAvailable or maxUnavailable", "both" if given else None, "Keep one of them."
        )
    for name, value in given.items():
        yield from _find_share_problems(value, f"{path}.{name}")


def _find_share_problems(value: int | str, path: str) -> Iterator[str]:
    if parse_share(value) is None:
        yield describe_problem(path, _SHARE, value, 'Write 2, or "30%".')


def _find_contradictions(spec: PlacementPolicySpec) -> Iterator[str]:
    """What shows only when the parts are put together."""
    capacity, selector = spec.capacity, spec.selector
    if spec.critical and capacity is not None:
        is_split = capacity.on_demand_base is not None or capacity.spot_percent is not None
        if is_split or capacity.strategy not in ("on-demand-first", "on-demand-only"):
            yield describe_problem(
                "$.spec.critical",
                "no capacity, or on-demand-first or on-demand-only without onDemandBase and spotPercent, beside it",
                capacity.strategy,
                "Leave capacity out: critical pods are kept on demand.",
            )
    if selector is None or not (selector.match_labels or selector.match_expressions):
        reasons = {
            "versionAntiAffinity": (spec.version_anti_affinity, "it is about the versions of one application"),
            "disruption": (spec.disruption, "a budget is about pods by their labels"),
        }
        for name, (part, why) in reasons.items():
            if part is not None:
                yield describe_problem(
                    f"$.spec.{name}", f"a selector with labels beside {name}", None, f"Add one: {why}."
                )
    yield from _find_term_problems(spec)


def _find_term_problems(spec: PlacementPolicySpec) -> Iterator[str]:
    """Alternatives of nodes multiply with those of spot labels: beyond the bound they would never reach a pod."""
    affinity = spec.scheduling.node_affinity if spec.scheduling is not None else None
    if affinity is None or not requires_spot(spec.capacity):
        return
    most = MOST_NODE_TERMS // len(SPOT_LABELS)
    if len(affinity.required) > most:
        yield (
            f"$.spec.scheduling.nodeAffinity.required: expected at most {most} alternatives where spot nodes are "
            f"required, got {len(affinity.required)}: each is written once for every label that says spot, and a pod "
            f"may get {MOST_NODE_TERMS} terms. Remove some, or use spot-first."
        )


def requires_spot(capacity: Capacity | None) -> bool:
    """Whether pods of this capacity may be told to go to spot nodes and nowhere else."""
    return capacity is not None and (capacity.strategy == "spot-only" or capacity.fallback == "Wait")
