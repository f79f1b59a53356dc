"""Made-up pods, as a webhook sees them, and policies that change pods; the same seed makes the same ones.

    random_pod(7)           a document with every form of affinity, tolerations, spread, priority and owner
    random_pod_policy(7)    a PlacementPolicy without problems, of the same namespace

Used by the properties of placement.pods, and by whoever sends pods through a real API server.
"""

from __future__ import annotations

from random import Random
from typing import Any

from random_wukongs import APPS, ZONE, Manifest, random_scheduling
from wukong.api.policy_parts import STRATEGIES
from wukong.placement.capacity import SPOT_LABELS

NAMESPACE = "shop"
CLASSES = {"high": 2000, "usual": 7, "placement-1000": 1000, "placement-5-never": 5}  # usual is the global default
_SPLITS: list[dict[str, Any]] = [
    {"onDemandBase": 2},
    {"onDemandBase": "30%", "spotPercent": 60},
    {"spotPercent": 70, "fallback": "Wait"},
    {"onDemandBase": 1, "fallback": "OnDemand"},
]
_OWNERS: list[tuple[str, str]] = [
    ("ReplicaSet", "pod-template-hash"),
    ("ReplicaSet", "rollouts-pod-template-hash"),
    ("StatefulSet", "controller-revision-hash"),
    ("DaemonSet", "controller-revision-hash"),
    ("Job", "batch.kubernetes.io/job-name"),
    ("", ""),
]


def random_pod(seed: int) -> Manifest:
    """A pod as the API server hands it to webhooks."""
    rng = Random(f"pod {seed}")
    kind, key = rng.choice(_OWNERS)
    labels = {"app": rng.choice(APPS), "tier": rng.choice(("front", "back"))}
    metadata: Manifest = {"generateName": f"p{seed}-", "namespace": NAMESPACE, "labels": labels}
    if kind:
        metadata["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": kind, "name": f"owner-{seed}", "uid": "u-1", "controller": True}
        ]
    if key and rng.random() < 0.8:
        labels[key] = rng.choice(("5d8f", "77c9"))
    if rng.random() < 0.4:
        metadata["annotations"] = {"example.com/note": "of the author", "empty": ""}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": _a_spec(rng, kind == "DaemonSet")}


def _a_spec(rng: Random, is_daemon: bool) -> Manifest:
    container = {
        "name": "main",
        "image": "registry.example.com/app:1",
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
        "ports": [{"containerPort": 8080, "protocol": "TCP", **({"hostPort": 8080} if rng.random() < 0.2 else {})}],
        "env": [{"name": "EMPTY", "value": ""}],
    }
    spec: Manifest = {"containers": [container], "schedulerName": "default-scheduler", "restartPolicy": "Always"}
    block = random_scheduling(rng)
    kinds: list[str] = ["nodeAffinity", "podAffinity", "podAntiAffinity"]
    affinity = {kind: _in_long_form(kind, block[kind]) for kind in kinds if kind in block}
    if is_daemon:
        by_name = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}]
        affinity["nodeAffinity"] = {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": by_name},
        }
    if affinity:
        spec["affinity"] = affinity
    for name in ("nodeSelector", "tolerations", "topologySpreadConstraints"):
        if block.get(name):
            spec[name] = block[name]
    class_name = rng.choice(("", "usual", "high"))
    if class_name:
        spec["priorityClassName"] = class_name
    return {**spec, "priority": CLASSES.get(class_name, 0), "preemptionPolicy": "PreemptLowerPriority"}


def _in_long_form(name: str, rules: Manifest) -> Manifest:
    """Under the names that pods have for them."""
    required = rules.get("required")
    if required and name == "nodeAffinity":
        required = {"nodeSelectorTerms": required}
    long_form = {
        "requiredDuringSchedulingIgnoredDuringExecution": required,
        "preferredDuringSchedulingIgnoredDuringExecution": rules.get("preferred"),
    }
    return {field: terms for field, terms in long_form.items() if terms}


def random_pod_policy(seed: int) -> Manifest:
    """A policy that uses some of the fields that change pods."""
    rng = Random(f"pod policy {seed}")
    spec: Manifest = {"selector": {"matchLabels": {"app": rng.choice(APPS)}}}
    is_critical = rng.random() < 0.2
    if rng.random() < 0.8 and not is_critical:
        spec["capacity"] = {"strategy": rng.choice(STRATEGIES)}
        if not spec["capacity"]["strategy"].endswith("-only") and rng.random() < 0.5:
            spec["capacity"] |= rng.choice(_SPLITS)
    if rng.random() < 0.7:
        block = random_scheduling(rng)
        block.pop("nodeSelector", None)
        spec["scheduling"] = block
    if rng.random() < 0.5:
        how = rng.choice(({"required": True}, {"preferred": {"weight": 50}}))
        spec["versionAntiAffinity"] = how | rng.choice(({}, {"topologyKey": ZONE}))
    if rng.random() < 0.5:
        spec["priority"] = rng.choice(
            (
                {"value": 1000},
                {"value": 5, "preemptionPolicy": "Never"},
                {"value": -3},
                {"className": "high"},
                {"className": "usual"},
                {"className": "no-such-class"},
            )
        )
    if is_critical:
        spec["critical"] = True
    metadata = {"name": f"policy-{seed}", "namespace": NAMESPACE, "generation": rng.randint(1, 9)}
    return {
        "apiVersion": "placement.novasphere.dev/v1alpha1",
        "kind": "PlacementPolicy",
        "metadata": metadata,
        "spec": spec,
    }


def random_node_labels(seed: int) -> dict[str, str]:
    """Labels that tell nodes apart by what these pods and policies ask for."""
    rng = Random(f"node {seed}")
    choices = {
        ZONE: ("a", "b", "c"),
        "disktype": ("ssd", "hdd"),
        "example.com/rack": ("1",),
        "example.com/pool": ("vms",),
        "old": ("yes",),
        "cores": ("4", "8", "many"),
        "age": ("50", "200"),
        "free.novasphere.dev/cpu": ("0", "1000", "9000"),
        "free.novasphere.dev/memory": ("100", "5000"),
        "free.novasphere.dev/gpu": ("0", "4"),
    }
    labels = {key: rng.choice(values) for key, values in choices.items() if rng.random() < 0.5}
    if rng.random() < 0.5:
        label, values = rng.choice([*SPOT_LABELS.items()])
        labels[label] = rng.choice((*values, "on-demand", "false"))
    return labels
