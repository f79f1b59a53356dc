"""Karpenter's NodePools as node groups: one for each instance type that a pool may use. Pure, called by file.py.

Types are those that the pool's requirements name, and those of its nodes and NodeClaims that are there. What a type is
like is read from these, or from its name. Limits hold for a pool's nodes together, and bound the number of each
group's. Which of its groups a pool takes, embedded/actors/karpenter/ decides as Karpenter does. Consolidation is not
played: nodes go as cluster-autoscaler lets them go, and a note says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from wukong.api.core import Node, Quantities, Taint
from wukong.api.decode import readable
from wukong.api.meta import Base, Object
from wukong.api.node_groups import NodeGroup, NodeTemplate
from wukong.api.quantity import parse_quantity
from wukong.errors import InputError
from wukong.placement.node_groups.shapes import (
    INSTANCE_TYPE,
    ZONE,
    find_shape,
    template_of,
    template_of_shape,
    usable_name,
)
from wukong.placement.price_table import SPOT_SHARE, find_list_price

POOL_LABEL, CAPACITY_LABEL = "karpenter.sh/nodepool", "karpenter.sh/capacity-type"
MOST_NODES = 1000  # of a pool without limits


class _Requirement(Base):
    key: str
    operator: str = ""
    values: list[str] = []


class _Metadata(Base):
    labels: dict[str, str] = {}


class _ClaimSpec(Base):
    taints: list[Taint] = []
    requirements: list[_Requirement] = []


class _ClaimTemplate(Base):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _ClaimSpec = msgspec.field(default_factory=_ClaimSpec)


class _PoolSpec(Base):
    template: _ClaimTemplate = msgspec.field(default_factory=_ClaimTemplate)
    limits: Quantities = {}
    weight: int = 0


class NodePool(Object):
    spec: _PoolSpec = msgspec.field(default_factory=_PoolSpec)


class _ClaimStatus(Base):
    capacity: Quantities = {}
    allocatable: Quantities = {}


class NodeClaim(Object):
    status: _ClaimStatus = msgspec.field(default_factory=_ClaimStatus)


def read_node_pools(documents: Iterable[dict[str, Any]], nodes: Sequence[Node], notes: list[str]) -> list[NodeGroup]:
    """`documents` are NodePools and NodeClaims. Raises InputError with every one that cannot be read."""
    pools, claims = list[NodePool](), list[NodeClaim]()
    problems: list[str] = []
    for document in documents:
        struct = NodePool if document.get("kind") == "NodePool" else NodeClaim
        try:
            subject = msgspec.convert(document, struct)
        except msgspec.ValidationError as error:
            name = (document.get("metadata") or {}).get("name") if isinstance(document.get("metadata"), dict) else ""
            problems.append(f"{document.get('kind')} {name!s:.100}: {readable(error)}")
            continue
        (pools if isinstance(subject, NodePool) else claims).append(subject)  # type: ignore[arg-type]
    if problems:
        raise InputError(*problems)
    groups: list[NodeGroup] = []
    for pool in pools:
        try:
            groups += _PoolReader(pool, claims, nodes, notes).list_groups()
        except InputError as error:  # an amount that is none
            notes.append(f"NodePool {pool.metadata.name:.100} is left out: {error}")
    if groups:
        notes.append(
            "Karpenter's consolidation is not played: its nodes go when they were half empty for ten minutes, as with "
            "cluster-autoscaler."
        )
    return groups


class _PoolReader:
    def __init__(self, pool: NodePool, claims: Sequence[NodeClaim], nodes: Sequence[Node], notes: list[str]) -> None:
        self.pool, self.name, self.notes, self.all_nodes = pool, pool.metadata.name, notes, nodes
        self.nodes = [node for node in nodes if node.metadata.labels.get(POOL_LABEL) == self.name]
        self.claims = claims
        self.values: dict[str, list[str]] = {}  # what the pool allows of a label, where it names it
        for requirement in pool.spec.template.spec.requirements:
            if requirement.operator == "In":
                allowed = self.values.get(requirement.key, requirement.values)
                self.values[requirement.key] = [value for value in requirement.values if value in allowed]

    def list_groups(self) -> list[NodeGroup]:
        present = {node.metadata.labels.get(INSTANCE_TYPE, "") for node in self.nodes} - {""}
        types = self.values.get(INSTANCE_TYPE) or sorted(present)
        if not types:
            self.notes.append(
                f"NodePool {self.name:.100} is left out: it names no instance types and has no nodes. Describe its "
                "groups under nodeGroups."
            )
        groups = []
        for instance_type in types:
            template = self._find_template(instance_type)
            if template is None:
                self.notes.append(
                    f"NodePool {self.name:.100}: instance type {instance_type:.100} is left out, for nobody knows what "
                    "it is like: no such node is there."
                )
                continue
            groups += [self._build_group(instance_type, zone, template) for zone in self._list_zones()]
        return groups

    def _list_zones(self) -> list[str]:
        """The zones that it may use; an empty name if nothing tells."""
        present = {node.metadata.labels.get(ZONE, "") for node in self.nodes} - {""}
        return self.values.get(ZONE) or sorted(present) or [""]

    def _find_template(self, instance_type: str) -> NodeTemplate | None:
        """Amounts of such a machine: by a node, a NodeClaim, or its name."""
        for nodes in (self.nodes, self.all_nodes):
            alike = [node for node in nodes if node.metadata.labels.get(INSTANCE_TYPE) == instance_type]
            if alike:
                template = template_of(alike)
                return NodeTemplate(capacity=template.capacity, allocatable=template.allocatable)
        for claim in self.claims:
            if claim.metadata.labels.get(INSTANCE_TYPE) == instance_type and claim.status.capacity:
                return NodeTemplate(capacity=claim.status.capacity, allocatable=claim.status.allocatable)
        shape = find_shape(instance_type)
        return template_of_shape(shape) if shape is not None else None

    def _build_group(self, instance_type: str, zone: str, template: NodeTemplate) -> NodeGroup:
        spec = self.pool.spec.template
        own = {POOL_LABEL: self.name, INSTANCE_TYPE: instance_type, **({ZONE: zone} if zone else {})}
        single = {key: values[0] for key, values in self.values.items() if len(values) == 1}
        capacities = self.values.get(CAPACITY_LABEL) or ["on-demand"]
        is_spot = "spot" in capacities  # where both are allowed, the cheaper one is taken
        labels = {**single, **spec.metadata.labels, CAPACITY_LABEL: "spot" if is_spot else capacities[0], **own}
        price = find_list_price(instance_type)
        members = [node for node in self.nodes if all(node.metadata.labels.get(key) == own[key] for key in own)]
        return NodeGroup(
            name=usable_name("-".join(filter(None, (self.name, instance_type, zone)))),
            template=NodeTemplate(
                labels=labels,
                taints=spec.spec.taints,
                capacity=template.capacity,
                allocatable=template.allocatable,
            ),
            max=len(members) + self._count_left(template),
            weight=self.pool.spec.weight,
            price_per_hour=None if price is None else round(price * (SPOT_SHARE if is_spot else 1), 6),
            match_labels=own,
            node_pool=self.name,
            pool_limits=self.pool.spec.limits,
        )

    def _count_left(self, template: NodeTemplate) -> int:
        """How many more such nodes the pool's limits leave room for."""
        left = MOST_NODES
        for resource in ("cpu", "memory"):
            if resource not in self.pool.spec.limits or resource not in template.capacity:
                continue
            used = sum(parse_quantity(node.status.capacity.get(resource, 0)) for node in self.nodes)
            each = parse_quantity(template.capacity[resource])
            free = parse_quantity(self.pool.spec.limits[resource]) - used
            left = min(left, math.floor(free / each)) if each > 0 else left
        return max(0, left)
