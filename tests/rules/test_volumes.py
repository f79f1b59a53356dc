"""Claims bound to volumes with node affinity."""

import pytest

from rules.samples import Manifest, a_cluster, a_node, a_pod, expression, zone
from wukong.api.core import Pod
from wukong.api.profile import default_profile
from wukong.rules import decide
from wukong.rules.cluster import Cluster
from wukong.rules.volumes import REASON, reject

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
    return a_cluster(*NODES, others=[{**claim, "spec": {"volumeName": volume_name}}, volume])


def rejects(cluster: Cluster, pod: Pod) -> list[str]:
    return [name for name, info in cluster.nodes.items() if reject(cluster, pod, info.node)]


def test_a_bound_claim_ties_the_pod_to_the_nodes_of_its_volume() -> None:
    cluster = cluster_with()
    assert reject(cluster, claiming(), cluster.nodes["b"].node) == ((REASON,), True)
    assert reject(cluster, claiming(), cluster.nodes["a"].node) is None


@pytest.mark.parametrize("volume_name", ["", "gone"])
def test_unbound_claims_and_unknown_volumes_tie_nobody(volume_name: str) -> None:
    assert rejects(cluster_with(volume_name), claiming()) == []


def test_other_claims_and_other_namespaces_tie_nobody() -> None:
    assert rejects(cluster_with(), claiming("unknown")) == []
    assert rejects(cluster_with(), claiming(namespace="other")) == []
    assert rejects(cluster_with(), a_pod(volumes=[{"name": "tmp"}])) == []


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
