"""LimitRanges: what pods get, and which are refused, word for word."""

from __future__ import annotations

from typing import Any

import pytest

from wukong.api.field_types import struct_named
from wukong.embedded.store.limits.limit_ranges import find_claim_refusals, find_pod_refusals, set_defaults
from wukong.embedded.store.limits.validation import find_limit_range_problems
from wukong.embedded.store.stored_form import store_form_of
from wukong.ports import Document


def a_range(type_: str = "Container", **fields: Any) -> Document:
    limit_range: Document = {"metadata": {"name": "l"}, "spec": {"limits": [{"type": type_, **fields}]}}
    return store_form_of(struct_named("LimitRange"), limit_range)


def a_pod(requests: Document | None = None, limits: Document | None = None) -> Document:
    resources = {"requests": requests or {}, "limits": limits or {}}
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main", "resources": resources}]}}


def test_a_maximum_is_the_default_limit_and_that_the_default_request() -> None:
    pod, annotation = set_defaults(a_pod(), [a_range(max={"cpu": "2"}, min={"memory": "1Mi"})])
    assert pod["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "2", "memory": "1Mi"},
        "limits": {"cpu": "2"},
    }
    assert annotation == "LimitRanger plugin set: cpu, memory request for container main; cpu limit for container main"
    assert pod["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == annotation


def test_what_a_container_says_itself_stays() -> None:
    pod, annotation = set_defaults(a_pod({"cpu": "1"}, {"cpu": "1"}), [a_range(default={"cpu": "2"})])
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}
    assert annotation == ""


@pytest.mark.parametrize(
    ("fields", "requests", "limits", "refusal"),
    [
        ({"min": {"cpu": "1"}}, {}, {}, "minimum cpu usage per Container is 1.  No request is specified"),
        ({"min": {"cpu": "1"}}, {"cpu": "500m"}, {}, "minimum cpu usage per Container is 1, but request is 500m"),
        ({"max": {"cpu": "1"}}, {"cpu": "1"}, {"cpu": "2"}, "maximum cpu usage per Container is 1, but limit is 2"),
        ({"max": {"cpu": "1"}}, {"cpu": "1"}, {}, "maximum cpu usage per Container is 1.  No limit is specified"),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"cpu": "100m"},
            {"cpu": "1"},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 10.000000",
        ),
        (
            {"max": {"cpu": "1", "memory": "1Gi"}},
            {},
            {"cpu": "2", "memory": "2Gi"},
            "[maximum cpu usage per Container is 1, but limit is 2, "
            "maximum memory usage per Container is 1Gi, but limit is 2Gi]",
        ),
        ({"max": {"cpu": "1"}}, {"cpu": "1"}, {"cpu": "1"}, ""),
    ],
)
def test_refusals_of_containers(fields: Document, requests: Document, limits: Document, refusal: str) -> None:
    found = list(find_pod_refusals(a_pod(requests, limits), [a_range(**fields)]))
    assert found == ([refusal] if refusal else [])


def test_a_pod_is_what_its_containers_are_together() -> None:
    pod = a_pod({"memory": "600Mi"}, {"memory": "600Mi"})
    pod["spec"]["containers"] *= 2
    (refusal,) = find_pod_refusals(pod, [a_range("Pod", max={"memory": "1Gi"})])
    assert refusal == "maximum memory usage per Pod is 1Gi, but limit is 1200Mi"


def test_claims_have_bounds_of_their_own() -> None:
    claim = {"spec": {"resources": {"requests": {"storage": "3Gi"}}}}
    (refusal,) = find_claim_refusals(claim, [a_range("PersistentVolumeClaim", max={"storage": "2Gi"})])
    assert refusal == "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"


def test_a_range_whose_bounds_contradict_each_other_is_refused() -> None:
    problems = list(find_limit_range_problems(a_range(min={"cpu": "2"}, max={"cpu": "1"})))
    assert 'spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1' in problems
