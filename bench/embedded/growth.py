"""What a change of one pod costs where thousands are counted together: by a budget, a DaemonSet or a StatefulSet.

Used by measure.py. A pod fails its readiness probe, and its kubelet finds it ready again: each time everybody who
counts it counts anew. That must cost the same however many pods there are.
"""

from __future__ import annotations

from collections.abc import Callable

from bench.embedded.clusters import ANNOTATIONS, Cluster, a_deployment
from wukong.actions import Patch
from wukong.api.core import Pod
from wukong.api.kinds import PODS
from wukong.api.resources import Key
from wukong.embedded.actors.pods import is_ready
from wukong.embedded.scenario.play import steps
from wukong.ports import Document, PatchBody

SIZES = {"budget": (250, 1_000, 4_000), "daemons": (250, 1_000, 2_000), "stateful": (100, 300, 1_000)}
CHANGES = 100
PODS_PER_NODE = 50


def build_cluster(kind: str, size: int) -> Cluster:
    """A cluster at rest with so many pods that are counted together."""
    cluster = Cluster(size if kind == "daemons" else max(4, 2 * size // PODS_PER_NODE))
    cluster.do(steps.apply_documents(MANIFESTS[kind](size), frozenset({"default"})))
    cluster.world.run()
    assert len(cluster.world.state.of(Pod)) == size
    return cluster


def change_pods(cluster: Cluster) -> None:
    """One pod after the other becomes unready and ready again."""
    keys = sorted(cluster.world.state.of(Pod))
    for number in range(CHANGES):
        key = keys[number * len(keys) // CHANGES]
        unready = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "ProbeFailed"}]}}
        cluster.do([Patch(PODS, key, PatchBody("strategic", unready, manager="bench"), "status")])
        cluster.world.run()
        assert _is_ready(cluster, key)  # otherwise something else was measured


def _is_ready(cluster: Cluster, key: Key) -> bool:
    pod = cluster.world.state.get(Pod, key)
    return pod is not None and is_ready(pod)


def _with_budget(size: int) -> list[Document]:
    spec = {"maxUnavailable": "10%", "selector": {"matchLabels": {"app": "web"}}}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}, "spec": spec}
    return [a_deployment("web", size, ANNOTATIONS["alike"]), budget]


def _a_daemon_set(_: int) -> list[Document]:
    document = a_deployment("web", 0, ANNOTATIONS["alike"])
    del document["spec"]["replicas"]
    return [{**document, "kind": "DaemonSet"}]


def _a_stateful_set(size: int) -> list[Document]:
    document = a_deployment("web", size, ANNOTATIONS["alike"])
    spec = {**document["spec"], "serviceName": "web", "podManagementPolicy": "Parallel"}
    return [{**document, "kind": "StatefulSet", "spec": spec}]


MANIFESTS: dict[str, Callable[[int], list[Document]]] = {
    "budget": _with_budget,
    "daemons": _a_daemon_set,
    "stateful": _a_stateful_set,
}
