"""Manifests for test_against_kube.py that a server defaults, normalizes or refuses: (kind, name, rest)."""

from __future__ import annotations

from typing import Any

from wukong.ports import Document

CONTAINER = {"name": "main", "image": "registry.example/app:1"}
LABELS = {"app": "x"}


def spec(**more: Any) -> Document:
    """Return the spec of a pod without a token, for the embedded store mounts none."""
    return {"schedulerName": "nobody", "automountServiceAccountToken": False, "containers": [CONTAINER], **more}


def workload(pod: Document | None = None, **more: Any) -> Document:
    template = {"metadata": {"labels": LABELS}, "spec": pod or spec()}
    return {"spec": {"replicas": 0, "selector": {"matchLabels": LABELS}, "template": template, **more}}


TERM = {
    "topologyKey": "kubernetes.io/hostname",
    "labelSelector": {"matchLabels": LABELS},
    "matchLabelKeys": ["version"],
    "mismatchLabelKeys": ["pod-template-hash"],
}
ZONES = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}
RICH = spec(
    affinity={
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ZONES},
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": TERM}]
        },
    },
    tolerations=[{"key": "spot", "operator": "Exists"}],
    topologySpreadConstraints=[
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": LABELS},
            "matchLabelKeys": ["version"],
        }
    ],
    nodeSelector={"a": "b"},
    volumes=[{"name": "e", "emptyDir": {}}, {"name": "c", "configMap": {"name": "m"}}],
    initContainers=[{"name": "init", "image": "i", "resources": {"limits": {"cpu": "1000m"}}}],
    containers=[
        {
            "name": "main",
            "image": f"a/b@sha256:{'a' * 64}",
            "ports": [{"containerPort": 80}],
            "env": [
                {"name": "A", "value": ""},
                {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            ],
            "resources": {"limits": {"cpu": "0.5", "memory": "1024Mi"}, "requests": {"cpu": "0.25"}},
            "readinessProbe": {"httpGet": {"port": 80}},
            "volumeMounts": [{"name": "e", "mountPath": "/e"}],
        },
        {"name": "two", "image": "x:latest"},
    ],
    terminationGracePeriodSeconds=0,
)
ODD = {"cpu": "0.0001", "memory": "1.5Gi", "ephemeral-storage": "1e3", "example.com/x": "2"}

MANIFESTS: list[tuple[str, str, Document]] = [
    ("Pod", "plain", {"spec": spec()}),
    (
        "Pod",
        "rich",
        {
            "metadata": {"labels": {**LABELS, "version": "1", "pod-template-hash": "abc"}, "annotations": {"k": ""}},
            "spec": {**RICH, "priorityClassName": "system-cluster-critical"},
        },
    ),
    (
        "Pod",
        "on-the-host",
        {"spec": spec(hostNetwork=True, containers=[{**CONTAINER, "ports": [{"containerPort": 80}]}])},
    ),
    ("Pod", "gated", {"metadata": {"labels": {}}, "spec": spec(schedulingGates=[{"name": "g/x"}], nodeName="")}),
    (
        "Pod",
        "nulls",
        {
            "metadata": {"labels": None, "finalizers": []},
            "spec": spec(affinity=None, tolerations=[], volumes=None, hostNetwork=False, priority=None),
        },
    ),
    ("Pod", "sure", {"spec": spec(containers=[{**CONTAINER, "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}])}),
    (
        "Pod",
        "odd-amounts",
        {"spec": spec(containers=[{**CONTAINER, "resources": {"requests": ODD, "limits": {"example.com/x": "2"}}}])},
    ),
    ("Pod", "no-class", {"spec": spec(priorityClassName="nope")}),
    ("Pod", "own-priority", {"spec": spec(priority=7)}),
    ("Pod", "bad-label", {"metadata": {"labels": {"a b": "c"}}, "spec": spec()}),
    ("Pod", "no-list", {"spec": {"containers": "x"}}),
    ("Pod", "no-image", {"spec": {"containers": [{"name": "m"}]}}),
    ("Pod", "twice", {"spec": {"containers": [CONTAINER, CONTAINER]}}),
    ("Pod", "versioned", {"metadata": {"resourceVersion": "5"}, "spec": spec()}),
    ("Pod", "elsewhere", {"metadata": {"namespace": "elsewhere"}, "spec": spec()}),
    ("Pod", "bad-finalizer", {"metadata": {"finalizers": ["foo"]}, "spec": spec()}),
    ("Pod", "bad-owner", {"metadata": {"ownerReferences": [{"name": "x"}]}, "spec": spec()}),
    ("Pod", "label-is-a-number", {"metadata": {"labels": {"a": 1}}, "spec": spec()}),
    ("Pod", "", {"spec": spec()}),
    *(
        (kind, f"{kind.lower()}-{name}", workload(pod, **more))
        for kind, extra in (("Deployment", {"paused": True}), ("ReplicaSet", {}), ("StatefulSet", {"serviceName": "s"}))
        for name, pod, more in (
            ("plain", None, extra),
            ("rich", RICH, extra),
            ("unselective", None, {**extra, "selector": None}),
            ("mismatched", None, {**extra, "selector": {"matchLabels": {"a": "b"}}}),
            ("negative", None, {**extra, "replicas": -1}),
        )
    ),
    ("Deployment", "stuck", workload(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}})),
    ("Deployment", "both-ways", workload(paused=True, strategy={"type": "Recreate", "rollingUpdate": {"maxSurge": 1}})),
    ("ReplicationController", "old", {"spec": {"replicas": 0, "template": workload()["spec"]["template"]}}),
    ("PodDisruptionBudget", "budget", {"spec": {"minAvailable": 1, "selector": {}}}),
    ("PodDisruptionBudget", "both", {"spec": {"minAvailable": 1, "maxUnavailable": 1, "selector": {}}}),
    ("PodDisruptionBudget", "too-much", {"spec": {"minAvailable": "150%"}}),
    ("ConfigMap", "empty-values", {"metadata": {"labels": {"a": ""}}, "data": {"a": ""}}),
    ("ConfigMap", "numbers", {"data": {"a": 1}}),
    ("ConfigMap", "bad-key", {"data": {"a b": "1"}}),
    ("PriorityClass", "system-mine", {"value": 5}),
    ("PriorityClass", "too-high", {"value": 2_000_000_000}),
]
