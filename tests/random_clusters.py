"""Random clusters for property tests (hypothesis): small, with every feature that the engine models."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from builders import HOSTNAME, ZONE, a_node, a_pod
from wukong.api.apps import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
    ReplicaSet,
    WorkloadMeta,
    WorkloadSpec,
)
from wukong.api.core import (
    Affinity,
    Container,
    ImageVolume,
    Namespace,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    ResourceRequirements,
    Service,
    ServiceSpec,
    Toleration,
    TopologySpreadConstraint,
    Volume,
    VolumeClaimSource,
    VolumeNodeAffinity,
    WeightedPodAffinityTerm,
)
from wukong.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta, OwnerReference
from wukong.api.objects import Objects

APPS = ("web", "db", "job")
NAMESPACES = ("default", "team-a", "team-b")
USUAL_NAMESPACES = ("default", "default", *NAMESPACES)
KEYS = (HOSTNAME, ZONE, "rack")
TAINTS: tuple[tuple[str, ...], ...] = (
    *((),) * 7,
    ("spot=true:NoSchedule",),
    ("bad:NoExecute",),
    ("old:PreferNoSchedule",),
    ("old:PreferNoSchedule", "slow:PreferNoSchedule"),
)
THEMES = ("any", "any", "any", "modest", "modest", "named", "volume", "spread", "spread")  # what the probe is about
IMAGES = ("registry.example.com/web:1", "registry.example.com/db:latest")


@dataclass(frozen=True)
class Case:
    """A cluster and a pod to decide about."""

    objects: Objects
    pod: Pod


def one_in(draw: st.DrawFn, n: int) -> bool:
    return draw(st.integers(1, n)) == n


@st.composite
def cases(draw: st.DrawFn) -> Case:
    objects = draw(clusters())
    pod = draw(pods("probe"))
    theme = draw(st.sampled_from(THEMES))
    if theme == "modest":
        make_modest(pod)
        pod.spec.affinity = pod.spec.affinity or Affinity()
        preferred = [PreferredSchedulingTerm(weight=draw(st.integers(1, 100)), preference=in_zone_a())]
        pod.spec.affinity.node_affinity = pod.spec.affinity.node_affinity or NodeAffinity(preferred=preferred)
    elif theme == "named":
        pod.spec.node_name = draw(st.sampled_from([node.metadata.name for node in objects.nodes]))
    elif theme == "volume":
        make_modest(pod).spec.volumes = [
            Volume(name="data", persistent_volume_claim=VolumeClaimSource(claim_name="data"))
        ]
    elif theme == "spread":
        constraint = draw(constraints())
        constraint.when_unsatisfiable = "DoNotSchedule"
        make_modest(pod).spec.topology_spread_constraints.append(constraint)
    return Case(objects, pod)


def make_modest(pod: Pod) -> Pod:
    """Turn requirements into preferences, so that several nodes are left to be scored."""
    pod.spec.node_selector, pod.spec.volumes = {}, []
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        container.ports, container.resources.requests = [], {"cpu": "100m", "memory": "64Mi"}
    for constraint in pod.spec.topology_spread_constraints:
        constraint.when_unsatisfiable, constraint.min_domains = "ScheduleAnyway", None
    affinity = pod.spec.affinity or Affinity()
    if affinity.node_affinity:
        affinity.node_affinity.required = None
    for rules in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if rules:
            rules.preferred += [WeightedPodAffinityTerm(weight=7, pod_affinity_term=term) for term in rules.required]
            rules.required = []
    return pod


@st.composite
def clusters(draw: st.DrawFn) -> Objects:
    names = [f"n{number}" for number in range(draw(st.integers(3, 7)))]
    objects = Objects(nodes=[draw(nodes(name)) for name in names])
    objects.namespaces = [
        Namespace(
            kind="Namespace", metadata=ObjectMeta(name=name, labels={"env": name[-1]} if name != "default" else {})
        )
        for name in NAMESPACES
    ]
    for number in range(draw(st.integers(1, 12))):
        pod = draw(pods(f"run-{number}"))
        pod.spec.node_name = draw(st.sampled_from([*names, "gone"]))
        pod.status.start_time = draw(st.sampled_from([None, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]))
        pod.metadata.deletion_timestamp = "2026-02-01T00:00:00Z" if one_in(draw, 8) else None
        objects.pods.append(pod)
    if draw(st.booleans()):
        objects.services = [
            Service(
                kind="Service",
                metadata=ObjectMeta(name="web", namespace="default"),
                spec=ServiceSpec(selector={"app": "web"}),
            )
        ]
        meta = WorkloadMeta(name="rs", namespace="default")
        objects.replica_sets = [
            ReplicaSet(
                kind="ReplicaSet", metadata=meta, spec=WorkloadSpec(selector=LabelSelector(match_labels={"app": "web"}))
            )
        ]
    if draw(st.booleans()):
        objects.pod_disruption_budgets = [
            PodDisruptionBudget(
                kind="PodDisruptionBudget",
                metadata=ObjectMeta(name=f"budget-{app}", namespace="default"),
                spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": app})),
                status=PodDisruptionBudgetStatus(disruptions_allowed=draw(st.integers(0, 1))),
            )
            for app in APPS[:2]
        ]
    objects.persistent_volumes = [
        PersistentVolume(
            kind="PersistentVolume",
            metadata=ObjectMeta(name="disk"),
            spec=PersistentVolumeSpec(node_affinity=VolumeNodeAffinity(required=a_node_selector(draw))),
        )
    ]
    objects.persistent_volume_claims = [
        PersistentVolumeClaim(
            kind="PersistentVolumeClaim",
            metadata=ObjectMeta(name="data", namespace=namespace),
            spec=PersistentVolumeClaimSpec(volume_name="disk"),
            status=PersistentVolumeClaimStatus(phase="Bound"),
        )
        for namespace in NAMESPACES
    ]
    return objects


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    labels = {"rack": draw(st.sampled_from(["r1", "r2", "7"]))} if draw(st.booleans()) else {}
    node = a_node(
        name,
        zone=draw(st.sampled_from(["a", "b", "b", None])),
        cpu=draw(st.sampled_from(["2", "3", "4", "2500m", "0"])),
        memory=draw(st.sampled_from(["2Gi", "4Gi", "3G"])),
        pods=draw(st.sampled_from(["3", "5", "10"])),
        labels=labels,
        taints=draw(st.sampled_from(TAINTS)),
        unschedulable=one_in(draw, 12),
        images=dict.fromkeys(IMAGES[: draw(st.integers(0, 2))], 9 * 10**8),
        extra={"example.com/gpu": "1"} if one_in(draw, 3) else {},
    )
    if one_in(draw, 6):
        del node.metadata.labels[HOSTNAME]
    return node


@st.composite
def pods(draw: st.DrawFn, name: str) -> Pod:
    cpu = draw(st.sampled_from([None, "100m", "300m", "500m", "1"]))
    pod = a_pod(
        name,
        namespace=draw(st.sampled_from(USUAL_NAMESPACES)),
        app=draw(st.sampled_from(("web", *APPS))),
        cpu=cpu,
        memory=draw(st.sampled_from([None, "100Mi", "512Mi", "700M"])),
        requests={"example.com/gpu": "1"} if one_in(draw, 9) else {},
        labels={"v": draw(st.sampled_from("12"))} if draw(st.booleans()) else {},
        priority=draw(st.sampled_from([0, 0, 10, 100])),
        host_port=draw(st.sampled_from([0, 0, 80])),
        image=draw(st.sampled_from(["registry.example.com/web:1", "registry.example.com/db"])),
    )
    spec = pod.spec
    if one_in(draw, 3):
        spec.tolerations = [Toleration(key=draw(st.sampled_from(["spot", "bad", "old", ""])), operator="Exists")]
    if one_in(draw, 4):
        extra = Container(name="init", resources=ResourceRequirements(requests={"cpu": "200m", "memory": "300Mi"}))
        extra.restart_policy = draw(st.sampled_from([None, "Always"]))
        spec.init_containers = [extra]
    if one_in(draw, 8):
        spec.resources = ResourceRequirements(requests={"cpu": "400m"})
    if one_in(draw, 8):
        spec.overhead = {"cpu": "50m", "memory": "10Mi"}
    if one_in(draw, 12):
        spec.node_selector = {"rack": draw(st.sampled_from(["r1", "r2"]))}
    if one_in(draw, 5):
        spec.volumes = [Volume(name="data", persistent_volume_claim=VolumeClaimSource(claim_name="data"))]
    if one_in(draw, 10):
        spec.volumes.append(Volume(name="model", image=ImageVolume(reference=draw(st.sampled_from(IMAGES)))))
    if one_in(draw, 10):
        spec.preemption_policy = "Never"
    if one_in(draw, 4):
        pod.metadata.owner_references = [
            OwnerReference(name="rs", kind="ReplicaSet", api_version="apps/v1", controller=True)
        ]
    spec.affinity = draw(affinities())
    if one_in(draw, 2):
        spec.topology_spread_constraints = [draw(constraints()) for _ in range(draw(st.integers(1, 2)))]
    return pod


def a_selector(draw: st.DrawFn) -> LabelSelector | None:
    app = draw(st.sampled_from(APPS))
    return draw(
        st.sampled_from(
            [
                LabelSelector(match_labels={"app": app}),
                LabelSelector(match_labels={"app": app}),
                LabelSelector(
                    match_expressions=[LabelSelectorRequirement(key="app", operator="In", values=list(APPS[:2]))]
                ),
                LabelSelector(match_expressions=[LabelSelectorRequirement(key="v", operator="NotIn", values=["1"])]),
                LabelSelector(match_expressions=[LabelSelectorRequirement(key="v", operator="DoesNotExist")]),
                LabelSelector(),
                None,
            ]
        )
    )


def a_pod_term(draw: st.DrawFn) -> PodAffinityTerm:
    term = PodAffinityTerm(topology_key=draw(st.sampled_from(KEYS)), label_selector=a_selector(draw))
    choice = draw(st.integers(0, 5))
    if choice == 1:
        term.namespaces = [draw(st.sampled_from(NAMESPACES))]
    elif choice == 2:
        term.namespace_selector = LabelSelector()
    elif choice == 3:
        term.namespace_selector = LabelSelector(
            match_expressions=[
                LabelSelectorRequirement(key="env", operator=draw(st.sampled_from(["NotIn", "In"])), values=["a"])
            ]
        )
    return term


def in_zone_a() -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=[NodeSelectorRequirement(key=ZONE, operator="In", values=["a"])])


def a_node_selector(draw: st.DrawFn) -> NodeSelector:
    return NodeSelector(node_selector_terms=[a_node_term(draw) for _ in range(draw(st.integers(1, 2)))])


def a_node_term(draw: st.DrawFn) -> NodeSelectorTerm:
    choices = [
        in_zone_a(),
        NodeSelectorTerm(match_expressions=[NodeSelectorRequirement(key=ZONE, operator="NotIn", values=["a"])]),
        NodeSelectorTerm(match_expressions=[NodeSelectorRequirement(key="rack", operator="Gt", values=["5"])]),
        NodeSelectorTerm(match_expressions=[NodeSelectorRequirement(key="rack", operator="Lt", values=["-5"])]),
        NodeSelectorTerm(match_expressions=[NodeSelectorRequirement(key="rack", operator="Exists")]),
        NodeSelectorTerm(match_fields=[NodeSelectorRequirement(key="metadata.name", operator="In", values=["n1"])]),
        NodeSelectorTerm(),
    ]
    return draw(st.sampled_from(choices))


@st.composite
def affinities(draw: st.DrawFn) -> Affinity | None:
    if one_in(draw, 3):
        return None
    affinity = Affinity()
    if not one_in(draw, 3):
        node_affinity = NodeAffinity()
        if one_in(draw, 3):
            node_affinity.required = a_node_selector(draw)
        if not one_in(draw, 4):
            node_affinity.preferred = [
                PreferredSchedulingTerm(weight=draw(st.integers(1, 100)), preference=a_node_term(draw))
            ]
        affinity.node_affinity = node_affinity
    for side in ("pod_affinity", "pod_anti_affinity"):
        if one_in(draw, 2):
            rules = PodAffinity()
            if one_in(draw, 3):
                rules.required = [a_pod_term(draw) for _ in range(draw(st.integers(1, 2)))]
            if one_in(draw, 2):
                rules.preferred = [
                    WeightedPodAffinityTerm(weight=draw(st.integers(1, 100)), pod_affinity_term=a_pod_term(draw))
                    for _ in range(draw(st.integers(1, 2)))
                ]
            setattr(affinity, side, rules)
    return affinity


@st.composite
def constraints(draw: st.DrawFn) -> TopologySpreadConstraint:
    hard = draw(st.booleans())
    return TopologySpreadConstraint(
        max_skew=draw(st.integers(1, 2)),
        topology_key=draw(st.sampled_from(KEYS)),
        when_unsatisfiable="DoNotSchedule" if hard else "ScheduleAnyway",
        label_selector=a_selector(draw),
        min_domains=draw(st.sampled_from([None, None, 3])) if hard else None,
        node_affinity_policy=draw(st.sampled_from(["Honor", "Ignore"])),
        node_taints_policy=draw(st.sampled_from(["Honor", "Ignore"])),
        match_label_keys=["v"] if one_in(draw, 4) else [],
    )
