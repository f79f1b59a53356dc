"""At rest a DaemonSet's status counts its pods, but for those whose node came again: nobody counts them anew."""

from __future__ import annotations

from embedded.checkers.checked_cluster import CheckedCluster, PodController
from wukong.actions import DONE, Bind, Outcome
from wukong.api.core import Pod
from wukong.api.kinds import DAEMON_SETS, NODES, PODS
from wukong.api.resources import Key
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
