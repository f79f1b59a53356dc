"""What a file may hold and no API server would have stored, found before a simulation meets it."""

from __future__ import annotations

from typing import Any

import pytest

from wukong.cluster.document_shapes import find_shape_problems, find_time_problems, is_time


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


def a_pod(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, **fields}


def test_pods_and_nodes_are_looked_at_unless_they_have_been_decoded() -> None:
    odd = a_pod(status={"startTime": "yesterday"})
    (problem,) = find_shape_problems(odd)
    assert problem == (
        "$.status.startTime: expected a time such as \"2026-01-01T00:00:00Z\", got 'yesterday'. Mend it."
    )
    assert list(find_shape_problems(odd, is_decoded=True)) == []
    assert len(list(find_shape_problems(a_budget(minAvailable="many"), is_decoded=True))) == 1
    assert list(find_shape_problems({"kind": "Widget", "apiVersion": "example.com/v1", "metadata": 7})) == []


def test_a_kind_of_others_that_has_the_name_of_ours_is_not_judged() -> None:
    odd = {"kind": "Service", "metadata": 7}
    assert list(find_shape_problems({**odd, "apiVersion": "serving.knative.dev/v1"})) == []
    assert len(list(find_shape_problems({**odd, "apiVersion": "v1"}))) == 1
    assert len(list(find_shape_problems(odd))) == 1


TIMES = [
    ("$.metadata.creationTimestamp", {"metadata": {"creationTimestamp": "x"}}),
    ("$.metadata.deletionTimestamp", {"metadata": {"deletionTimestamp": "x"}}),
    ("$.status.startTime", {"status": {"startTime": "x"}}),
    ("$.status.conditions.lastTransitionTime", {"status": {"conditions": [{"lastTransitionTime": "x"}]}}),
    ("$.status.conditions.lastUpdateTime", {"status": {"conditions": [{"lastUpdateTime": "x"}]}}),
    ("$.status.conditions.lastHeartbeatTime", {"status": {"conditions": [{"lastHeartbeatTime": "x"}]}}),
    ("$.status.disruptedPods.web", {"status": {"disruptedPods": {"web": "x"}}}),
]


@pytest.mark.parametrize(("path", "document"), TIMES)
def test_every_time_that_a_simulation_reads_is_looked_at(path: str, document: dict[str, Any]) -> None:
    assert [problem.partition(": ")[0] for problem in find_time_problems(document)] == [path]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-01T00:00:00Z", True),
        ("2199-12-31T23:59:59Z", True),
        ("2200-01-01T00:00:00Z", False),
        ("2026-13-01T00:00:00Z", False),
        ("2026-01-01 00:00:00", False),
        (7, False),
        ("", False),
    ],
)
def test_a_time_is_as_the_api_writes_it_and_in_reach(text: object, expected: bool) -> None:
    assert is_time(text) is expected
