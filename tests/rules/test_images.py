"""ImageLocality."""

import pytest

from rules.samples import a_cluster, a_container, a_node, a_pod
from wukong.api.versions import VERSIONS, Version
from wukong.rules.cluster import Cluster
from wukong.rules.images import full_name_of, score

MIB = 1024 * 1024
OLD, MIDDLE, NEW = VERSIONS["1.35"], VERSIONS["1.36"], VERSIONS["1.37"]


def with_image(size: int, *, others: int = 0) -> Cluster:
    return a_cluster(a_node("n1", images={"app:latest": size}), *(a_node(f"o{index}") for index in range(others)))


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("app", "app:latest"),
        ("app:v1", "app:v1"),
        ("host:5000/app", "host:5000/app:latest"),
        ("host:5000/app:v1", "host:5000/app:v1"),
        ("app@sha256:abc", "app@sha256:abc"),
    ],
)
def test_an_image_without_a_tag_means_latest(image: str, expected: str) -> None:
    assert full_name_of(image) == expected


@pytest.mark.parametrize(
    ("size", "expected"), [(0, 0), (23 * MIB, 0), (512 * MIB, 50), (1000 * MIB, 100), (5000 * MIB, 100)]
)
def test_the_score_rises_from_23_to_1000_mib(size: int, expected: int) -> None:
    cluster = with_image(size)
    assert score(cluster, a_pod(), cluster.nodes["n1"].node, OLD) == expected


def test_an_image_counts_by_the_share_of_all_nodes_that_have_it() -> None:
    cluster = with_image(1000 * MIB, others=1)
    assert score(cluster, a_pod(), cluster.nodes["n1"].node, OLD) == 100 * (500 - 23) // (1000 - 23)
    assert score(cluster, a_pod(), cluster.nodes["o0"].node, OLD) == 0


def test_init_containers_count_as_images_too() -> None:
    cluster = with_image(1000 * MIB)
    pod = a_pod(initContainers=[{"name": "init", "image": "other"}])
    assert score(cluster, pod, cluster.nodes["n1"].node, OLD) == 100 * (1000 - 23) // (2000 - 23)


@pytest.mark.parametrize(
    ("version", "expected"),
    [(OLD, 0), (MIDDLE, 100 * (500 - 23) // (1000 - 23)), (NEW, 100 * (500 - 23) // (2000 - 23))],
)
def test_image_volumes_count_since_1_36_and_divide_since_1_37(version: Version, expected: int) -> None:
    cluster = a_cluster(a_node("n1", images={"data:v1": 500 * MIB}))
    pod = a_pod(volumes=[{"name": "data", "image": {"reference": "data:v1"}}])
    assert score(cluster, pod, cluster.nodes["n1"].node, version) == expected


def test_the_first_node_that_reports_an_image_settles_its_size() -> None:
    cluster = a_cluster(a_node("n1", images={"app:latest": 1000 * MIB}), a_node("n2", images={"app:latest": 1 * MIB}))
    pod = a_pod(containers=[a_container()])
    assert score(cluster, pod, cluster.nodes["n2"].node, OLD) == 100
