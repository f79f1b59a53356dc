"""The order in which old pods of a canary leave their nodes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from wukong.api.core import Pod
from wukong.api.rollout import NODE_ORDER
from wukong.controllers.rollout.node_order import COST, MOST_PODS, find_costs


def pods_on(layout: str, **annotations: str) -> tuple[Pod, ...]:
    """One pod per letter, on the node of that name; a dot is a pod without a node."""
    return tuple(a_pod(str(index), node, annotations) for index, node in enumerate(layout))


def a_pod(name: str, node: str, annotations: dict[str, str]) -> Pod:
    document: dict[str, Any] = {
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"nodeName": node if node != "." else ""},
    }
    return msgspec.convert(document, Pod)


@pytest.mark.parametrize(
    ("layout", "costs"),
    [
        ("", {}),
        ("aaaa", {}),
        ("aaaabbbb", {"a": -2}),
        ("aaaabb", {"b": -2}),
        ("aaabbc.", {"c": -3, "b": -2}),
        ("....", {}),
    ],
)
def test_the_node_with_the_fewest_pods_is_emptied_first(layout: str, costs: dict[str, int]) -> None:
    assert find_costs(pods_on(layout)) == costs


def test_an_order_that_was_begun_is_kept() -> None:
    begun = pods_on("bb", **{COST: "-2", NODE_ORDER: "-2"})
    assert find_costs((*begun, *pods_on("aab"))) == {"b": -2}


@pytest.mark.parametrize("annotations", [{COST: "-2"}, {COST: "5", NODE_ORDER: "-2"}])
def test_costs_of_somebody_else_are_left_alone(annotations: dict[str, str]) -> None:
    assert find_costs((*pods_on("a", **annotations), *pods_on("bb"))) == {}


def test_very_many_pods_are_not_written_to() -> None:
    assert find_costs(pods_on("ab" * (MOST_PODS // 2)))
    assert find_costs(pods_on("ab" * (MOST_PODS // 2) + "a")) == {}
