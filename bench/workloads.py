"""The clusters and pods the benchmarks place: made up, alike on every run, with and without pods already there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from wukong.api.core import (
    Affinity,
    Container,
    Node,
    NodeStatus,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    ResourceRequirements,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from wukong.api.meta import LabelSelector, ObjectMeta
from wukong.api.objects import Objects

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
TEMPLATES = 50  # different pods in the mixed workload
BACKGROUND = 200  # different workloads among the pods already placed


def make_nodes(count: int) -> list[Node]:
    """Three zones, two sizes, a third of them spot."""
    return [_node(f"node-{number:05d}", number) for number in range(count)]


def _node(name: str, number: int) -> Node:
    labels = {
        HOSTNAME: name,
        ZONE: f"zone-{number % 3}",
        "karpenter.sh/capacity-type": "spot" if number % 3 == 0 else "on-demand",
        "node.kubernetes.io/instance-type": "m5.8xlarge" if number % 2 else "m5.4xlarge",
    }
    size = {"cpu": "32", "memory": "128Gi"} if number % 2 else {"cpu": "16", "memory": "64Gi"}
    status = NodeStatus(allocatable={**size, "pods": "250", "ephemeral-storage": "200Gi"})
    return Node(kind="Node", metadata=ObjectMeta(name=name, labels=labels), status=status)


def make_pod(
    app: str = "web",
    *,
    cpu: str = "100m",
    affinity: Affinity | None = None,
    spread: list[TopologySpreadConstraint] | None = None,
    name: str = "pod",
    node: str = "",
) -> Pod:
    requests = ResourceRequirements(requests={"cpu": cpu, "memory": "128Mi"})
    return Pod(
        kind="Pod",
        metadata=ObjectMeta(name=name, namespace="default", labels={"app": app}),
        spec=PodSpec(
            node_name=node,
            containers=[Container(name="main", image=f"registry.example.com/{app}:1", resources=requests)],
            affinity=affinity,
            topology_spread_constraints=spread or [],
            priority=0,
        ),
    )


def make_objects(nodes: int, pods_per_node: int) -> Objects:
    """A cluster with so many pods already on every node, of 200 workloads; one in ten keeps them on different hosts."""
    objects = Objects(nodes=make_nodes(nodes))
    for number in range(nodes * pods_per_node):
        app = f"run-{number % BACKGROUND}"
        affinity = apart(app) if number % BACKGROUND % 10 == 0 else None
        node = f"node-{number % nodes:05d}"
        objects.pods.append(make_pod(app, cpu="50m", affinity=affinity, name=f"{app}-{number}", node=node))
    return objects


def apart(app: str, key: str = HOSTNAME) -> Affinity:
    return Affinity(pod_anti_affinity=PodAffinity(required=[_term(app, key)]))


def near(app: str, key: str = ZONE, weight: int = 50) -> Affinity:
    return Affinity(
        pod_affinity=PodAffinity(preferred=[WeightedPodAffinityTerm(weight=weight, pod_affinity_term=_term(app, key))])
    )


def _term(app: str, key: str) -> PodAffinityTerm:
    return PodAffinityTerm(topology_key=key, label_selector=LabelSelector(match_labels={"app": app}))


def evenly(app: str, key: str, *, soft: bool = False) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(
        max_skew=1,
        topology_key=key,
        when_unsatisfiable="ScheduleAnyway" if soft else "DoNotSchedule",
        label_selector=LabelSelector(match_labels={"app": app}),
    )


def _mixed() -> list[Pod]:
    """50 different pods with rules among them: plain, apart from their kind, near others, away from them, spread."""
    pods = []
    for number in range(TEMPLATES):
        app, other = f"app-{number}", f"app-{(number + 1) % TEMPLATES}"
        affinity: Affinity | None = None
        spread: list[TopologySpreadConstraint] = []
        if number % 5 == 1:
            affinity = apart(app)
        elif number % 5 == 2:
            affinity = near(other)
        elif number % 5 == 3:
            spread = [evenly(app, ZONE)]
        elif number % 5 == 4:
            affinity = Affinity(pod_anti_affinity=near(other, weight=10).pod_affinity)
        pods.append(make_pod(app, cpu=f"{50 + number}m", affinity=affinity, spread=spread, name=app))
    return pods


# Workload → the pods to place in turn; a single one means look-alikes, placed as a batch.
WORKLOADS: dict[str, Callable[[], list[Pod]]] = {
    "plain": lambda: [make_pod()],
    "hostname anti-affinity": lambda: [make_pod(affinity=apart("web"))],
    "preferred zone affinity": lambda: [make_pod(affinity=near("web"))],
    "topology spread": lambda: [make_pod(spread=[evenly("web", ZONE), evenly("web", HOSTNAME, soft=True)])],
    "50 mixed templates": _mixed,
}


def in_turn(pods: list[Pod], count: int) -> Iterator[tuple[str, Pod]]:
    """`count` pods with keys, taking the templates one after the other."""
    for number in range(count):
        yield f"bench/{number}", pods[number % len(pods)]
