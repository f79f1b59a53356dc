"""Claims bound to volumes with node affinity."""

import pytest

from rules.samples import Manifest, a_cluster, a_node, a_pod, expression, zone
from wukong.api.core import Pod
from wukong.api.profile import default_profile
from wukong.rules import decide
from wukong.rules.cluster import Cluster
from wukong.rules.volume_binding import NODE_CONFLICT as REASON
from wukong.rules.volume_binding import reject

ZONE = "topology.kubernetes.io/zone"
IN_A: Manifest = {"nodeSelectorTerms": [{"matchExpressions": [expression(ZONE, "In", "a")]}]}
NODES = [a_node("a", labels=zone("a")), a_node("b", labels=zone("b"))]


def claiming(name: str = "data", namespace: str = "default") -> Pod:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
    return a_pod(namespace=namespace, volumes=volumes)


def cluster_with(volume_name: str = "pv", required: Manifest | None = IN_A) -> Cluster:
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"}}
    affinity = {"nodeAffinity": {"required": required}} if required is not None else {}
    volume = {"kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": affinity}
    bound = {"spec": {"volumeName": volume_name}, "status": {"phase": "Bound"}}
    return a_cluster(*NODES, others=[{**claim, **bound}, volume])


def rejects(cluster: Cluster, pod: Pod) -> list[str]:
    return [name for name, info in cluster.nodes.items() if reject(cluster, pod, info.node)]


def test_a_bound_claim_ties_the_pod_to_the_nodes_of_its_volume() -> None:
    cluster = cluster_with()
    assert reject(cluster, claiming(), cluster.nodes["b"].node) == ((REASON,), True)
    assert reject(cluster, claiming(), cluster.nodes["a"].node) is None


@pytest.mark.parametrize(
    ("cluster", "pod", "problem"),
    [
        (cluster_with(""), claiming(), "pod has unbound immediate PersistentVolumeClaims"),
        (cluster_with("gone"), claiming(), 'persistentvolume "gone" not found'),
        (cluster_with(), claiming("unknown"), 'persistentvolumeclaim "unknown" not found'),
        (cluster_with(), claiming(namespace="other"), 'persistentvolumeclaim "data" not found'),
    ],
)
def test_a_pod_without_its_volume_goes_nowhere_and_says_why(cluster: Cluster, pod: Pod, problem: str) -> None:
    decision = decide(cluster, pod, default_profile())
    assert decision.feasible == []
    assert decision.message == f"0/2 nodes are available: {problem}. not found"


def test_a_volume_without_affinity_ties_nobody_and_one_without_terms_goes_nowhere() -> None:
    assert rejects(cluster_with(required=None), claiming()) == []
    assert rejects(cluster_with(required={"nodeSelectorTerms": []}), claiming()) == ["a", "b"]


def test_fields_in_the_affinity_of_a_volume_are_not_looked_at() -> None:
    fields = {"nodeSelectorTerms": [{"matchFields": [expression("metadata.name", "In", "a")]}]}
    assert rejects(cluster_with(required=fields), claiming()) == []


def test_the_reason_is_in_the_message() -> None:
    pod = claiming()
    pod.spec.node_selector = {ZONE: "b"}
    decision = decide(cluster_with(), pod, default_profile())
    assert {name: verdict.plugin for name, verdict in decision.verdicts.items()} == {
        "a": "NodeAffinity",
        "b": "VolumeBinding",
    }
    assert decision.message is not None
    assert REASON in decision.message
