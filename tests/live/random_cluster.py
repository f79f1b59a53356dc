"""A made-up cluster and made-up pods as manifests a real API server accepts; the same seed makes the same ones.

tests/random_clusters.py draws typed objects for property tests; here everything has to pass validation and admission.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from testbed import nodes

Manifest = dict[str, Any]

HOSTNAME, ZONE, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack"
KEYS = (HOSTNAME, ZONE, ZONE, RACK)
APPS = ("web", "db", "job", "cache")
NAMESPACES = {"team-a": {"env": "a"}, "team-b": {"env": "b", "tier": "gold"}, "team-c": {}}  # name → labels
IMAGES = {f"registry.example.com/{name}:1": size * 10**6 for name, size in (("web", 90), ("db", 600), ("model", 2400))}
GPU = "example.com/gpu"
OWNER, CLAIM = "owner", "data"  # the ReplicaSet and the PersistentVolumeClaim of every namespace
RUNTIME, OVERHEAD = "sandboxed", {"cpu": "30m", "memory": "20Mi"}
# Only the lowest may preempt, and there is nobody below it: pods stay where they are put. `boss` is for preemption.
PRIORITIES = {"boss": 10_000, "high": 1_000, "usual": 0, "low": -10}
AT_ONCE = {f"sim.novasphere.dev/{name}-seconds": "0" for name in ("pull", "start", "ready", "stop")}


# The cluster -------------------------------------------------------------------------------------------------------


def random_nodes(rng: Random, count: int, now: float) -> list[Manifest]:
    """Three zones and nodes without one, racks, sizes, taints; every ninth is cordoned."""
    made = [a_node(rng, f"n{number:02d}", now, is_cordoned=number % 9 == 5) for number in range(count)]
    made[0]["spec"]["taints"] = []
    return made


def a_node(rng: Random, name: str, now: float, *, is_cordoned: bool) -> Manifest:
    zone, rack = rng.choice(["a", "b", "c", "c", None]), rng.choice(["r1", "r2", "7", "12", None])
    capacity = {
        "cpu": rng.choice(["4", "8", "8", "16", "6500m"]),
        "memory": rng.choice(["8Gi", "16Gi", "32Gi", "20G"]),
        "pods": rng.choice(["110", "110", "25", "12"]),
        **({GPU: "4"} if rng.random() < 0.3 else {}),
    }
    labels = {key: value for key, value in ((ZONE, zone), (RACK, rack)) if value is not None}
    node = nodes.a_node(name, now=now, capacity=capacity, labels=labels, annotations=AT_ONCE, taints=rng.choice(TAINTS))
    node["spec"]["unschedulable"] = is_cordoned
    node["status"]["images"] = [
        {"names": [image], "sizeBytes": size} for image, size in IMAGES.items() if rng.random() < 0.4
    ]
    return node


def a_taint(key: str, effect: str, value: str = "") -> Manifest:
    return {"key": key, "value": value, "effect": effect}


TAINTS: list[list[Manifest]] = [
    *[[]] * 6,
    [a_taint("spot", "NoSchedule", "true")],
    [a_taint("bad", "NoExecute")],
    [a_taint("old", "PreferNoSchedule")],
    [a_taint("old", "PreferNoSchedule"), a_taint("slow", "PreferNoSchedule", "very")],
]


def surroundings() -> list[tuple[str, Manifest]]:
    """What is there besides nodes, with the path to create it at; namespaces come first."""
    namespaces = [
        ("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}}) for name, labels in NAMESPACES.items()
    ]
    classes = [
        ("/apis/scheduling.k8s.io/v1/priorityclasses", a_priority_class(name, value))
        for name, value in PRIORITIES.items()
    ]
    runtime = {"metadata": {"name": RUNTIME}, "handler": RUNTIME, "overhead": {"podFixed": OVERHEAD}}
    made = [*namespaces, *classes, ("/apis/node.k8s.io/v1/runtimeclasses", runtime)]
    for namespace, zone in zip(NAMESPACES, "abc", strict=True):
        core, apps = f"/api/v1/namespaces/{namespace}", f"/apis/apps/v1/namespaces/{namespace}"
        made += [
            (f"{core}/services", a_service()),
            (f"{apps}/replicasets", a_replica_set()),
            ("/api/v1/persistentvolumes", a_volume(namespace, zone)),
            (f"{core}/persistentvolumeclaims", a_claim(namespace)),
        ]
    return made


def a_priority_class(name: str, value: int) -> Manifest:
    policy = "PreemptLowerPriority" if name in ("boss", "low") else "Never"
    return {"metadata": {"name": name}, "value": value, "globalDefault": name == "usual", "preemptionPolicy": policy}


def a_service() -> Manifest:
    return {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}


def a_replica_set() -> Manifest:
    template = {"metadata": {"labels": {"app": "cache"}}, "spec": {"containers": [{"name": "main", "image": "cache"}]}}
    return {
        "metadata": {"name": OWNER},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "cache"}}, "template": template},
    }


def a_volume(namespace: str, zone: str) -> Manifest:
    return {
        "metadata": {"name": f"disk-{namespace}"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteMany"],
            "hostPath": {"path": "/data"},
            "claimRef": {"namespace": namespace, "name": CLAIM},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [a_node_term(ZONE, "In", zone)]}},
        },
    }


def a_claim(namespace: str) -> Manifest:
    return {
        "metadata": {"name": CLAIM},
        "spec": {
            "storageClassName": "",
            "volumeName": f"disk-{namespace}",
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


# Pods --------------------------------------------------------------------------------------------------------------


def random_pod(rng: Random, name: str, owners: dict[str, str]) -> Manifest:
    """A pod of any kind; about one in six fits nowhere. `owners` are the uids of the ReplicaSets by namespace."""
    namespace = rng.choice([*NAMESPACES])
    app = rng.choice(APPS)
    labels = {"app": app, **({"v": rng.choice("12")} if rng.random() < 0.6 else {})}
    meta: Manifest = {"name": name, "namespace": namespace, "labels": labels}
    if app == "cache" and rng.random() < 0.6:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": OWNER, "uid": owners[namespace]}
        meta["ownerReferences"] = [{**owner, "controller": True}]
    spec: Manifest = {
        "containers": [a_container(rng, f"main-{number}") for number in range(rng.choice([1, 1, 1, 2]))],
        "priorityClassName": rng.choice(["", "", "high", "low"]),
        "terminationGracePeriodSeconds": 0,
    }
    for add, share in (*HABITS, *((habit, 0.02) for habit in IMPOSSIBLE)):
        if rng.random() < share:
            add(rng, spec, labels)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def a_container(rng: Random, name: str) -> Manifest:
    requests = {
        "cpu": rng.choice([None, "50m", "100m", "100m", "300m", "750m", "0.0125"]),
        "memory": rng.choice([None, "64Mi", "128Mi", "512Mi", "1500M"]),
        "ephemeral-storage": rng.choice([None, None, None, "1Gi"]),
    }
    resources: Manifest = {"requests": {key: value for key, value in requests.items() if value is not None}}
    if rng.random() < 0.1:
        resources["limits"] = {"cpu": "800m", "memory": "2Gi"}
    if rng.random() < 0.08:
        resources["limits"] = {**resources.get("limits", {}), GPU: "1"}
    return {"name": name, "image": rng.choice([*IMAGES, "registry.example.com/db"]), "resources": resources}


Habit = Callable[[Random, Manifest, dict[str, str]], None]


def tolerates(rng: Random, spec: Manifest, labels: dict[str, str]) -> None:
    spec["tolerations"] = [
        rng.choice(
            [
                {"key": "spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"},
                {"key": "bad", "operator": "Exists"},
                {"key": "old", "operator": "Exists", "effect": "PreferNoSchedule"},
                {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
                {"operator": "Exists"},
            ]
        )
    ]


def has_init_containers(rng: Random, spec: Manifest, labels: dict[str, str]) -> None:
    spec["initContainers"] = [a_container(rng, "first")]
    if rng.random() < 0.5:
        spec["initContainers"].append({**a_container(rng, "sidecar"), "restartPolicy": "Always"})


def has_pod_level_resources(rng: Random, spec: Manifest, labels: dict[str, str]) -> None:
    spec["resources"] = {"requests": {"cpu": "2500m", "memory": "7Gi"}}
    if rng.random() < 0.5:
        spec["resources"] = {"limits": {"cpu": "3", "memory": "8Gi"}}
        # The API server fills in the sum of two 12.5m as 25m, counts them as 13m each, and refuses its own default.
        for container in (*spec["containers"], *spec.get("initContainers", [])):
            requests = container["resources"].get("requests", {})
            requests.update({"cpu": "13m"} if requests.get("cpu") == "0.0125" else {})


def is_sandboxed(rng: Random, spec: Manifest, labels: dict[str, str]) -> None:
    spec["runtimeClassName"], spec["overhead"] = RUNTIME, OVERHEAD


def has_ports(rng: Random, spec: Manifest, labels: dict[str, str]) -> None:
    port: Manifest = {"containerPort": 80, "hostPort": rng.choice([80, 80, 81])}
    port |= rng.choice([{}, {}, {"protocol": "UDP"}, {"hostIP": "127.0.0.1"}])
    if rng.random() < 0.2:
        spec["hostNetwork"], port["containerPort"] = True, port["hostPort"]
    spec["containers"][0]["ports"] = [port]


def has_node_selector(rng: Random, spec: Manifest, labels: dict[str, str]) -> None:
    spec["nodeSelector"] = rng.choice([{RACK: "r1"}, {RACK: "r2"}, {ZONE: "c"}, {ZONE: "a"}])


def has_volume(rng: Random, spec: Manifest, labels: dict[str, str]) -> None:
    spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": CLAIM}}]


def must_be_on_nodes(rng: Random, spec: Manifest, labels: dict[str, str]) -> None:
    terms = [random_node_term(rng) for _ in range(rng.choice([1, 1, 2]))]
    affinity(spec, "nodeAffinity")["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}


def would_be_on_nodes(rng: Random, spec: Manifest, labels: dict[str, str]) -> None:
    affinity(spec, "nodeAffinity")["preferredDuringSchedulingIgnoredDuringExecution"] = [
        {"weight": rng.randint(1, 100), "preference": random_node_term(rng)} for _ in range(rng.choice([1, 2]))
    ]


def must_be_near(rng: Random, spec: Manifest, labels: dict[str, str]) -> None:
    affinity(spec, "podAffinity")["requiredDuringSchedulingIgnoredDuringExecution"] = [a_pod_term(rng, labels)]


def must_be_apart(rng: Random, spec: Manifest, labels: dict[str, str]) -> None:
    selector = {"matchLabels": {"app": rng.choice(APPS), "v": rng.choice("12")}}
    term = {"topologyKey": HOSTNAME, "labelSelector": selector, "namespaces": rng.sample([*NAMESPACES], 2)}
    affinity(spec, "podAntiAffinity")["requiredDuringSchedulingIgnoredDuringExecution"] = [term]


def would_be_near(rng: Random, spec: Manifest, labels: dict[str, str]) -> None:
    for side in rng.choice([("podAffinity",), ("podAntiAffinity",), ("podAffinity", "podAntiAffinity")]):
        affinity(spec, side)["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": rng.randint(1, 100), "podAffinityTerm": a_pod_term(rng, labels)}
            for _ in range(rng.choice([1, 2]))
        ]


def is_spread(rng: Random, spec: Manifest, labels: dict[str, str]) -> None:
    keys = rng.sample([HOSTNAME, ZONE, RACK], rng.choice([1, 1, 2]))
    spec["topologySpreadConstraints"] = [a_constraint(rng, key, labels) for key in keys]


def is_too_large(rng: Random, spec: Manifest, labels: dict[str, str]) -> None:
    huge = [{"cpu": "100"}, {"memory": "90Gi"}, {"cpu": "15", "memory": "31Gi"}, {"ephemeral-storage": "1Ti"}]
    spec["containers"][0]["resources"] = {"requests": rng.choice(huge)}
    spec.pop("resources", None)  # the pod as a whole may not ask for less


def wants_many_gpus(rng: Random, spec: Manifest, labels: dict[str, str]) -> None:
    spec["containers"][0]["resources"] = {"limits": {GPU: rng.choice(["5", "4"])}}


def wants_no_such_node(rng: Random, spec: Manifest, labels: dict[str, str]) -> None:
    spec["nodeSelector"] = {RACK: "none"}


def wants_a_node_by_name(rng: Random, spec: Manifest, labels: dict[str, str]) -> None:
    fields = rng.choice([["gone"], ["n01", "n02"], ["n05"], ["n14"]])  # the second contradicts itself
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]} for name in fields]}
    required = {"nodeSelectorTerms": [term]}
    affinity(spec, "nodeAffinity")["requiredDuringSchedulingIgnoredDuringExecution"] = required


def must_be_near_nobody(rng: Random, spec: Manifest, labels: dict[str, str]) -> None:
    term = {"topologyKey": rng.choice(KEYS), "labelSelector": {"matchLabels": {"app": "nobody"}}}
    affinity(spec, "podAffinity")["requiredDuringSchedulingIgnoredDuringExecution"] = [term]


def must_be_alone(rng: Random, spec: Manifest, labels: dict[str, str]) -> None:
    term = {"topologyKey": ZONE, "namespaceSelector": {}, "labelSelector": {"matchExpressions": [APP_IS_SET]}}
    affinity(spec, "podAntiAffinity")["requiredDuringSchedulingIgnoredDuringExecution"] = [term]
    spec["nodeSelector"] = {ZONE: rng.choice("abc")}


APP_IS_SET = {"key": "app", "operator": "Exists"}
HABITS: tuple[tuple[Habit, float], ...] = (
    (tolerates, 0.3),
    (has_init_containers, 0.12),
    (has_pod_level_resources, 0.04),
    (is_sandboxed, 0.06),
    (has_ports, 0.12),
    (has_node_selector, 0.08),
    (has_volume, 0.06),
    (must_be_on_nodes, 0.12),
    (would_be_on_nodes, 0.3),
    (must_be_near, 0.1),
    (must_be_apart, 0.08),
    (would_be_near, 0.3),
    (is_spread, 0.35),
)
IMPOSSIBLE: tuple[Habit, ...] = (
    is_too_large,
    wants_many_gpus,
    wants_no_such_node,
    wants_a_node_by_name,
    must_be_near_nobody,
    must_be_alone,
)


def affinity(spec: Manifest, side: str) -> Manifest:
    part: Manifest = spec.setdefault("affinity", {}).setdefault(side, {})
    return part


def a_node_term(key: str, operator: str, *values: str) -> Manifest:
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": [*values]} if values else {})}]}


def random_node_term(rng: Random) -> Manifest:
    return rng.choice(
        [
            a_node_term(ZONE, "In", "a", "b"),
            a_node_term(ZONE, "In", "c"),
            a_node_term(ZONE, "NotIn", "a"),
            a_node_term(RACK, "Gt", "5"),
            a_node_term(RACK, "Lt", "10"),
            a_node_term(RACK, "Exists"),
            a_node_term(RACK, "DoesNotExist"),
        ]
    )


def a_selector(rng: Random) -> Manifest:
    app = rng.choice(APPS)
    return rng.choice(
        [
            {"matchLabels": {"app": app}},
            {"matchLabels": {"app": app}},
            {"matchLabels": {"app": app, "v": "1"}},
            {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "job"]}]},
            {"matchExpressions": [{"key": "v", "operator": "NotIn", "values": ["1"]}]},
            {"matchExpressions": [{"key": "v", "operator": "DoesNotExist"}]},
            {},
        ]
    )


def a_pod_term(rng: Random, labels: dict[str, str]) -> Manifest:
    term: Manifest = {"topologyKey": rng.choice(KEYS), "labelSelector": a_selector(rng)}
    return term | rng.choice(
        [
            {},
            {},
            {"namespaces": [rng.choice([*NAMESPACES])]},
            {"namespaceSelector": {}},
            {"namespaceSelector": {"matchLabels": {"env": "a"}}},
            {"namespaceSelector": {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["a"]}]}},
            {"labelSelector": {"matchLabels": {"app": labels["app"]}}, "matchLabelKeys": ["v"]},
            {"labelSelector": {"matchLabels": {"app": labels["app"]}}, "mismatchLabelKeys": ["v"]},
        ]
    )


def a_constraint(rng: Random, key: str, labels: dict[str, str]) -> Manifest:
    is_hard = rng.random() < 0.4
    selector = {"matchLabels": {"app": labels["app"]}} if rng.random() < 0.6 else a_selector(rng)
    constraint: Manifest = {
        "topologyKey": key,
        "maxSkew": rng.choice([1, 1, 2, 4]),
        "whenUnsatisfiable": "DoNotSchedule" if is_hard else "ScheduleAnyway",
        "labelSelector": selector,
    }
    if is_hard and rng.random() < 0.2:
        constraint["minDomains"] = rng.choice([2, 4])
    if rng.random() < 0.3:
        constraint["nodeAffinityPolicy"] = "Ignore"
    if rng.random() < 0.3:
        constraint["nodeTaintsPolicy"] = "Honor"
    if selector.get("matchLabels") == {"app": labels["app"]} and rng.random() < 0.4:
        constraint["matchLabelKeys"] = ["v"]  # refused where the selector names the key itself
    return constraint
