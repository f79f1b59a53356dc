"""What quotas count of an object, which pods a scope is about, and what is charged: the API server's evaluators."""

from __future__ import annotations

from typing import Any

import pytest

from wukong.api.quota import ScopedSelectorRequirement
from wukong.embedded.store.limits.amounts import Amount, format_amounts
from wukong.embedded.store.limits.limit_ranges import find_claim_refusals, find_pod_refusals, set_defaults
from wukong.embedded.store.limits.pod_resources import sum_resources
from wukong.embedded.store.limits.pod_scopes import PodScopes, read_scopes
from wukong.embedded.store.limits.quotas import judge
from wukong.embedded.store.limits.usage import evaluator_of, find_missing_resources, is_over, measure_pod
from wukong.ports import Document

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def a_container(requests: Document | None = None, limits: Document | None = None, **fields: Any) -> Document:
    return {"name": "main", "resources": {"requests": requests or {}, "limits": limits or {}}, **fields}


def a_pod(*containers: Document, **spec: Any) -> Document:
    return {"metadata": {"name": "p"}, "spec": {"containers": list(containers), **spec}}


def a_quota(hard: Document, used: Document | None = None, name: str = "q", **spec: Any) -> Document:
    status = {"hard": hard, "used": used if used is not None else dict.fromkeys(hard, "0")}
    return {"metadata": {"name": name}, "spec": {"hard": hard, **spec}, "status": status}


def measure(store_name: str, document: Document) -> Document:
    return format_amounts(evaluator_of(store_name).measure(document))


# What is counted ---------------------------------------------------------------------------------------------------


def test_a_pod_counts_for_what_it_requests_and_is_limited_to() -> None:
    requests = {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "2Gi", "example.com/gpu": "1", "hugepages-2Mi": "4Mi"}
    limits = {"cpu": "2", "memory": "2Gi", "ephemeral-storage": "3Gi", "example.com/gpu": "1", "hugepages-2Mi": "4Mi"}
    assert measure("pods", a_pod(a_container(requests, limits))) == {
        "count/pods": "1", "pods": "1", "cpu": "1", "requests.cpu": "1", "limits.cpu": "2", "memory": "1Gi",
        "requests.memory": "1Gi", "limits.memory": "2Gi", "ephemeral-storage": "2Gi",
        "requests.ephemeral-storage": "2Gi", "limits.ephemeral-storage": "3Gi", "requests.example.com/gpu": "1",
        "hugepages-2Mi": "4Mi", "requests.hugepages-2Mi": "4Mi",
    }  # fmt: skip
    assert measure("pods", a_pod(a_container())) == {"count/pods": "1", "pods": "1"}


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_pod_that_has_ended_is_only_there(phase: str) -> None:
    pod = a_pod(a_container({"cpu": "1"}))
    assert format_amounts(measure_pod({**pod, "status": {"phase": phase}})) == {"count/pods": "1"}
    assert "cpu" in measure_pod({**pod, "status": {"phase": "Running"}})


def test_a_pod_that_stops_counts_until_its_grace_is_over() -> None:
    begin = "1970-01-01T00:01:40Z"
    stopping = {"metadata": {"deletionTimestamp": begin, "deletionGracePeriodSeconds": 30}, "spec": {}}
    assert [is_over(stopping, now) for now in (None, 130.0, 130.5)] == [False, False, True]
    assert not is_over({"metadata": {"deletionTimestamp": begin}, "spec": {}}, 999.0)
    assert not is_over({"metadata": {"deletionGracePeriodSeconds": 30}, "spec": {}}, 999.0)


@pytest.mark.parametrize(
    ("name", "is_counted"),
    [
        *((name, True) for name in ("pods", "count/pods", "cpu", "memory", "ephemeral-storage", "requests.cpu")),
        *((name, True) for name in ("limits.memory", "hugepages-2Mi", "requests.hugepages-2Mi")),
        ("requests.example.com/gpu", True),
        ("requests.kubernetes.io/batteries", False),
        *((name, False) for name in ("example.com/gpu", "requests.storage", "services", "limits.example.com/gpu")),
    ],
)
def test_a_quota_counts_pods_by_the_resources_that_are_theirs(name: str, is_counted: bool) -> None:
    assert evaluator_of("pods").counts(name) is is_counted
    assert evaluator_of("pods").select_counted(["services", name]) == ([name] if is_counted else [])


@pytest.mark.parametrize(
    ("spec", "balancers", "ports"),
    [
        ({"type": "ClusterIP", "ports": [{}]}, "0", "0"),
        ({"type": "NodePort", "ports": [{}, {}]}, "0", "2"),
        ({"type": "LoadBalancer", "ports": [{}, {}]}, "1", "2"),
        ({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": True, "ports": [{}]}, "1", "1"),
        ({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False, "ports": [{}, {"nodePort": 3}]}, "1", "1"),
        ({"type": "ExternalName"}, "0", "0"),
    ],
)
def test_a_service_counts_its_balancer_and_the_ports_of_nodes(spec: Document, balancers: str, ports: str) -> None:
    assert measure("services", {"spec": spec}) == {
        "count/services": "1", "services": "1", "services.loadbalancers": balancers, "services.nodeports": ports,
    }  # fmt: skip


def test_a_claim_counts_its_size_also_by_its_class() -> None:
    spec: Document = {"resources": {"requests": {"storage": "1Gi"}}}
    plain = {"persistentvolumeclaims": "1", "count/persistentvolumeclaims": "1", "requests.storage": "1Gi"}
    by_class = {
        "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
        "gold.storageclass.storage.k8s.io/requests.storage": "1Gi",
    }
    assert measure("persistentvolumeclaims", {"spec": spec}) == plain
    assert measure("persistentvolumeclaims", {"spec": {**spec, "storageClassName": "gold"}}) == plain | by_class
    annotated = {"annotations": {"volume.beta.kubernetes.io/storage-class": "gold"}}
    claim = {"metadata": annotated, "spec": {**spec, "storageClassName": "other"}}
    assert measure("persistentvolumeclaims", claim) == plain | by_class
    assert "requests.storage" not in measure("persistentvolumeclaims", {"spec": {}})
    for name in (*plain, *by_class):
        assert evaluator_of("persistentvolumeclaims").counts(name)
    for name in ("pods", "requests.cpu", "gold.storageclass.storage.k8s.io/pods"):
        assert not evaluator_of("persistentvolumeclaims").counts(name)


def test_a_claim_that_was_given_more_counts_for_that_in_whole_bytes() -> None:
    def size(asked: str, given: str | None) -> str:
        status = {"allocatedResources": {"storage": given}} if given else {}
        claim = {"spec": {"resources": {"requests": {"storage": asked}}}, "status": status}
        return str(measure("persistentvolumeclaims", claim)["requests.storage"])

    assert [size("1Gi", given) for given in (None, "2Gi", "1Mi", "1Gi")] == ["1Gi", "2Gi", "1Gi", "1Gi"]
    assert size("1500m", None) == "2"


def test_other_kinds_are_counted_by_number_and_four_by_an_old_name_too() -> None:
    assert measure("deployments.apps", {}) == {"count/deployments.apps": "1"}
    assert not evaluator_of("deployments.apps").counts("deployments.apps")
    for name in ("configmaps", "resourcequotas", "replicationcontrollers", "secrets"):
        assert measure(name, {}) == {f"count/{name}": "1", name: "1"}
        assert evaluator_of(name).counts(name)


def test_a_quota_on_cpu_or_memory_has_every_container_say_how_much() -> None:
    pod = a_pod(a_container({"cpu": "1"}), {"name": "b"}, initContainers=[{"name": "a"}])
    assert find_missing_resources(pod, ["pods", "ephemeral-storage", "requests.storage"]) == ""
    assert find_missing_resources(pod, ["cpu"]) == "must specify cpu for: a,b"
    assert find_missing_resources(pod, ["limits.memory", "requests.cpu"]) == (
        "must specify limits.memory for: a,b,main; requests.cpu for: a,b"
    )
    assert find_missing_resources(a_pod({"name": "b"}, resources={"requests": {"cpu": "1"}}), ["cpu"]) == ""


# Sums --------------------------------------------------------------------------------------------------------------


def summed(pod: Document, part: str = "requests", *, with_overhead: bool = False) -> Document:
    return format_amounts(sum_resources(pod, part, with_overhead=with_overhead))


def test_init_containers_count_by_their_peak_and_sidecars_beside_the_rest() -> None:
    first, beside = a_container({"cpu": "3"}), a_container({"cpu": "1"}, restartPolicy="Always")
    two = (a_container({"cpu": "1"}), a_container({"cpu": "1"}))
    assert summed(a_pod(*two)) == {"cpu": "2"}
    assert summed(a_pod(*two, initContainers=[first])) == {"cpu": "3"}
    assert summed(a_pod(*two, initContainers=[beside])) == {"cpu": "3"}
    assert summed(a_pod(*two, initContainers=[beside, first])) == {"cpu": "4"}
    assert summed(a_pod(*two, initContainers=[first, beside])) == {"cpu": "3"}
    assert summed(a_pod(*two, initContainers=[a_container({"memory": "1"})])) == {"cpu": "2", "memory": "1"}


def test_a_pod_as_a_whole_stands_for_its_containers_and_overhead_comes_on_top() -> None:
    pod = a_pod(
        a_container({"cpu": "1", "example.com/a": "1"}), resources={"requests": {"cpu": "5"}}, overhead={"cpu": "1"}
    )
    assert summed(pod) == {"cpu": "5", "example.com/a": "1"}
    assert summed(pod, with_overhead=True) == {"cpu": "6", "example.com/a": "1"}
    limited = a_pod(a_container(None, {"memory": "1Gi"}), overhead={"cpu": "1", "memory": "1Gi"})
    assert summed(limited, "limits", with_overhead=True) == {"memory": "2Gi"}
    assert summed(limited, with_overhead=True) == {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("left", "right", "total"),
    [("1Gi", "512Mi", "1536Mi"), ("0", "1Gi", "1Gi"), ("1Gi", "0", "1Gi"), ("1", "1m", "1001m")],
)
def test_a_sum_keeps_the_form_of_the_first_that_is_something(left: str, right: str, total: str) -> None:
    assert str(Amount.parse(left).plus(Amount.parse(right))) == total


# Scopes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "pod", "is_in"),
    [
        ("Terminating", PodScopes(has_deadline=True), True),
        ("Terminating", PodScopes(), False),
        ("NotTerminating", PodScopes(has_deadline=True), False),
        ("NotTerminating", PodScopes(), True),
        ("BestEffort", PodScopes(is_best_effort=True), True),
        ("BestEffort", PodScopes(), False),
        ("NotBestEffort", PodScopes(is_best_effort=True), False),
        ("NotBestEffort", PodScopes(), True),
        ("CrossNamespacePodAffinity", PodScopes(is_cross_namespace=True), True),
        ("CrossNamespacePodAffinity", PodScopes(), False),
        ("PriorityClass", PodScopes(priority_class="a"), True),
        ("PriorityClass", PodScopes(), False),
        ("VolumeAttributesClass", PodScopes(), False),
    ],
)
def test_a_scope_is_about_some_pods(scope: str, pod: PodScopes, is_in: bool) -> None:
    assert pod.matches(ScopedSelectorRequirement(scope_name=scope, operator="Exists")) is is_in


@pytest.mark.parametrize(
    ("operator", "values", "of_a", "of_none"),
    [
        ("In", ["a", "b"], True, False),
        ("In", ["b"], False, False),
        ("NotIn", ["a"], False, True),
        ("NotIn", ["b"], True, True),
        ("Exists", [], True, False),
        ("DoesNotExist", [], False, True),
        ("Like", ["a"], False, False),
    ],
)
def test_priority_classes_are_chosen_by_operators(operator: str, values: list[str], of_a: bool, of_none: bool) -> None:
    requirement = ScopedSelectorRequirement(scope_name="PriorityClass", operator=operator, values=values)
    assert PodScopes(priority_class="a").matches(requirement) is of_a
    assert PodScopes().matches(requirement) is of_none


def test_scopes_are_read_from_a_pod() -> None:
    assert read_scopes(a_pod(a_container())) == PodScopes(is_best_effort=True)
    assert read_scopes(a_pod(a_container(), activeDeadlineSeconds=0)).has_deadline
    assert read_scopes(a_pod(a_container(), priorityClassName="a")).priority_class == "a"
    for name in ("cpu", "memory"):
        assert not read_scopes(a_pod(a_container({name: "1"}))).is_best_effort
        assert not read_scopes(a_pod(a_container(None, {name: "1"}))).is_best_effort
        assert not read_scopes(a_pod(a_container(), initContainers=[a_container({name: "1"})])).is_best_effort
        assert not read_scopes(a_pod(a_container(), resources={"requests": {name: "1"}})).is_best_effort
        assert read_scopes(a_pod(a_container({name: "0"}))).is_best_effort
    assert read_scopes(a_pod(a_container({"ephemeral-storage": "1"}))).is_best_effort
    assert not read_scopes({**a_pod(a_container()), "status": {"qosClass": "Burstable"}}).is_best_effort


@pytest.mark.parametrize("side", ["podAffinity", "podAntiAffinity"])
def test_a_term_about_other_namespaces_is_found_wherever_it_stands(side: str) -> None:
    def crosses(field: str, term: Document) -> bool:
        return read_scopes(a_pod(affinity={side: {field: [{}, term]}})).is_cross_namespace

    for term, is_crossing in (
        ({"namespaces": ["a"]}, True),
        ({"namespaceSelector": {}}, True),
        ({"namespaces": []}, False),
    ):
        assert crosses(REQUIRED, term) is is_crossing
        assert crosses(PREFERRED, {"weight": 1, "podAffinityTerm": term}) is is_crossing


# Judging -----------------------------------------------------------------------------------------------------------


def test_a_quota_is_charged_up_to_its_limit() -> None:
    quota = a_quota({"pods": "2", "requests.cpu": "2"}, {"pods": "1", "requests.cpu": "1"})
    refusals, charged = judge("pods", [quota], a_pod(a_container({"cpu": "1"})))
    assert (list(refusals), [entry["status"]["used"] for entry in charged]) == (
        [],
        [{"pods": "2", "requests.cpu": "2"}],
    )
    refusals, charged = judge("pods", [quota], a_pod(a_container({"cpu": "1001m"})))
    wanted = "exceeded quota: q, requested: requests.cpu=1001m, used: requests.cpu=1, limited: requests.cpu=2"
    assert (list(refusals), list(charged)) == ([wanted], [])


def test_a_quota_that_does_not_count_an_object_lets_it_pass() -> None:
    for quota in (a_quota({"services": "0"}), a_quota({}), a_quota({"pods": "0"}, scopes=["Terminating"])):
        assert judge("pods", [quota], a_pod(a_container())) == ((), ())
    assert judge("configmaps", [a_quota({"configmaps": "0"}, scopes=["Terminating"])], {}) == ((), ())


def test_a_quota_whose_use_is_not_known_refuses() -> None:
    refusals, _ = judge("pods", [a_quota({"pods": "5", "services": "1"}, {})], a_pod(a_container()))
    assert list(refusals) == ["status unknown for quota: q, resources: pods"]
    refusals, _ = judge("pods", [a_quota({"cpu": "5"}, {})], a_pod(a_container()))
    assert list(refusals) == ["failed quota: q: must specify cpu for: main"]


def test_of_a_change_only_what_grows_is_charged() -> None:
    quota = a_quota({"requests.storage": "10Gi"}, {"requests.storage": "8Gi"})

    def claim(size: str) -> Document:
        return {"spec": {"resources": {"requests": {"storage": size}}}}

    def used(before: str, after: str) -> list[str]:
        verdict = judge("persistentvolumeclaims", [quota], claim(after), claim(before))
        return [*verdict.refusals, *(entry["status"]["used"]["requests.storage"] for entry in verdict.charged)]

    assert (used("3Gi", "5Gi"), used("3Gi", "3Gi"), used("3Gi", "1Gi")) == (["10Gi"], [], [])
    assert used("3Gi", "6Gi") == [
        "exceeded quota: q, requested: requests.storage=3Gi, used: requests.storage=8Gi, limited: requests.storage=10Gi"
    ]


def test_a_pod_that_comes_into_a_scope_is_charged_as_a_whole() -> None:
    quota = a_quota({"pods": "1"}, scopes=["Terminating"])
    before, after = a_pod(a_container()), a_pod(a_container(), activeDeadlineSeconds=5)
    assert [entry["status"]["used"] for entry in judge("pods", [quota], after, before).charged] == [{"pods": "1"}]
    assert judge("pods", [quota], after, after).charged == []


def test_a_selector_of_scopes_counts_like_scopes() -> None:
    expression = {"scopeName": "PriorityClass", "operator": "In", "values": ["a"]}
    quota = a_quota({"pods": "0"}, scopeSelector={"matchExpressions": [expression]})
    assert judge("pods", [quota], a_pod(a_container())) == ((), ())
    assert len(judge("pods", [quota], a_pod(a_container(), priorityClassName="a")).refusals) == 1
    both = a_quota({"pods": "0"}, scopes=["Terminating"], scopeSelector={"matchExpressions": [expression]})
    assert judge("pods", [both], a_pod(a_container(), priorityClassName="a")) == ((), ())


# Limit ranges ------------------------------------------------------------------------------------------------------


def a_range(type_: str = "Container", **fields: Any) -> Document:
    return {"metadata": {"name": "l"}, "spec": {"limits": [{"type": type_, **fields}]}}


def refusals_of(limit_range: Document, requests: Document | None = None, limits: Document | None = None) -> list[str]:
    return list(find_pod_refusals(a_pod(a_container(requests, limits)), [limit_range]))


def test_bounds_of_a_range_are_allowed_themselves() -> None:
    both = a_range(min={"cpu": "1"}, max={"cpu": "2"})
    assert refusals_of(both, {"cpu": "1"}, {"cpu": "2"}) == refusals_of(both, {"cpu": "2"}, {"cpu": "2"}) == []
    least, most = a_range(min={"cpu": "1"}), a_range(max={"cpu": "2"})
    assert refusals_of(least, {"cpu": "999m"}) == ["minimum cpu usage per Container is 1, but request is 999m"]
    assert refusals_of(least, {"cpu": "1"}, {"cpu": "999m"}) == [
        "minimum cpu usage per Container is 1, but limit is 999m"
    ]
    assert refusals_of(most, {"cpu": "1"}, {"cpu": "2001m"}) == [
        "maximum cpu usage per Container is 2, but limit is 2001m"
    ]
    assert refusals_of(most, {"cpu": "3"}, {"cpu": "2"}) == ["maximum cpu usage per Container is 2, but request is 3"]
    assert refusals_of(most, None, {"cpu": "2"}) == []


def test_a_ratio_needs_a_request_and_a_limit() -> None:
    ratio, bound = a_range(maxLimitRequestRatio={"cpu": "2"}), "cpu max limit to request ratio per Container is 2"
    assert refusals_of(ratio, {"cpu": "1"}, {"cpu": "2"}) == []
    assert refusals_of(ratio, {"cpu": "1"}, {"cpu": "2100m"}) == [f"{bound}, but provided ratio is 2.100000"]
    assert refusals_of(ratio, None, {"cpu": "2"}) == [f"{bound}, but no request is specified or request is 0"]
    assert refusals_of(ratio, {"cpu": "1"}) == [f"{bound}, but no limit is specified or limit is 0"]


def test_amounts_whose_thousandths_do_not_fit_into_64_bits_are_compared_in_units() -> None:
    huge = a_range(max={"memory": "7Ei"}, min={"memory": "1"})
    assert refusals_of(huge, {"memory": "6Ei"}, {"memory": "7Ei"}) == []
    low = a_range(max={"memory": "6Ei"})
    assert refusals_of(low, None, {"memory": "7Ei"}) == ["maximum memory usage per Container is 6Ei, but limit is 7Ei"]


def test_what_two_containers_do_alike_is_said_once_and_init_containers_are_looked_at() -> None:
    bound = "maximum cpu usage per Container is 1.  No limit is specified"
    pod = a_pod(a_container(), a_container(), initContainers=[a_container()])
    assert list(find_pod_refusals(pod, [a_range(max={"cpu": "1"})])) == [bound]
    beside = a_pod(a_container(None, {"cpu": "1"}), initContainers=[a_container()])
    assert list(find_pod_refusals(beside, [a_range(max={"cpu": "1"})])) == [bound]
    assert list(find_pod_refusals(pod, [a_range("PersistentVolumeClaim", max={"cpu": "1"})])) == []


def test_a_claim_stays_within_the_range_of_claims() -> None:
    def refusals(size: str | None, **fields: Any) -> list[str]:
        claim = {"spec": {"resources": {"requests": {"storage": size} if size else {}}}}
        return list(find_claim_refusals(claim, [a_range("PersistentVolumeClaim", **fields)]))

    name = "storage usage per PersistentVolumeClaim"
    bounds: Document = {"min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}}
    assert refusals("1Gi", **bounds) == refusals("2Gi", **bounds) == []
    assert refusals("1Mi", **bounds) == [f"minimum {name} is 1Gi, but request is 1Mi"]
    assert refusals(None, max={"storage": "2Gi"}) == [f"maximum {name} is 2Gi.  No request is specified"]
    claim = {"spec": {"resources": {"requests": {"storage": "3Gi"}}}}
    assert list(find_claim_refusals(claim, [a_range("Container", max={"storage": "2Gi"})])) == []


def test_init_containers_get_defaults_too_and_what_is_there_stays() -> None:
    pod = a_pod(a_container({"cpu": "1"}), initContainers=[{"name": "first"}])
    pod["metadata"]["annotations"] = {"mine": "x"}
    filled, annotation = set_defaults(pod, [a_range(defaultRequest={"cpu": "2"}, default={"memory": "1Gi"})])
    assert filled["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}
    resources = {"requests": {"cpu": "2"}, "limits": {"memory": "1Gi"}}
    assert filled["spec"]["initContainers"][0]["resources"] == resources
    assert annotation == (
        "LimitRanger plugin set: memory limit for container main; cpu request for init container first; "
        "memory limit for init container first"
    )
    assert filled["metadata"]["annotations"] == {"mine": "x", "kubernetes.io/limit-ranger": annotation}
    assert set_defaults(pod, [a_range("Pod", default={"memory": "1Gi"})]) == (pod, "")
