"""A policy becomes a Plan, or the list of what is wrong with it: each with its path, what was expected, and the fix.

Called by the `policy` controller (problems), by matching.py (plans) and by `wukong explain`. A policy with a problem
gives no plan: it is reported and left out, and never stands in a pod's way. The scheduling block, which a Wukong has as
well, is compiled here for both (SchedulingPlan): wukong_plan.py puts a Wukong's beside that of a policy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from wukong.admission.affinity_validation import find_selector_problems
from wukong.admission.problem_text import describe_problem
from wukong.api.decode import readable
from wukong.api.meta import LabelSelector
from wukong.api.placement import (
    DEFAULT,
    RULE_TYPES,
    ClusterPlacementPolicy,
    ClusterPlacementPolicySpec,
    PlacementPolicy,
    PlacementPolicySpec,
    ResourceAffinity,
    ResourcePreference,
    ResourceRequirement,
    Scheduling,
    SchedulingPolicy,
    SchedulingRule,
)
from wukong.api.policy_parts import PREEMPTION_POLICIES, Capacity
from wukong.api.quantity import parse_quantity, scheduler_amount
from wukong.errors import InputError, nearest
from wukong.placement.limits import find_scheduling_size_problems, find_selector_size_problems, find_size_problems
from wukong.placement.percent import Share, parse_percent, parse_share
from wukong.placement.policy_problems import find_choice_problems, find_pod_rule_problems
from wukong.placement.rule import AnyRule, Rules
from wukong.semantics.label_syntax import is_label_key

Policy = PlacementPolicy | ClusterPlacementPolicy
RESOURCES = {"cpu": "cpu", "memory": "memory", "storage": "ephemeral-storage"}  # what policies say → the API's name
GPU = "gpu"
GPU_NAMES = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe")
_PREFERRED = {"cpu": "preferredCPU", "memory": "preferredMemory", "storage": "preferredStorage"}
_WEIGHT = "a weight from 1 to 100"
_UNKNOWN = "object contains unknown field "


class Preference(msgspec.Struct, frozen=True):
    resource: str  # cpu, memory or storage
    weight: int
    threshold: float  # percent


class Floor(msgspec.Struct, frozen=True):
    """At least one of these resources must have this much free."""

    text: str  # as the policy wrote it: "gpu 1"
    amounts: dict[str, int]  # resource → scheduler amount


class Use(msgspec.Struct, frozen=True):
    """A rule with its config, as a policy uses it."""

    rule: AnyRule
    config: Any
    weight: int = 1


class SchedulingPlan(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """What a scheduling block wants of nodes."""

    preferences: tuple[Preference, ...] = ()
    floors: tuple[Floor, ...] = ()
    filters: tuple[Use, ...] = ()
    scores: tuple[Use, ...] = ()
    ranks: tuple[Use, ...] = ()  # rules of type prioritize
    priority: int | None = None
    never_preempts: bool = False
    scheduler_name: str = ""


class Split(msgspec.Struct, frozen=True):
    """How many pods of each owner are on demand, and how many on spot nodes."""

    on_demand_base: Share = Share()  # at least
    spot_percent: int = 100  # at most


class Plan(SchedulingPlan, frozen=True, eq=False, kw_only=True):
    """What one policy wants of nodes, and of pods. Compared by identity: a policy that changed is another plan."""

    name: str  # "PlacementPolicy shop/web"
    strategy: str = ""  # "": any capacity will do
    is_enforced: bool = True
    is_critical: bool = False  # the policy says so; a pod may be by its priority as well
    split: Split | None = None
    waits_for_spot: bool = False  # a pod that the split means for spot goes nowhere else
    is_applied: bool = False  # pods are changed at admission
    generation: int = 0  # of the policy
    spec: PlacementPolicySpec | None = None  # as it was written: placement.pods reads what is to be added to pods


def compile_policy(policy: Policy, rules: Rules, gpu_names: Sequence[str] = GPU_NAMES) -> Plan:
    """Raises InputError with every problem."""
    problems = find_policy_problems(policy, rules)
    if problems:
        raise InputError(*problems)
    spec = policy.spec
    block = compile_scheduling(spec.scheduling or Scheduling(), rules, gpu_names)
    if spec.priority is not None:  # it counts instead of what schedulingPolicy says
        never_preempts = spec.priority.preemption_policy == "Never"
        block = msgspec.structs.replace(block, priority=spec.priority.value, never_preempts=never_preempts)
    return Plan(
        name=title_of(policy),
        strategy=_strategy_of(spec),
        is_enforced=spec.mode != "Observe",
        is_critical=spec.critical,
        split=_compile_split(spec.capacity),
        waits_for_spot=spec.capacity is not None and spec.capacity.fallback == "Wait",
        is_applied=spec.apply != "None",
        generation=policy.metadata.generation,
        spec=spec,
        **msgspec.structs.asdict(block),
    )


def compile_scheduling(scheduling: Scheduling, rules: Rules, gpu_names: Sequence[str] = GPU_NAMES) -> SchedulingPlan:
    """Of a block without problems."""
    affinity = scheduling.resource_affinity or ResourceAffinity()
    policies = scheduling.scheduling_policy or SchedulingPolicy()
    uses = [(entry.type, _compile_use(entry, rules)) for entry in policies.rules]
    return SchedulingPlan(
        preferences=tuple(
            Preference(resource, preference.weight, parse_percent(preference.threshold) or 0.0)
            for resource, preference in _preferences_of(affinity).items()
        ),
        floors=tuple(_compile_floor(entry, gpu_names) for entry in affinity.required_resources),
        filters=tuple(use for type_, use in uses if type_ == "filter"),
        scores=tuple(use for type_, use in uses if type_ == "score"),
        ranks=tuple(use for type_, use in uses if type_ == "prioritize"),
        priority=policies.priority,
        never_preempts=policies.preemption_policy == "Never",
        scheduler_name=policies.scheduler_name,
    )


def title_of(policy: Policy) -> str:
    return f"{type(policy).__name__} {policy.key}"


def find_policy_problems(policy: Policy, rules: Rules) -> list[str]:
    """What is wrong with a policy, each with its path: everything, unless it is too large to be looked at."""
    return list(find_size_problems(policy.spec)) or list(_find_problems(policy, rules))


def find_scheduling_problems(scheduling: Scheduling | None, rules: Rules, path: str) -> Iterator[str]:
    """What is wrong with a scheduling block, as far as policies and Wukongs both have it."""
    if scheduling is not None:
        too_large = list(find_scheduling_size_problems(scheduling, path))
        yield from too_large or _find_scheduling_problems(scheduling, rules, path)


def _find_problems(policy: Policy, rules: Rules) -> Iterator[str]:
    spec = policy.spec
    yield from _find_selector_problems(spec.selector, "$.spec.selector")
    if isinstance(spec, ClusterPlacementPolicySpec):
        yield from _find_selector_problems(spec.namespace_selector, "$.spec.namespaceSelector")
        if policy.metadata.name == DEFAULT:
            yield from _find_default_problems(spec)
    yield from find_pod_rule_problems(spec)
    yield from _find_scheduling_problems(spec.scheduling or Scheduling(), rules, "$.spec.scheduling")


def _find_scheduling_problems(scheduling: Scheduling, rules: Rules, path: str) -> Iterator[str]:
    yield from _find_affinity_problems(scheduling.resource_affinity, f"{path}.resourceAffinity")
    yield from _find_policy_problems(scheduling.scheduling_policy, rules, f"{path}.schedulingPolicy")


def _find_selector_problems(selector: LabelSelector | None, path: str) -> Iterator[str]:
    too_large = list(find_selector_size_problems(selector, path))
    yield from too_large or find_selector_problems(selector, path)


def _find_default_problems(spec: ClusterPlacementPolicySpec) -> Iterator[str]:
    for field, selector in (("selector", spec.selector), ("namespaceSelector", spec.namespace_selector)):
        if selector is not None and (selector.match_labels or selector.match_expressions):
            yield (
                f"$.spec.{field}: expected none in the policy named {DEFAULT}, which holds where no other matches. "
                "Remove it, or name the policy otherwise."
            )


def _find_affinity_problems(affinity: ResourceAffinity | None, path: str) -> Iterator[str]:
    if affinity is None:
        return
    for resource, preference in _preferences_of(affinity).items():
        yield from _find_preference_problems(preference, f"{path}.{_PREFERRED[resource]}")
    for index, entry in enumerate(affinity.required_resources):
        yield from _find_requirement_problems(entry, f"{path}.requiredResources[{index}]")


def _find_preference_problems(preference: ResourcePreference, path: str) -> Iterator[str]:
    yield from _find_weight_problems(preference.weight, path)
    if parse_percent(preference.threshold) is None:
        yield describe_problem(
            f"{path}.threshold", "a percentage from 0% to 100%", preference.threshold, 'Write it as "70%".'
        )


def _find_requirement_problems(entry: ResourceRequirement, path: str) -> Iterator[str]:
    known = (*RESOURCES, GPU)
    if entry.resource_type not in known and not ("/" in entry.resource_type and is_label_key(entry.resource_type)):
        wanted = "cpu, memory, storage, gpu or an extended resource such as example.com/fpga"
        hint = nearest(entry.resource_type, known).strip() or "Write its full name."
        yield describe_problem(f"{path}.resourceType", wanted, entry.resource_type, hint)
    try:
        if parse_quantity(entry.min_available) < 0:
            yield describe_problem(
                f"{path}.minAvailable", "a quantity that is not negative", entry.min_available, "Mend it."
            )
    except InputError as error:
        yield from error.at(f"{path}.minAvailable").problems


def _find_policy_problems(policy: SchedulingPolicy | None, rules: Rules, path: str) -> Iterator[str]:
    if policy is None:
        return
    if policy.preemption_policy:
        yield from find_choice_problems(policy.preemption_policy, PREEMPTION_POLICIES, f"{path}.preemptionPolicy")
    for index, entry in enumerate(policy.rules):
        yield from _find_rule_problems(entry, rules, f"{path}.rules[{index}]")


def _find_rule_problems(entry: SchedulingRule, rules: Rules, path: str) -> Iterator[str]:
    yield from find_choice_problems(entry.type, RULE_TYPES, f"{path}.type")
    if entry.weight is not None:
        yield from _find_weight_problems(entry.weight, path)
        if entry.type != "score":
            yield describe_problem(f"{path}.weight", "no weight but for type score", entry.weight, "Remove it.")
    rule = rules.get(entry.name)
    if rule is None:
        likely = nearest(entry.name, rules).strip()
        install = "Install the package that has it"
        fix = f"{likely} {install} otherwise." if likely else f"{install}, or remove the rule."
        yield describe_problem(f"{path}.name", f"a rule that is there ({', '.join(sorted(rules))})", entry.name, fix)
        return
    if entry.type in RULE_TYPES and not rule.can_be(entry.type):
        able = tuple(type_ for type_ in RULE_TYPES if rule.can_be(type_))
        yield describe_problem(f"{path}.type", f"{' or '.join(able)} for {entry.name}", entry.type, "Use it so.")
        return
    yield from _find_config_problems(entry, rule, f"{path}.config")


def _find_config_problems(entry: SchedulingRule, rule: AnyRule, path: str) -> Iterator[str]:
    try:
        config = msgspec.convert(entry.config, rule.config)
    except msgspec.ValidationError as error:
        place, _, problem = readable(error).removeprefix("$").partition(": ")
        if problem.startswith(_UNKNOWN):
            field = problem.removeprefix(_UNKNOWN).rstrip(".")
            known = [entry.encode_name for entry in msgspec.structs.fields(rule.config)]
            hint = nearest(field, known) or f" {entry.name} knows {', '.join(known) or 'none'}."
            yield f"{path}{place}.{field}: unknown field.{hint}"
        else:
            yield f"{path}{place}: {problem}"
        return
    except Exception as error:  # a struct of somebody else's may do as it likes when it is made
        yield f"{path}: the rule {entry.name} failed to read it: {type(error).__name__}: {error}"
        return
    try:
        yield from (f"{path}.{problem}" for problem in rule.problems(config, entry.type))
    except Exception as error:  # a rule of somebody else's: whatever it does, only its policy suffers
        yield f"{path}: the rule {entry.name} failed to check it: {type(error).__name__}: {error}"


def _find_weight_problems(weight: int, path: str) -> Iterator[str]:
    if not 1 <= weight <= 100:
        yield describe_problem(f"{path}.weight", _WEIGHT, weight, "Give it a weight such as 50.")


def _preferences_of(affinity: ResourceAffinity) -> dict[str, ResourcePreference]:
    preferences = {
        "cpu": affinity.preferred_cpu,
        "memory": affinity.preferred_memory,
        "storage": affinity.preferred_storage,
    }
    return {resource: preference for resource, preference in preferences.items() if preference is not None}


def _strategy_of(spec: PlacementPolicySpec) -> str:
    if spec.capacity is not None:
        return spec.capacity.strategy
    return "on-demand-first" if spec.critical else ""


def _compile_split(capacity: Capacity | None) -> Split | None:
    if capacity is None or (capacity.on_demand_base is None and capacity.spot_percent is None):
        return None
    base = parse_share(capacity.on_demand_base or 0)
    assert base is not None, "a policy with problems is not compiled"
    return Split(base, 100 if capacity.spot_percent is None else capacity.spot_percent)


def _compile_floor(entry: ResourceRequirement, gpu_names: Sequence[str]) -> Floor:
    names = gpu_names if entry.resource_type == GPU else [RESOURCES.get(entry.resource_type, entry.resource_type)]
    least = parse_quantity(entry.min_available)
    text = f"{entry.resource_type} {entry.min_available}"
    return Floor(text, {name: scheduler_amount(name, least) for name in names})


def _compile_use(entry: SchedulingRule, rules: Rules) -> Use:
    rule = rules[entry.name]
    return Use(rule, msgspec.convert(entry.config, rule.config), entry.weight or 1)
