"""Builders for tests: show only what matters, `a_pod(cpu="2", tolerates="spot")`; the rest gets a plain default."""

from __future__ import annotations

from collections.abc import Sequence

from wukong.api.core import (
    Affinity,
    Container,
    ContainerImage,
    ContainerPort,
    Node,
    NodeSpec,
    NodeStatus,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodStatus,
    Quantities,
    ResourceRequirements,
    Taint,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from wukong.api.kinds import NODE_USAGES
from wukong.api.meta import LabelSelector, ObjectMeta
from wukong.api.usage import NodeUsage
from wukong.state import State

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def a_node(
    name: str = "node-a",
    *,
    zone: str | None = None,
    cpu: str = "4",
    memory: str = "16Gi",
    pods: str = "110",
    labels: dict[str, str] | None = None,
    taints: Sequence[str] = (),
    unschedulable: bool = False,
    images: dict[str, int] | None = None,
    extra: Quantities | None = None,
) -> Node:
    """A node with a hostname label; taints are written `key=value:Effect`."""
    all_labels = {HOSTNAME: name, **({ZONE: zone} if zone is not None else {}), **(labels or {})}
    allocatable: Quantities = {"cpu": cpu, "memory": memory, "pods": pods, **(extra or {})}
    return Node(
        kind="Node",
        metadata=ObjectMeta(name=name, labels=all_labels),
        spec=NodeSpec(taints=[a_taint(text) for text in taints], unschedulable=unschedulable),
        status=NodeStatus(
            allocatable=allocatable,
            capacity=allocatable,
            images=[ContainerImage(names=[image], size_bytes=size) for image, size in (images or {}).items()],
        ),
    )


def a_taint(text: str) -> Taint:
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return Taint(key=key, value=value, effect=effect)


def a_pod(
    name: str = "web-1",
    *,
    namespace: str = "default",
    app: str | None = "web",
    cpu: str | None = "100m",
    memory: str | None = "128Mi",
    requests: Quantities | None = None,
    labels: dict[str, str] | None = None,
    node: str = "",
    priority: int = 0,
    tolerates: str = "",
    host_port: int = 0,
    affinity: Affinity | None = None,
    spread: Sequence[TopologySpreadConstraint] = (),
    node_selector: dict[str, str] | None = None,
    image: str = "registry.example.com/web:1",
    start: str | None = None,
    terminating: bool = False,
) -> Pod:
    """A pod of one container; `tolerates` is a taint key tolerated whatever its value and effect."""
    resource_requests: Quantities = {}
    if cpu is not None:
        resource_requests["cpu"] = cpu
    if memory is not None:
        resource_requests["memory"] = memory
    resource_requests.update(requests or {})
    own = {**({"app": app} if app is not None else {}), **(labels or {})}
    ports = [ContainerPort(container_port=host_port, host_port=host_port)] if host_port else []
    return Pod(
        kind="Pod",
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            labels=own,
            deletion_timestamp="2026-01-01T00:00:00Z" if terminating else None,
        ),
        spec=PodSpec(
            node_name=node,
            containers=[
                Container(
                    name="main", image=image, resources=ResourceRequirements(requests=resource_requests), ports=ports
                )
            ],
            priority=priority,
            tolerations=[Toleration(key=tolerates, operator="Exists")] if tolerates else [],
            affinity=affinity,
            topology_spread_constraints=list(spread),
            node_selector=node_selector or {},
        ),
        status=PodStatus(start_time=start),
    )


def a_usage(
    node: str,
    at: float | None = None,
    *,
    cpu: float | None = None,
    memory: float | None = None,
    storage: float | None = None,
) -> NodeUsage:
    """What a meter said of a node."""
    return NodeUsage(metadata=ObjectMeta(name=node), measured_at=at, cpu=cpu, memory=memory, storage=storage)


def measure(state: State, *usages: NodeUsage) -> None:
    """Put this into a mirror as all that is measured now."""
    state.replace(NODE_USAGES.group_kind, usages)


def selecting(**labels: str) -> LabelSelector:
    return LabelSelector(match_labels=labels)


def a_term(app: str = "web", key: str = HOSTNAME) -> PodAffinityTerm:
    return PodAffinityTerm(topology_key=key, label_selector=selecting(app=app))


def apart_from(app: str = "web", key: str = HOSTNAME) -> Affinity:
    """Required anti-affinity to pods of this app."""
    return Affinity(pod_anti_affinity=PodAffinity(required=[a_term(app, key)]))


def together_with(app: str = "web", key: str = ZONE) -> Affinity:
    """Required affinity to pods of this app."""
    return Affinity(pod_affinity=PodAffinity(required=[a_term(app, key)]))


def rather_near(app: str = "web", key: str = ZONE, weight: int = 100) -> Affinity:
    """Preferred affinity to pods of this app."""
    term = WeightedPodAffinityTerm(weight=weight, pod_affinity_term=a_term(app, key))
    return Affinity(pod_affinity=PodAffinity(preferred=[term]))


def spread_over(key: str = ZONE, *, skew: int = 1, app: str = "web", soft: bool = False) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(
        max_skew=skew,
        topology_key=key,
        when_unsatisfiable="ScheduleAnyway" if soft else "DoNotSchedule",
        label_selector=selecting(app=app),
    )
