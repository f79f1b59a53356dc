"""NodeResourcesFit: room on a node, and the three scoring strategies."""

import pytest

from rules.samples import a_cluster, a_container, a_node, a_pod
from wukong.api.core import Node, Pod
from wukong.api.profile import FitArguments, ShapePoint, Strategy, WeightedResource
from wukong.rules.cluster import NodeInfo
from wukong.rules.fit import reject, score

GPU = "nvidia.com/gpu"
PLAIN = FitArguments()
SHAPE = (ShapePoint(0, 0), ShapePoint(70, 10), ShapePoint(100, 3))


def with_pods(node: Node, *pods: Pod) -> NodeInfo:
    return a_cluster(node, pods={node.metadata.name: list(pods)}).nodes[node.metadata.name]


def test_a_pod_that_fits_exactly_is_accepted() -> None:
    assert reject(a_pod(cpu="3"), with_pods(a_node(cpu="4"), a_pod("old", cpu="1")), PLAIN) is None


def test_every_short_resource_is_named_in_a_fixed_order() -> None:
    asked = {GPU: "1", "example.com/fpga": "1", "memory": "9Gi", "ephemeral-storage": "1", "cpu": "4"}
    info = with_pods(a_node(pods="1", memory="16Gi"), a_pod("old", cpu="1", memory="8Gi"))
    rejection = reject(a_pod(containers=[a_container(requests=asked)]), info, PLAIN)
    assert rejection is not None
    assert rejection.reasons == (
        "Too many pods",
        "Insufficient cpu",
        "Insufficient memory",
        "Insufficient ephemeral-storage",
        "Insufficient example.com/fpga",
        "Insufficient nvidia.com/gpu",
    )


@pytest.mark.parametrize(("cpu", "unresolvable"), [("4", False), ("4001m", True)])
def test_a_node_too_small_even_when_empty_is_unresolvable(cpu: str, unresolvable: bool) -> None:
    rejection = reject(a_pod(cpu=cpu), with_pods(a_node(cpu="4"), a_pod("old", cpu="1")), PLAIN)
    assert rejection == (("Insufficient cpu",), unresolvable)


def test_too_many_pods_can_be_resolved_by_eviction() -> None:
    assert reject(a_pod(), with_pods(a_node(pods="0")), PLAIN) == (("Too many pods",), False)


def test_a_pod_without_requests_fits_an_overfull_node() -> None:
    assert reject(a_pod(), with_pods(a_node(cpu="1"), a_pod("old", cpu="2")), PLAIN) is None


def test_a_request_of_zero_is_not_compared() -> None:
    info = with_pods(a_node(cpu="1"), a_pod("old", cpu="2"))
    assert reject(a_pod(containers=[a_container(requests={"cpu": "0", GPU: "0"})]), info, PLAIN) is None


def test_terminating_pods_still_hold_their_resources() -> None:
    info = with_pods(a_node(cpu="4"), a_pod("old", cpu="2", deleted=True))
    assert reject(a_pod(cpu="3"), info, PLAIN) is not None


@pytest.mark.parametrize(
    "arguments", [FitArguments(ignored_resources=(GPU,)), FitArguments(ignored_resource_groups=("nvidia.com",))]
)
def test_extended_resources_can_be_ignored(arguments: FitArguments) -> None:
    pod = a_pod(containers=[a_container(requests={GPU: "1"})])
    assert reject(pod, with_pods(a_node()), PLAIN) is not None
    assert reject(pod, with_pods(a_node()), arguments) is None


def test_only_extended_resources_can_be_ignored() -> None:
    arguments = FitArguments(ignored_resources=("cpu",))
    assert reject(a_pod(cpu="9"), with_pods(a_node(cpu="4")), arguments) is not None


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("LeastAllocated", (50 + 75) // 2),
        ("MostAllocated", (50 + 25) // 2),
        ("RequestedToCapacityRatio", (71 + 35) // 2),
    ],
)
def test_the_three_strategies(strategy: Strategy, expected: int) -> None:
    arguments = FitArguments(strategy=strategy, shape=SHAPE)
    info = with_pods(a_node(cpu="4", memory="8Gi"), a_pod("old", cpu="1", memory="1Gi"))
    assert score(a_pod(cpu="1", memory="1Gi"), info, arguments) == expected


@pytest.mark.parametrize(
    ("used", "expected"),
    [("1", 14), ("5", 71), ("7", 100), ("8", 77), ("8500m", 65), ("9", 54), ("10", 30), ("20", 30)],
)
def test_a_shape_is_read_in_whole_numbers_cut_towards_the_earlier_point(used: str, expected: int) -> None:
    arguments = FitArguments("RequestedToCapacityRatio", (WeightedResource("cpu"),), SHAPE)
    assert score(a_pod(cpu=used), with_pods(a_node(cpu="10")), arguments) == expected


def test_with_a_shape_resources_that_score_zero_are_left_out_of_the_mean() -> None:
    arguments = FitArguments("RequestedToCapacityRatio", shape=(ShapePoint(0, 0), ShapePoint(100, 10)))
    info = with_pods(a_node(cpu="4", memory="8Gi"))
    assert score(a_pod(cpu="2", memory="0"), info, arguments) == 50


def test_weights_count() -> None:
    arguments = FitArguments("MostAllocated", (WeightedResource("cpu", 3), WeightedResource("memory", 1)))
    assert score(a_pod(cpu="2", memory="0"), with_pods(a_node(cpu="4")), arguments) == 50 * 3 // 4


def test_containers_without_requests_are_taken_to_use_defaults_on_both_sides() -> None:
    info = with_pods(a_node(cpu="1", memory="1000Mi"), a_pod("old"))
    assert score(a_pod(), info, PLAIN) == (80 + 60) // 2


def test_an_overfull_resource_scores_zero_at_least_and_full_at_most_allocated() -> None:
    info = with_pods(a_node(cpu="1", memory="1000Mi"), a_pod("old", cpu="2", memory="0"))
    cpu_only = (WeightedResource("cpu"),)
    assert score(a_pod(), info, FitArguments(resources=cpu_only)) == 0
    assert score(a_pod(), info, FitArguments("MostAllocated", cpu_only)) == 100


def test_the_number_of_pods_is_never_scored() -> None:
    arguments = FitArguments(resources=(WeightedResource("cpu"), WeightedResource("pods")))
    assert score(a_pod(cpu="2"), with_pods(a_node(cpu="4", pods="10")), arguments) == 50


def test_scalar_resources_count_only_if_the_pod_asks_and_the_node_has_them() -> None:
    arguments = FitArguments(resources=(WeightedResource("cpu"), WeightedResource(GPU)))
    info = with_pods(a_node(cpu="4", more={GPU: "4"}))
    assert score(a_pod(cpu="2"), info, arguments) == 50
    with_gpu = a_pod(containers=[a_container(requests={"cpu": "2", GPU: "1"})])
    assert score(with_gpu, info, arguments) == (50 + 75) // 2
    assert score(with_gpu, with_pods(a_node(cpu="4")), arguments) == 50
