"""What Karpenter can buy: NodePools, and of each the machines that it may use. Read by packing.py and provisioner.py.

A pool's limits hold for all its nodes together, those that boot included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from wukong.api.core import Quantities
from wukong.api.node_groups import NodeGroup
from wukong.api.quantity import parse_quantity
from wukong.embedded.actors.autoscaler.new_node import DEFAULT_CAPACITY
from wukong.engine.new_nodes import NewNode
from wukong.engine.template import Template

NODES = "nodes"  # the limit of how many
Amounts = dict[str, int]  # in billionths


class Offering:
    """A machine of a pool: a node group. `room` is what a node of it has beside its daemons, `pods` for how many."""

    def __init__(self, group: NodeGroup, new_node: NewNode, left: int) -> None:
        self.group, self.new_node, self.left = group, new_node, left
        self.labels = new_node.example.labels
        self.capacity: Amounts = {
            **read_amounts({**DEFAULT_CAPACITY, **group.template.capacity}),
            NODES: parse_quantity(1),
        }
        self.room = dict(new_node.example.allocatable)
        for daemon in new_node.daemons:
            for resource, amount in daemon.requests.needed.items():
                self.room[resource] = self.room.get(resource, 0) - int(amount)
        self.pods = new_node.example.allowed_pods - len(new_node.daemons)

    @property
    def price_rank(self) -> tuple[bool, float, int, int]:
        """The cheapest is the least; where nobody knows a price, the smallest."""
        price = self.group.price_per_hour
        return price is None, price or 0.0, self.capacity["cpu"], self.capacity["memory"]

    def takes(self, load: Mapping[str, int], template: Template, pods: int) -> bool:
        """Whether a node with this load, of so many pods, has room for one more."""
        needed = template.requests.needed
        return pods < self.pods and all(
            amount <= self.room.get(resource, 0) - load.get(resource, 0)
            for resource, amount in needed.items()
            if amount
        )


@dataclass
class Pool:
    """`remaining` is what its limits leave; without limits nothing is in it."""

    name: str
    weight: int
    offerings: list[Offering]
    remaining: Amounts

    def has_left(self, offering: Offering) -> bool:
        return all(offering.capacity.get(resource, 0) <= left for resource, left in self.remaining.items())

    def spend(self, offerings: Sequence[Offering]) -> None:
        """One of these is going to be bought: the largest, for all that is known."""
        for resource in self.remaining:
            self.remaining[resource] -= max(offering.capacity.get(resource, 0) for offering in offerings)


def list_pools(offerings: Iterable[Offering], used: Mapping[str, Amounts]) -> list[Pool]:
    """The pools of these offerings, the heaviest first, of equal ones the last by name.

    `used` is what the nodes of each have in capacity.
    """
    pools: dict[str, Pool] = {}
    for offering in offerings:
        group = offering.group
        if group.node_pool not in pools:
            limits, spent = read_amounts(group.pool_limits), used.get(group.node_pool, {})
            remaining = {resource: limit - spent.get(resource, 0) for resource, limit in limits.items()}
            pools[group.node_pool] = Pool(group.node_pool, group.weight, [], remaining)
        pools[group.node_pool].offerings.append(offering)
    return sorted(pools.values(), key=lambda pool: (pool.weight, pool.name), reverse=True)


def read_amounts(quantities: Quantities) -> Amounts:
    return {resource: parse_quantity(amount) for resource, amount in quantities.items()}
