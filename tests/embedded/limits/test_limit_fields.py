"""Quotas and limit ranges that the API server refuses, by the place of what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.validation.problem_tables import places
from wukong.embedded.store.limits.validation import find_limit_range_problems, find_quota_problems, find_scope_changes
from wukong.ports import Document

POD_SCOPES = ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass")


def of_quota(hard: Document | None = None, **spec: Any) -> list[str]:
    return [
        place.removeprefix("spec.") for place in places(find_quota_problems({"spec": {"hard": hard or {}, **spec}}))
    ]


def of_scope(name: str, operator: str, *values: str) -> list[str]:
    expression = {"scopeName": name, "operator": operator, "values": list(values)}
    found = of_quota(scopeSelector={"matchExpressions": [expression]})
    return [place.removeprefix("scopeSelector.matchExpressions.") for place in found]


def of_range(type_: str = "Container", /, **fields: Any) -> list[str]:
    found = places(find_limit_range_problems({"spec": {"limits": [{"type": type_, **fields}]}}))
    return [place.removeprefix("spec.limits[0].") for place in found]


def test_a_quota_is_on_resources_that_can_be_counted() -> None:
    counts = ["pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps"]
    counts += ["persistentvolumeclaims", "services.nodeports", "services.loadbalancers"]
    amounts = [
        f"{part}{name}" for part in ("", "requests.", "limits.") for name in ("cpu", "memory", "ephemeral-storage")
    ]
    others = ["requests.storage", "count/pods", "requests.example.com/gpu", "hugepages-2Mi", "requests.hugepages-2Mi"]
    assert of_quota(dict.fromkeys([*counts, *amounts, *others], "0")) == []
    for name in counts:
        assert of_quota({name: "500m"}) == [f"hard[{name}]: Invalid value"]
    for name in (*amounts, "requests.storage"):
        assert of_quota({name: "500m"}) == []
    for name in ("gpu", "limits.storage", "storage"):
        assert of_quota({name: "1"}) == [f"hard[{name}]: Invalid value"] * 2
    assert of_quota({"a b/c": "1"}) == ["hard[a b/c]: Invalid value"]
    assert of_quota({"cpu": "-1"}) == ["hard[cpu]: Invalid value"]
    assert of_quota({"example.com/gpu": "500m"}) == ["hard[example.com/gpu]: Invalid value"]


@pytest.mark.parametrize("scope", [*POD_SCOPES, "CrossNamespacePodAffinity"])
def test_a_scope_of_pods_is_for_quotas_on_pods(scope: str) -> None:
    is_compute = scope != "BestEffort"
    assert of_quota({"pods": "1"}, scopes=[scope]) == []
    assert of_quota({"services": "1"}, scopes=[scope]) == ["scopes: Invalid value"]
    for name in ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"):
        assert of_quota({name: "1"}, scopes=[scope]) == ([] if is_compute else ["scopes: Invalid value"])
    assert of_quota({"ephemeral-storage": "1"}, scopes=[scope]) == ["scopes: Invalid value"]


def test_the_scope_of_attribute_classes_is_for_quotas_on_claims() -> None:
    claims = {"persistentvolumeclaims": "1", "requests.storage": "1"}
    assert of_quota(claims, scopes=["VolumeAttributesClass"]) == []
    assert of_quota({"pods": "1"}, scopes=["VolumeAttributesClass"]) == ["scopes: Invalid value"]


def test_scopes_are_known_and_do_not_exclude_each_other() -> None:
    assert of_quota(scopes=["Often"]) == ["scopes: Invalid value"]
    for pair in (["BestEffort", "NotBestEffort"], ["NotTerminating", "Terminating"]):
        assert of_quota(scopes=pair) == ["scopes: Invalid value"]
    assert of_quota(scopes=["BestEffort", "Terminating"]) == of_quota(scopes=["NotBestEffort", "NotTerminating"]) == []


def test_only_priority_and_attribute_classes_are_chosen_by_values() -> None:
    for name in ("PriorityClass", "VolumeAttributesClass"):
        assert of_scope(name, "In", "a") == of_scope(name, "NotIn", "a") == []
        assert of_scope(name, "Exists") == of_scope(name, "DoesNotExist") == []
        assert of_scope(name, "In") == of_scope(name, "NotIn") == ["values: Required value"]
        assert of_scope(name, "Exists", "a") == of_scope(name, "DoesNotExist", "a") == ["values: Invalid value"]
        assert of_scope(name, "Like", "a") == ["operator: Invalid value"]
    for name in ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "CrossNamespacePodAffinity"):
        assert of_scope(name, "Exists") == []
        assert of_scope(name, "DoesNotExist") == of_scope(name, "In", "a") == ["operator: Invalid value"]
    assert of_scope("Often", "Exists") == ["scopeName: Invalid value"]


def test_the_scopes_of_a_quota_stay_in_whatever_order() -> None:
    def change(old: list[str], new: list[str]) -> list[str]:
        return places(find_scope_changes({"spec": {"scopes": old}}, {"spec": {"scopes": new}}))

    assert change(["BestEffort", "Terminating"], ["Terminating", "BestEffort"]) == change([], []) == []
    assert change(["BestEffort"], []) == change([], ["BestEffort"]) == ["spec.scopes: Invalid value"]


def test_a_range_is_of_pods_containers_or_claims_each_once() -> None:
    assert of_range("Pod") == of_range("Container") == of_range("example.com/thing") == []
    assert of_range("PersistentVolumeClaim", min={"storage": "1"}) == []
    assert of_range("PersistentVolumeClaim", max={"storage": "1"}) == []
    assert of_range("PersistentVolumeClaim") == ["limits: Required value"]
    assert of_range("Thing") == ["type: Invalid value"]
    twice = {"spec": {"limits": [{"type": "Pod"}, {"type": "Pod"}]}}
    assert places(find_limit_range_problems(twice)) == ["spec.limits[1].type: Duplicate value"]
    for field in ("default", "defaultRequest"):
        assert of_range("Pod", **{field: {"cpu": "1"}}) == [f"{field}: Forbidden"]


@pytest.mark.parametrize(
    ("low", "high", "place"),
    [
        ("min", "max", "min"),
        ("min", "defaultRequest", "defaultRequest"),
        ("defaultRequest", "max", "defaultRequest"),
        ("defaultRequest", "default", "defaultRequest"),
        ("min", "default", "default"),
        ("default", "max", "default"),
    ],
)
def test_bounds_and_defaults_of_a_range_are_in_their_order(low: str, high: str, place: str) -> None:
    assert of_range(**{low: {"cpu": "1"}, high: {"cpu": "1"}}) == []
    assert of_range(**{low: {"cpu": "1"}, high: {"cpu": "2"}}) == []
    assert of_range(**{low: {"cpu": "2"}, high: {"cpu": "1"}}) == [f"{place}[cpu]: Invalid value"]


def test_defaults_of_what_cannot_be_overcommitted_are_equal() -> None:
    for name in ("cpu", "memory", "ephemeral-storage", "storage"):
        assert of_range(default={name: "2"}, defaultRequest={name: "1"}) == []
    found = of_range(default={"example.com/gpu": "2"}, defaultRequest={"example.com/gpu": "1"})
    assert found == ["defaultRequest[example.com/gpu]: Invalid value"]
    assert of_range(default={"example.com/gpu": "2"}, defaultRequest={"example.com/gpu": "2"}) == []


def test_a_ratio_is_at_least_1_and_at_most_what_the_bounds_allow() -> None:
    def ratio(value: str, **fields: Any) -> list[str]:
        return of_range(maxLimitRequestRatio={"cpu": value}, **fields)

    place = ["maxLimitRequestRatio[cpu]: Invalid value"]
    assert ratio("1") == ratio("9") == []
    assert ratio("999m") == place
    bounds: Document = {"min": {"cpu": "1"}, "max": {"cpu": "4"}}
    assert ratio("4", **bounds) == ratio("9", max={"cpu": "4"}) == ratio("9", min={"cpu": "0"}, max={"cpu": "4"}) == []
    assert ratio("4001m", **bounds) == place
