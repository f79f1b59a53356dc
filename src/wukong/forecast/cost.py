"""What the nodes cost per month, before a change and after it, where prices are known. Called by plan.py. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from wukong.api.core import Node
from wukong.forecast.fields import Cost, NodeForecast
from wukong.placement.capacity import is_spot
from wukong.placement.prices import Prices
from wukong.state import State

HOURS_PER_MONTH = 730
Labels = Mapping[str, str]


def compare_costs(state: State, nodes: NodeForecast, prices: Prices) -> Cost | None:
    """None where no price is known at all. `state` is the cluster before the change."""
    before = {node.metadata.name: node.metadata.labels for node in state.all(Node)}
    needed = _label_needed_nodes(before, nodes)
    after = {name: labels for name, labels in before.items() if name not in nodes.removed} | nodes.added_labels
    known = {name: _price_of(name, labels, prices) for name, labels in (before | after | needed).items()}
    if all(math.isnan(price) for price in known.values()):
        return None
    return Cost(
        before=_sum(known[name] for name in before),
        after=_sum(known[name] for name in after | needed),
        unknown=sum(math.isnan(price) for price in known.values()),
        is_list_price=any(
            prices.is_list_price(name, labels, is_spot(labels)) for name, labels in (before | after | needed).items()
        ),
    )


def _label_needed_nodes(present: Mapping[str, Labels], nodes: NodeForecast) -> dict[str, Labels]:
    """Nodes that would have to be there, under names of their own: only a price by label or type is known of them."""
    return {
        f"{needed.like} ({number})": present[needed.like]
        for needed in nodes.needed
        if needed.like in present
        for number in range(1, needed.count + 1)
    }


def _price_of(name: str, labels: Labels, prices: Prices) -> float:
    return prices.price_of(name, labels, is_spot(labels))


def _sum(prices: Iterable[float]) -> float:
    return round(sum(price for price in prices if not math.isnan(price)) * HOURS_PER_MONTH, 2)
