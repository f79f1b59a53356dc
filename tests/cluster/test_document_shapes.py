"""What a file may hold and no API server would have stored, found before a simulation meets it."""

from __future__ import annotations

from typing import Any

import pytest

from wukong.cluster.document_shapes import find_shape_problems


def a_budget(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}, "spec": spec}


def a_deployment(**rolling: Any) -> dict[str, Any]:
    spec = {"strategy": {"rollingUpdate": rolling}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


@pytest.mark.parametrize("share", [0, 3, "0%", "25%", "100%"])
def test_numbers_of_pods_and_shares_are_fine(share: int | str) -> None:
    for document in (a_budget(minAvailable=share), a_budget(maxUnavailable=share), a_deployment(maxSurge=share)):
        assert list(find_shape_problems(document)) == []


@pytest.mark.parametrize("share", ["many", "50%\x1b[2J", "%", "-1%", "1.5%", "²%", True, 1.5, [], {}])
def test_what_is_neither_is_named_with_its_place(share: object) -> None:
    (problem,) = find_shape_problems(a_budget(minAvailable=share))
    assert problem.startswith("$.spec.minAvailable: expected")
    (problem,) = find_shape_problems(a_deployment(maxUnavailable=share))
    assert problem.startswith("$.spec.strategy.rollingUpdate.maxUnavailable: expected")
