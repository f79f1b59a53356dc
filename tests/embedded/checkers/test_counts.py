"""At rest statuses count what is there, nothing is stuck, and no pod is lost.

A DaemonSet's status need not count pods whose node came again: nobody counts them anew.
"""

from __future__ import annotations

import pytest

from embedded.checkers.checked_cluster import CheckedCluster, PodController
from wukong.actions import DONE, Bind, Outcome
from wukong.api.core import Pod
from wukong.api.kinds import DAEMON_SETS, DEPLOYMENTS, NODES, PODS, REPLICA_SETS, STATEFUL_SETS
from wukong.api.resources import Key, Resource
from wukong.embedded.checkers.pods import target_node_of
from wukong.ports import Document, PatchBody

LABELS = {"app": "agent"}
AGENT = Key("default", "agent")


def bind_to_target(key: Key, pod: Pod, now: float) -> Outcome:
    return DONE if pod.spec.node_name else Outcome((Bind(key, target_node_of(pod), pod.metadata.uid),))


def a_cluster(*controllers: PodController) -> CheckedCluster:
    """Two nodes and a DaemonSet."""
    cluster = CheckedCluster(PodController("scheduler", bind_to_target), *controllers)
    for name in ("n0", "n1"):
        cluster.node(name)
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "main", "image": "a"}]}}
    spec = {"selector": {"matchLabels": LABELS}, "template": template}
    cluster.server.create(DAEMON_SETS, {"metadata": {"name": AGENT.name}, "spec": spec}, AGENT.namespace)
    cluster.world.run(seconds=10.0)
    return cluster


def status_of(cluster: CheckedCluster) -> Document:
    status: Document = cluster.server.get(DAEMON_SETS, AGENT)["status"]
    return status


def test_a_node_that_came_again_while_its_daemon_stayed_need_not_be_counted() -> None:
    """tests/live/test_late_daemon_sets.py shows that kube-controller-manager leaves such a status as it is."""
    cluster = a_cluster()
    cluster.server.delete(NODES, Key("", "n1"))
    pod = next(pod for pod in cluster.server.list(PODS).items if pod["spec"]["nodeName"] == "n0")
    looked_at = PatchBody("merge", {"metadata": {"labels": {"looked": "at"}}})
    cluster.server.patch(PODS, Key("default", pod["metadata"]["name"]), looked_at)
    cluster.world.run(seconds=10.0)
    cluster.node("n1")
    assert cluster.findings() == []
    assert (status_of(cluster)["currentNumberScheduled"], len(cluster.server.list(PODS).items)) == (1, 2)


def test_daemons_that_nobody_counted_are_found() -> None:
    cluster = a_cluster(PodController("daemonset", lambda key, pod, now: DONE))
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "controller": True}
    owner["uid"] = cluster.server.get(DAEMON_SETS, AGENT)["metadata"]["uid"]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    meta = {"name": "agent-0", "labels": LABELS, "ownerReferences": [owner]}
    spec = {"containers": [{"name": "main", "image": "a"}], "affinity": {"nodeAffinity": required}}
    cluster.server.create(PODS, {"metadata": meta, "spec": spec}, "default")
    texts = [text.partition(" (at ")[0] for text in cluster.findings()]
    assert "daemonset default/agent: at rest its status.currentNumberScheduled is 0, but should be 1" in texts
    assert "daemonset default/agent: at rest its status.numberReady is 0, but should be 1" in texts


def a_workload(resource: Resource, silenced: str) -> CheckedCluster:
    """A workload `web` of two pods on a node, all ready; then the controller of this name does nothing more."""
    cluster = CheckedCluster(PodController("scheduler", bind_to_n0))
    cluster.node("n0")
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "main", "image": "a"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": template}
    cluster.server.create(resource, {"metadata": {"name": "web"}, "spec": spec}, "default")
    assert cluster.findings() == []
    controller = cluster.world.processes[0].dispatch.controllers[silenced]
    setattr(controller, "reconcile", lambda *_: DONE)  # noqa: B010
    return cluster


def bind_to_n0(key: Key, pod: Pod, now: float) -> Outcome:
    return DONE if pod.spec.node_name else Outcome((Bind(key, "n0", pod.metadata.uid),))


def texts_of(cluster: CheckedCluster) -> list[str]:
    return [text.partition(" (at ")[0] for text in cluster.findings()]


@pytest.mark.parametrize(
    ("resource", "field", "right", "wrong"),
    [
        (REPLICA_SETS, "replicas", 2, 1),
        (REPLICA_SETS, "readyReplicas", 2, 1),
        (REPLICA_SETS, "observedGeneration", 1, 0),
        (DEPLOYMENTS, "replicas", 2, 3),
        (DEPLOYMENTS, "readyReplicas", 2, 1),
        (DEPLOYMENTS, "observedGeneration", 1, 0),
        (STATEFUL_SETS, "readyReplicas", 2, 1),
        (STATEFUL_SETS, "observedGeneration", 1, 0),
    ],
)
def test_a_status_that_does_not_count_what_is_there_is_found(
    resource: Resource, field: str, right: int, wrong: int
) -> None:
    kind, web = resource.kind.lower(), Key("default", "web")
    cluster = a_workload(resource, kind)
    assert cluster.server.get(resource, web)["status"][field] == right
    cluster.server.patch(resource, web, PatchBody("merge", {"status": {field: wrong}}), "status")
    assert texts_of(cluster) == [f"{kind} default/web: at rest its status.{field} is {wrong}, but should be {right}"]


@pytest.mark.parametrize(("replicas", "is_found"), [(1, True), (2, False), (3, True)])
def test_a_replica_set_with_too_many_or_too_few_pods_is_found(replicas: int, is_found: bool) -> None:
    cluster = a_workload(REPLICA_SETS, "replicaset")
    cluster.server.patch(REPLICA_SETS, Key("default", "web"), PatchBody("merge", {"spec": {"replicas": replicas}}))
    expected = f"replicaset default/web: at rest it has 2 pods and should have {replicas}"
    assert (expected in texts_of(cluster)) is is_found


def test_a_pod_that_came_or_went_without_a_change_is_found() -> None:
    cluster = CheckedCluster()
    cluster.node("n0")
    cluster.pod("one", nodeName="n0")
    assert cluster.findings() == []
    cluster.checkers._pod_count.expected += 1
    assert texts_of(cluster) == ["pods: created less removed are 2, but 1 are there"]


def test_a_pod_on_a_node_that_is_gone_is_found() -> None:
    cluster = CheckedCluster(PodController("podgc", lambda *_: DONE))
    cluster.node("n0")
    cluster.pod("one", nodeName="n0")
    cluster.pod("waiting")
    assert cluster.findings() == []
    cluster.server.delete(NODES, Key("", "n0"))
    assert texts_of(cluster) == ["pod default/one: at rest it is on node n0, which is gone"]


@pytest.mark.parametrize(
    ("finalizers", "is_found"),
    [
        (["foregroundDeletion"], True),
        (["orphan"], True),
        (["example.com/mine"], False),
        (["orphan", "example.com/mine"], False),
    ],
)
def test_what_waits_only_for_kubernetes_own_finalizers_is_found(finalizers: list[str], is_found: bool) -> None:
    cluster = CheckedCluster(PodController("garbage", lambda *_: DONE))
    cluster.node("n0")
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "main", "image": "a"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": LABELS}, "template": template}
    body = {"metadata": {"name": "web", "finalizers": finalizers}, "spec": spec}
    cluster.server.create(REPLICA_SETS, body, "default")
    assert texts_of(cluster) == []
    cluster.server.delete(REPLICA_SETS, Key("default", "web"))
    expected = f"replicaset default/web: at rest it still waits for its finalizer {finalizers[0]}"
    assert (expected in texts_of(cluster)) is is_found


@pytest.mark.parametrize(("controller", "is_found"), [("replicaset", False), ("deployment", True)])
def test_missing_pods_are_excused_while_who_creates_them_keeps_failing(controller: str, is_found: bool) -> None:
    """Nobody else's failure about the same key is an excuse."""
    cluster, web = a_workload(REPLICA_SETS, "replicaset"), Key("default", "web")
    cluster.server.patch(REPLICA_SETS, web, PatchBody("merge", {"spec": {"replicas": 3}}))
    cluster.world.run()
    cluster.world.processes[0].state.attempts.record_failure(controller, web, "quota", cluster.world.clock.now())
    expected = "replicaset default/web: at rest it has 2 pods and should have 3"
    assert (expected in texts_of(cluster)) is is_found
