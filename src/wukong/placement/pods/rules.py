"""What a policy adds to pods, as documents that are ready to be put in: worked out once per plan. Pure.

Capacity by node affinity, every known label at once (placement.capacity):

    on demand    none of the labels says spot          one term with a NotIn for each
    spot         one of the labels says spot           a term for each, alternatives
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from wukong.api.placement import PlacementPolicySpec, PolicyScheduling, ResourceAffinity
from wukong.api.usage import USAGE_GROUP
from wukong.placement.capacity import SPOT_LABELS, SPOT_TAINTS
from wukong.placement.compile import Plan
from wukong.placement.free_labels import FREE_PREFIX
from wukong.placement.node_terms import build_floor_terms, build_usage_preferences, collect_floors
from wukong.placement.pods.priority import policy_class_name_of
from wukong.placement.pods.split import ON_DEMAND, SPOT
from wukong.placement.vm.affinity import PREFERRED, REQUIRED, build_rules
from wukong.placement.vm.build import build_constraint
from wukong.ports import Document

ON_DEMAND_TERM: Document = {
    "matchExpressions": [
        {"key": label, "operator": "NotIn", "values": list(values)} for label, values in SPOT_LABELS.items()
    ]
}
SPOT_TERMS: tuple[Document, ...] = tuple(
    {"matchExpressions": [{"key": label, "operator": "In", "values": list(values)}]}
    for label, values in SPOT_LABELS.items()
)
SPOT_TOLERATIONS: tuple[Document, ...] = tuple(
    {"key": key, "operator": "Equal", "value": value, "effect": effect} for key, value, effect in SPOT_TAINTS
)
FIRST_WEIGHT, PREFERRED_WEIGHT = 100, 50
_MOST_KEPT = 4096  # plans of which the rules are kept


class Choice(NamedTuple):
    """A required rule about nodes: one of the alternatives must hold."""

    name: str  # the field of the policy that it comes of
    alternatives: tuple[Document, ...]


class CapacityRules(NamedTuple):
    """What makes a pod go to spot or on-demand nodes."""

    required: tuple[Document, ...] = ()  # alternatives
    preferred: tuple[Document, ...] = ()
    tolerations: tuple[Document, ...] = ()


class AddedRules(NamedTuple):
    """What decides which rules a pod gets, besides what it has already."""

    plan: Plan
    version_key: str = ""  # the label that tells its version; "" for none
    capacity: str = ""  # that a split decided for it
    strategy: str = ""
    has_nodes: bool = True  # whether there is a choice of nodes


class PodRules(NamedTuple):
    """What a policy adds to pods, each entry once. The documents are shared: nobody may change them."""

    required: tuple[Choice, ...] = ()  # of nodes
    preferred: tuple[Document, ...] = ()  # of nodes
    pod_affinity: Document = {}  # required… and preferred…, as far as there are any
    pod_anti_affinity: Document = {}
    tolerations: tuple[Document, ...] = ()
    constraints: tuple[Document, ...] = ()
    priority_class: str = ""


@lru_cache(maxsize=_MOST_KEPT)
def compile_pod_rules(plan: Plan) -> PodRules:
    """Of a plan, which is compared by identity. Versions and capacity depend on the pod, and are not among them."""
    spec = plan.spec or PlacementPolicySpec()
    scheduling = spec.scheduling or PolicyScheduling()
    nodes = scheduling.node_affinity
    resources = scheduling.resource_affinity or ResourceAffinity()
    required = [
        Choice(f"requiredResources of {resource_type}", tuple(build_floor_terms(resource_type, amount, FREE_PREFIX)))
        for resource_type, amount in collect_floors(resources).items()
    ]
    if nodes is not None and nodes.required:
        required.insert(0, Choice("nodeAffinity", tuple(msgspec.to_builtins(nodes.required))))
    wishes: list[Document] = msgspec.to_builtins(nodes.preferred) if nodes is not None else []
    return PodRules(
        required=tuple(required),
        preferred=(*wishes, *build_usage_preferences(resources, USAGE_GROUP)),
        pod_affinity=build_rules(scheduling.pod_affinity),
        pod_anti_affinity=build_rules(scheduling.pod_anti_affinity),
        tolerations=tuple(msgspec.to_builtins(scheduling.tolerations)),
        constraints=tuple(build_constraint(constraint) for constraint in scheduling.topology_spread_constraints),
        priority_class=policy_class_name_of(spec),
    )


@lru_cache(maxsize=_MOST_KEPT)
def build_added_rules(added: AddedRules) -> PodRules:
    """All that is added to such pods: what the plan says of any, and what depends on capacity and version."""
    plan, rules = added.plan, compile_pod_rules(added.plan)
    if added.version_key:
        assert plan.spec is not None, "it asks for versions apart"
        apart = dict(rules.pod_anti_affinity)
        for field, terms in build_version_rules(plan.spec, added.version_key).items():
            apart[field] = [*apart.get(field, ()), *terms]
        rules = rules._replace(pod_anti_affinity=apart)
    if not added.has_nodes:
        return _drop_repeated(rules._replace(required=(), preferred=()))
    capacity = build_capacity_rules(plan, added.capacity, added.strategy)
    return _drop_repeated(
        rules._replace(
            required=((Choice("capacity", capacity.required),) if capacity.required else ()) + rules.required,
            preferred=(*capacity.preferred, *rules.preferred),
            tolerations=(*rules.tolerations, *capacity.tolerations),
        )
    )


def build_capacity_rules(plan: Plan, capacity: str, strategy: str) -> CapacityRules:
    """`capacity` is what the split decided for this pod, "" where it decided nothing: then the strategy says it.

    On-demand that a split decided is required, for the base is a promise; spot only if the plan waits for it.
    """
    if capacity == ON_DEMAND or strategy == "on-demand-only":
        return CapacityRules(required=(ON_DEMAND_TERM,))
    if strategy == "spot-only" or (capacity == SPOT and plan.waits_for_spot):
        return CapacityRules(required=SPOT_TERMS, tolerations=SPOT_TOLERATIONS)
    if capacity == SPOT or strategy in ("spot-first", "spot-preferred"):
        weight = PREFERRED_WEIGHT if strategy == "spot-preferred" and not capacity else FIRST_WEIGHT
        return CapacityRules(preferred=_prefer(SPOT_TERMS, weight), tolerations=SPOT_TOLERATIONS)
    if strategy == "on-demand-first":
        return CapacityRules(preferred=_prefer((ON_DEMAND_TERM,), FIRST_WEIGHT), tolerations=SPOT_TOLERATIONS)
    return CapacityRules()


def build_version_rules(spec: PlacementPolicySpec, key: str) -> Document:
    """podAntiAffinity that keeps a pod from pods of other versions; `key` is the label that tells its version.

    Pods without that label are left out: they have no version, and NotIn would count them as another.
    """
    versions = spec.version_anti_affinity
    assert versions is not None
    assert spec.selector is not None, "a policy without one has a problem"
    selector: dict[str, Any] = msgspec.to_builtins(spec.selector)
    has_version = {"key": key, "operator": "Exists"}
    term = {
        "labelSelector": {**selector, "matchExpressions": [*selector.get("matchExpressions", ()), has_version]},
        "topologyKey": versions.topology_key,
        "mismatchLabelKeys": [key],
    }
    if versions.preferred is None:
        return {REQUIRED: [term]}
    return {PREFERRED: [{"weight": versions.preferred.weight, "podAffinityTerm": term}]}


def _drop_repeated(rules: PodRules) -> PodRules:
    """The rules without entries that are in a list twice. Worked out here, for it takes long where there are many."""
    return rules._replace(
        preferred=_keep_first(rules.preferred),
        pod_affinity={field: _keep_first(terms) for field, terms in rules.pod_affinity.items()},
        pod_anti_affinity={field: _keep_first(terms) for field, terms in rules.pod_anti_affinity.items()},
        tolerations=_keep_first(rules.tolerations),
        constraints=_keep_first(rules.constraints),
    )


def _keep_first(entries: Sequence[Document]) -> tuple[Document, ...]:
    kept: list[Document] = []
    for entry in entries:
        if entry not in kept:
            kept.append(entry)
    return tuple(kept)


def _prefer(terms: tuple[Document, ...], weight: int) -> tuple[Document, ...]:
    return tuple({"weight": weight, "preference": term} for term in terms)
