"""NodeResourcesBalancedAllocation, before and after 1.36."""

import pytest
from msgspec.structs import replace

from rules.samples import a_cluster, a_container, a_node, a_pod
from wukong.api.core import Pod
from wukong.api.profile import WeightedResource, default_profile
from wukong.api.versions import VERSIONS
from wukong.rules.balance import is_skipped, score
from wukong.rules.cluster import NodeInfo

OLD, NEW = default_profile(VERSIONS["1.35"]), default_profile(VERSIONS["1.37"])


def on_node(*pods: Pod) -> NodeInfo:
    return a_cluster(a_node(cpu="4", memory="8Gi"), pods={"n1": list(pods)}).nodes["n1"]


@pytest.mark.parametrize(
    ("cpu", "memory", "expected"),
    [("1", "2Gi", 100), ("4", None, 50), ("2", None, 75), ("1", "4Gi", 87), ("9", "8Gi", 100), ("1m", None, 99)],
)
def test_half_the_difference_of_two_fractions_is_missing(cpu: str, memory: str | None, expected: int) -> None:
    assert score(a_pod(cpu=cpu, memory=memory), on_node(), OLD) == expected


def test_defaults_for_missing_requests_are_not_assumed() -> None:
    assert score(a_pod(cpu="2", memory="4Gi"), on_node(a_pod("old")), OLD) == 100


def test_a_pod_without_cpu_and_memory_is_skipped() -> None:
    gpu_only = a_pod(containers=[a_container(requests={"nvidia.com/gpu": "1"})])
    assert is_skipped(a_pod(), OLD)
    assert is_skipped(gpu_only, OLD)
    assert not is_skipped(a_pod(memory="1"), OLD)
    assert not is_skipped(a_pod(resources={"requests": {"cpu": "1"}}), OLD)


def test_requests_of_the_pod_as_a_whole_count() -> None:
    assert score(a_pod(resources={"requests": {"cpu": "2", "memory": "4Gi"}}), on_node(), OLD) == 100


def test_three_resources_use_the_standard_deviation() -> None:
    three = tuple(WeightedResource(name) for name in ("cpu", "memory", "ephemeral-storage"))
    node = a_node(cpu="4", memory="8Gi", more={"ephemeral-storage": "10Gi"})
    info = a_cluster(node).nodes["n1"]
    assert score(a_pod(cpu="4"), info, replace(OLD, balanced_resources=three)) == 52  # σ of 1, 0, 0 is 0.471


def test_a_single_resource_is_always_balanced() -> None:
    one = replace(OLD, balanced_resources=(WeightedResource("cpu"),))
    assert score(a_pod(cpu="3"), on_node(), one) == 100


@pytest.mark.parametrize(
    ("placed", "cpu", "memory", "expected"),
    [
        (a_pod("old", cpu="2", memory="4Gi"), "1", "2Gi", 75),  # stays even: 100 → 100
        (a_pod("old", cpu="4"), "1m", "8Gi", 100),  # mended: 50 → 100
        (a_pod("old"), "4", None, 50),  # spoiled: 100 → 50
        (a_pod("old"), "1", "1Gi", 71),  # 100 → 93, (50 - 7) // 2 is 21
    ],
)
def test_since_1_36_the_change_a_pod_makes_is_scored(placed: Pod, cpu: str, memory: str | None, expected: int) -> None:
    assert score(a_pod(cpu=cpu, memory=memory), on_node(placed), NEW) == expected
