"""The scheduling block of a Wukong, beside the policy that selects its pods: one Plan for both.

The Wukong is the more specific of the two. What it says counts instead of what the policy says about the same thing: a
preference or a floor of the same resource, a rule of the same type and name, the priority, the preemptionPolicy. What
it says nothing about is the policy's, and so is the strategy. A policy that only observes takes nothing from a Wukong,
whose block is enforced: then the two are judged apart (`Match.observed`).

Who obeys a Wukong's resourceAffinity is one choice for the whole cluster (placement.vm.VmSettings). Where node affinity
does, by labels, its preferences and floors are left out here, and those of a policy about the same resources with them:
nothing counts twice. Called by replies.extender. A block with a problem is left out, and never stands in a pod's way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from wukong.admission.problem_text import describe_problem
from wukong.api.core import Pod
from wukong.api.placement import ResourceRequirement, Scheduling
from wukong.api.quantity import parse_quantity
from wukong.api.resources import Key, key_of
from wukong.api.vm import NAME_LABEL, Wukong
from wukong.errors import InputError
from wukong.placement.compile import (
    GPU,
    GPU_NAMES,
    Floor,
    Plan,
    SchedulingPlan,
    Use,
    compile_scheduling,
    find_scheduling_problems,
)
from wukong.placement.matching import NO_POLICY, Match
from wukong.placement.rule import Rules
from wukong.placement.vm.node_affinity import gpu_types_of
from wukong.semantics.label_syntax import is_label_key

MOST_DEVICES = 64  # of a Wukong: each is a floor of its own where `gpu` is asked for


class WukongPlan(msgspec.Struct, frozen=True, eq=False):
    """What a Wukong's block says."""

    name: str  # "Wukong shop/db"
    block: SchedulingPlan
    decides_preemption: bool  # it says a preemptionPolicy
    judges_resources: bool  # else node affinity does, by labels

    @property
    def judges_nodes(self) -> bool:
        """Whether it refuses nodes or gives them points, beyond what node affinity does."""
        block = self.block
        has_rules = bool(block.filters or block.scores or block.ranks)
        return has_rules or (self.judges_resources and bool(block.preferences or block.floors))

    def combine(self, policy: Plan) -> Plan:
        """The plan of both: the policy itself where the Wukong has nothing to add to it and nothing to take from it."""
        block = self.block
        preferred = {preference.resource for preference in block.preferences}
        preferences = tuple(entry for entry in policy.preferences if entry.resource not in preferred)
        floored = {_resources_of(floor) for floor in block.floors}
        floors = tuple(floor for floor in policy.floors if _resources_of(floor) not in floored)
        if self.judges_resources:
            preferences, floors = (*preferences, *block.preferences), (*floors, *block.floors)
        plan = msgspec.structs.replace(
            policy,
            name=self.name if policy.name == NO_POLICY else f"{self.name} over {policy.name}",
            preferences=preferences,
            floors=floors,
            filters=_unite_uses(policy.filters, block.filters),
            scores=_unite_uses(policy.scores, block.scores),
            ranks=_unite_uses(policy.ranks, block.ranks),
            priority=policy.priority if block.priority is None else block.priority,
            never_preempts=block.never_preempts if self.decides_preemption else policy.never_preempts,
            # A Wukong's virtual machines name their scheduler themselves: nobody need be told that they must.
            scheduler_name="" if block.scheduler_name else policy.scheduler_name,
        )
        return policy if _say_the_same(plan, policy) else plan


def compile_wukong(
    wukong: Wukong, rules: Rules, gpu_names: Sequence[str] = GPU_NAMES, *, judges_resources: bool = True
) -> WukongPlan | None:
    """None where its scheduling says nothing of resources and policy. Raises InputError with every problem of it."""
    scheduling = wukong.spec.scheduling
    if scheduling is None or (scheduling.resource_affinity is None and scheduling.scheduling_policy is None):
        return None
    problems = [*find_scheduling_problems(scheduling, rules, "$.spec.scheduling"), *_find_device_problems(wukong)]
    if problems:
        raise InputError(*problems)
    policy = scheduling.scheduling_policy
    return WukongPlan(
        name=f"Wukong {wukong.key}",
        block=compile_scheduling(_with_devices(wukong, scheduling), rules, gpu_names),
        decides_preemption=policy is not None and bool(policy.preemption_policy),
        judges_resources=judges_resources,
    )


def _with_devices(wukong: Wukong, scheduling: Scheduling) -> Scheduling:
    """The block, in which `gpu` means the devices that the Wukong names, if any, and a floor of nothing is none.

    Of a resource asked twice the larger counts: as placement.vm builds labels of it.
    """
    affinity = scheduling.resource_affinity
    if affinity is None:
        return scheduling
    floors: dict[str, ResourceRequirement] = {}
    for entry in affinity.required_resources:
        for resource_type in gpu_types_of(wukong) if entry.resource_type == GPU else (entry.resource_type,):
            before = floors.get(resource_type)
            least = parse_quantity(before.min_available) if before is not None else 0
            if parse_quantity(entry.min_available) > least:
                floors[resource_type] = ResourceRequirement(resource_type, entry.min_available)
    affinity = msgspec.structs.replace(affinity, required_resources=list(floors.values()))
    return Scheduling(resource_affinity=affinity, scheduling_policy=scheduling.scheduling_policy)


def _find_device_problems(wukong: Wukong) -> Iterator[str]:
    """Of the devices that `gpu` stands for."""
    count = len(wukong.spec.gpus)
    if count > MOST_DEVICES:
        yield f"$.spec.gpus: expected at most {MOST_DEVICES} devices, got {count:,}. Remove some."
        return
    for index, gpu in enumerate(wukong.spec.gpus):
        if not is_label_key(gpu.device_name):
            path, wanted = f"$.spec.gpus[{index}].deviceName", "a resource such as nvidia.com/A100"
            yield describe_problem(path, wanted, gpu.device_name, "Write its full name.")


class _CombinedPlans(NamedTuple):
    """The plans of a Wukong with one policy."""

    policy: Plan
    plan: Plan
    observed: Plan | None


class WukongPlans:
    """The Wukongs of a mirror, compiled, and combined with the policies of their pods as these are asked about."""

    def __init__(
        self,
        rules: Rules,
        gpu_names: Sequence[str] = GPU_NAMES,
        *,
        judges_resources: bool = False,
        forget: Callable[[Plan], None] = lambda plan: None,
    ) -> None:
        """`forget` is called with every plan that holds no longer."""
        self._rules, self._gpu_names, self._judges_resources = rules, gpu_names, judges_resources
        self._forget = forget
        self._plans: dict[Key, WukongPlan] = {}
        self._combined: dict[Key, _CombinedPlans] = {}  # with the policy that was asked about last

    def put(self, wukong: Wukong) -> None:
        """A Wukong came, or says something else. One with problems is left out: its condition Accepted has them."""
        key = key_of(wukong)
        self.remove(key)
        with suppress(InputError):
            plan = compile_wukong(wukong, self._rules, self._gpu_names, judges_resources=self._judges_resources)
            if plan is not None:
                self._plans[key] = plan

    def remove(self, key: Key) -> None:
        """A Wukong is gone."""
        self._plans.pop(key, None)
        self._drop_combined(key)

    def combine(self, match: Match, pod: Pod) -> Match:
        """The same match, with what the Wukong of this pod says, if it is of one."""
        name = pod.metadata.labels.get(NAME_LABEL)
        if not name or not self._plans:
            return match
        key = Key(pod.metadata.namespace, name)
        wukong = self._plans.get(key)
        if wukong is None:
            return match
        combined = self._combined.get(key)
        if combined is None or combined.policy is not match.plan:
            self._drop_combined(key)
            combined = self._combined[key] = _combine(wukong, match.plan)
        return match._replace(plan=combined.plan, observed=combined.observed)

    def _drop_combined(self, key: Key) -> None:
        combined = self._combined.pop(key, None)
        for plan in combined[1:] if combined is not None else ():
            if plan is not None and combined is not None and plan is not combined.policy:
                self._forget(plan)


def _combine(wukong: WukongPlan, policy: Plan) -> _CombinedPlans:
    plan = wukong.combine(policy)
    if policy.is_enforced or plan is policy:
        return _CombinedPlans(policy, plan, None)
    return _CombinedPlans(policy, wukong.combine(Plan(name=NO_POLICY)), plan)


def _resources_of(floor: Floor) -> frozenset[str]:
    return frozenset(floor.amounts)


def _unite_uses(of_policy: tuple[Use, ...], of_wukong: tuple[Use, ...]) -> tuple[Use, ...]:
    """The policy's rules, but for those that the Wukong names as well, then the Wukong's."""
    names = {use.rule.name for use in of_wukong}
    return (*(use for use in of_policy if use.rule.name not in names), *of_wukong)


def _say_the_same(plan: Plan, policy: Plan) -> bool:
    """Whether two plans differ in their names alone. Their parts are compared by identity: rules have no other."""
    return all(
        first is second or first == second
        for field in plan.__struct_fields__
        if field != "name"
        for first, second in ((getattr(plan, field), getattr(policy, field)),)
    )
