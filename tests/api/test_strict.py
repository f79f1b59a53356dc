"""Fields no struct knows are found wherever they stand, and what is free to be anything is left alone."""

from __future__ import annotations

from typing import Any

import pytest

from wukong.api.placement import ClusterPlacementPolicy, PlacementPolicy
from wukong.api.strict import unknown_fields

HEAD = {"apiVersion": "placement.novasphere.dev/v1alpha1", "kind": "PlacementPolicy", "metadata": {"name": "web"}}
RULES = "$.spec.scheduling.schedulingPolicy.rules"


def rules(*entries: Any) -> Any:
    return {"scheduling": {"schedulingPolicy": {"rules": list(entries)}}}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({**HEAD, "sepc": {}}, ['$.sepc: unknown field. Did you mean "spec"?']),
        ({**HEAD, "spec": {"mod": "Enforce"}}, ['$.spec.mod: unknown field. Did you mean "mode"?']),
        (
            {**HEAD, "spec": {"selector": {"matchLabel": {}}}},
            ['$.spec.selector.matchLabel: unknown field. Did you mean "matchLabels"?'],
        ),
        (
            {**HEAD, "spec": rules({"nmae": "a"}, {"wieght": 1})},
            [
                f'{RULES}[0].nmae: unknown field. Did you mean "name"?',
                f'{RULES}[1].wieght: unknown field. Did you mean "weight"?',
            ],
        ),
        (
            {**HEAD, "spec": {"capacity": {"a.b/c": 1}}},
            ['$.spec.capacity["a.b/c"]: unknown field. Known here: strategy, onDemandBase, spotPercent, fallback.'],
        ),
        ({**HEAD, "metadata": {"nam": "x"}}, ['$.metadata.nam: unknown field. Did you mean "name"?']),
        (
            {**HEAD, "spec": {"namespaceSelector": {}}},
            ['$.spec.namespaceSelector: unknown field. Did you mean "selector"?'],
        ),
    ],
)
def test_an_unknown_field_is_named_with_its_path_and_the_nearest_known(document: Any, expected: list[str]) -> None:
    assert unknown_fields(document, PlacementPolicy) == expected


@pytest.mark.parametrize(
    "document",
    [
        HEAD,
        {**HEAD, "metadata": {"name": "web", "managedFields": [{"x": 1}], "annotations": {"what.ever/it": "is"}}},
        {**HEAD, "status": {"whatever": 1}},
        {**HEAD, "spec": rules({"name": "mine", "config": {"any": {"thing": [1]}}})},
        {**HEAD, "spec": {"selector": {"matchLabels": {"app": "web"}}, "capacity": None}},
        {**HEAD, "spec": "not even a mapping"},
        ["not", "even"],
    ],
)
def test_what_is_known_or_free_is_no_problem(document: Any) -> None:
    assert unknown_fields(document, PlacementPolicy) == []


def test_each_kind_has_its_own_fields() -> None:
    assert unknown_fields({"spec": {"namespaceSelector": {"matchLabels": {}}}}, ClusterPlacementPolicy) == []
