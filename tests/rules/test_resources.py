"""What pods ask for: sums, init containers, sidecars, the pod as a whole, resizes; exact, then rounded up once."""

import pytest

from rules.samples import Manifest, a_container, a_node, a_pod, a_sidecar
from wukong.api.core import Pod
from wukong.rules.resources import (
    allocatable_of,
    count_allowed_pods,
    filter_requests_of,
    fit_score_requests_of,
    is_scalar,
    placed_nonzero_requests_of,
    placed_requests_of,
)

MIB = 1024 * 1024


def cpu(amount: str) -> Manifest:
    return {"requests": {"cpu": amount}}


def cpu_of(pod: Pod) -> int:
    return filter_requests_of(pod)["cpu"]


def test_containers_add_up() -> None:
    assert cpu_of(a_pod(containers=[a_container(**cpu("1")), a_container(**cpu("500m"))])) == 1500


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [(["0.5m"], 1), (["0.5m", "0.5m"], 1), (["100u"] * 11, 2), (["1n"], 1), (["1.5"], 1500), (["2e3"], 2_000_000)],
)
def test_quantities_are_added_exactly_and_rounded_up_once(amounts: list[str], expected: int) -> None:
    assert cpu_of(a_pod(containers=[a_container(**cpu(amount)) for amount in amounts])) == expected


def test_memory_counts_in_bytes_rounded_up() -> None:
    containers = [a_container(requests={"memory": "0.4"}), a_container(requests={"memory": "1Ki"})]
    assert filter_requests_of(a_pod(containers=containers))["memory"] == 1025


def test_an_init_container_counts_as_maximum_not_as_sum() -> None:
    inits = [a_container(**cpu("3")), a_container(**cpu("2"))]
    assert cpu_of(a_pod(containers=[a_container(**cpu("1"))], initContainers=inits)) == 3000
    assert cpu_of(a_pod(containers=[a_container(**cpu("4"))], initContainers=inits)) == 4000


def test_sidecars_run_beside_the_containers_and_the_later_init_containers() -> None:
    before = [a_container("first", **cpu("3")), a_sidecar(**cpu("1"))]
    after = [a_sidecar(**cpu("1")), a_container("second", **cpu("3"))]
    containers = [a_container(**cpu("1"))]
    assert cpu_of(a_pod(containers=containers, initContainers=[a_sidecar(**cpu("1"))])) == 2000
    assert cpu_of(a_pod(containers=containers, initContainers=before)) == 3000
    assert cpu_of(a_pod(containers=containers, initContainers=after)) == 4000


def test_resources_peak_independently() -> None:
    pod = a_pod(cpu="1", memory="3Gi", initContainers=[a_container(requests={"cpu": "2", "memory": "1Gi"})])
    assert filter_requests_of(pod) == {"cpu": 2000, "memory": 3 * 1024 * MIB}


def test_overhead_comes_on_top_of_everything() -> None:
    pod = a_pod(overhead={"cpu": "250m"}, initContainers=[a_container(**cpu("2"))])
    assert cpu_of(pod) == 2250


def test_requests_of_the_pod_as_a_whole_replace_those_of_its_containers() -> None:
    pod = a_pod(cpu="1", memory="1Gi", resources={"requests": {"cpu": "3"}}, overhead={"cpu": "1"})
    assert filter_requests_of(pod) == {"cpu": 4000, "memory": 1024 * MIB}


def test_limits_of_the_pod_as_a_whole_are_no_requests() -> None:
    assert cpu_of(a_pod(cpu="1", resources={"limits": {"cpu": "3"}})) == 1000


def test_scoring_by_fit_forgets_the_requests_of_the_pod_as_a_whole() -> None:
    pod = a_pod(memory="1Gi", resources={"requests": {"cpu": "3", "memory": "4Gi"}})
    assert fit_score_requests_of(pod) == {"cpu": 100, "memory": 1024 * MIB}


def test_scoring_by_fit_assumes_defaults_per_container_also_for_init_containers() -> None:
    pod = a_pod(containers=[a_container(), a_container(**cpu("1"))], initContainers=[a_container(**cpu("0"))])
    assert fit_score_requests_of(pod) == {"cpu": 1100, "memory": 400 * MIB}


def test_a_request_of_zero_is_a_request() -> None:
    assert fit_score_requests_of(a_pod(cpu="0", memory="0")) == {"cpu": 0, "memory": 0}


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, {"cpu": 100, "memory": 200 * MIB}),
        ({"requests": {"cpu": "2"}}, {"cpu": 2000, "memory": 200 * MIB}),
        ({"requests": {"cpu": "2", "memory": "1Gi"}}, {"cpu": 2000, "memory": 1024 * MIB}),
        ({"limits": {"cpu": "2"}}, {"cpu": 100, "memory": 200 * MIB}),
    ],
)
def test_placed_pods_get_defaults_only_for_what_nobody_set(own: Manifest, expected: dict[str, int]) -> None:
    assert placed_nonzero_requests_of(a_pod(resources=own)) == expected


def test_a_container_without_cpu_gets_no_default_beside_one_that_has_some_if_the_pod_has_requests_of_its_own() -> None:
    containers = [a_container(), a_container(**cpu("1"))]
    with_own = a_pod(containers=containers, resources={"requests": {"memory": "1Gi"}})
    assert placed_nonzero_requests_of(with_own)["cpu"] == 1000
    assert placed_nonzero_requests_of(a_pod(containers=containers))["cpu"] == 1100


@pytest.mark.parametrize(
    ("spec", "actual", "allocated", "reason", "expected"),
    [
        ("1", "2", "1", "Deferred", 2000),
        ("3", "1", "2", "Deferred", 3000),
        ("1", "1", "2", "", 2000),
        ("3", "1", "2", "Infeasible", 2000),
    ],
)
def test_a_pod_being_resized_holds_the_largest_of_wish_allocation_and_reality(
    spec: str, actual: str, allocated: str, reason: str, expected: int
) -> None:
    status = {
        "containerStatuses": [
            {"name": "main", "resources": {"requests": {"cpu": actual}}, "allocatedResources": {"cpu": allocated}}
        ],
        "conditions": [{"type": "PodResizePending", "reason": reason}] if reason else [],
    }
    pod = a_pod(cpu=spec, status=status)
    assert placed_requests_of(pod)["cpu"] == expected
    assert filter_requests_of(pod)["cpu"] == int(spec) * 1000


def test_a_status_without_resources_changes_nothing() -> None:
    status = {"containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "9"}}]}
    assert placed_requests_of(a_pod(cpu="1", status=status))["cpu"] == 1000


def test_only_sidecars_among_the_init_containers_can_be_resized() -> None:
    grown = {"resources": {"requests": {"cpu": "5"}}}
    status = {"initContainerStatuses": [{"name": "once", **grown}, {"name": "proxy", **grown}]}
    inits = [a_container("once", **cpu("1")), a_sidecar("proxy", **cpu("1"))]
    assert placed_requests_of(a_pod(cpu="1", initContainers=inits, status=status))["cpu"] == 6000
    assert placed_requests_of(a_pod(cpu="1", initContainers=inits[:1], status=status))["cpu"] == 1000


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nvidia.com/gpu", True),
        ("hugepages-2Mi", True),
        ("kubernetes.io/batch", True),
        ("attachable-volumes-aws-ebs", True),
        ("cpu", False),
        ("pods", False),
        ("gpu", False),
        ("requests.nvidia.com/gpu", False),
        ("nvidia.com/g pu", False),
    ],
)
def test_scalar_resources(name: str, expected: bool) -> None:
    assert is_scalar(name) is expected


def test_what_nobody_counts_is_not_requested() -> None:
    assert filter_requests_of(a_pod(containers=[a_container(requests={"gpu": "1", "pods": "3"})])) == {}


def test_a_node_offers_its_allocatable_rounded_up() -> None:
    node = a_node(cpu="1500.5m", memory="1Ki", pods="3", more={"nvidia.com/gpu": "2"})
    assert allocatable_of(node) == {"cpu": 1501, "memory": 1024, "nvidia.com/gpu": 2}
    assert count_allowed_pods(node) == 3
