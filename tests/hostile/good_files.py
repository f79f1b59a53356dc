"""Good files of each kind that a verb reads, with many fields: what hostile ones are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from cli.manifests import deployment, kubectl_list, node, pod
from random_wukongs import random_wukong

EXAMPLES = Path(__file__).parents[2] / "examples"
GOLDEN = Path(__file__).parents[1] / "golden"
TIME = "2026-01-01T00:00:00Z"
LABELS = {"app": "web"}


def example(name: str) -> Any:
    return yaml.load((EXAMPLES / name).read_text("utf-8"), Loader=yaml.CSafeLoader)


RICH_POD = pod(
    "rich",
    on="a",
    priority=5,
    priorityClassName="high",
    tolerations=[{"key": "spot", "operator": "Equal", "value": "x", "effect": "NoSchedule", "tolerationSeconds": 30}],
    nodeSelector={"disk": "ssd"},
    affinity={
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 5,
                    "preference": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]},
                }
            ],
        },
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": LABELS}, "topologyKey": "kubernetes.io/hostname", "namespaces": ["b"]}
            ]
        },
    },
    topologySpreadConstraints=[
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["x"]}]},
            "minDomains": 2,
        }
    ],
    overhead={"cpu": "10m"},
    initContainers=[{"name": "init", "resources": {"requests": {"cpu": "1"}}, "restartPolicy": "Always"}],
    volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "e", "csi": {"driver": "d"}}],
)
RICH_POD["metadata"] |= {
    "uid": "u1",
    "creationTimestamp": TIME,
    "ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "u2", "controller": True}
    ],
}
RICH_POD["status"] = {
    "phase": "Running",
    "startTime": TIME,
    "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": TIME}],
    "containerStatuses": [{"name": "main", "ready": True, "restartCount": 0, "allocatedResources": {"cpu": "1"}}],
}
REPLICA_SET = {
    **deployment("web-1"),
    "kind": "ReplicaSet",
    "metadata": {
        "name": "web-1",
        "namespace": "default",
        "uid": "u2",
        "annotations": {"deployment.kubernetes.io/revision": "1"},
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u3", "controller": True}
        ],
    },
    "status": {"replicas": 1, "readyReplicas": 1, "observedGeneration": 1},
}
TEMPLATE = deployment()["spec"]["template"]
OTHERS: list[dict[str, Any]] = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": LABELS}},
    {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"selector": LABELS}},
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b"},
        "spec": {"minAvailable": "50%", "selector": {"matchLabels": LABELS}},
        "status": {"disruptionsAllowed": 1, "currentHealthy": 1},
    },
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 5,
        "globalDefault": False,
    },
    {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "uid": "u4"},
        "spec": {
            "replicas": 2,
            "serviceName": "s",
            "selector": {"matchLabels": LABELS},
            "template": TEMPLATE,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}},
        },
    },
    {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "d", "uid": "u5"},
        "spec": {"selector": {"matchLabels": LABELS}, "template": TEMPLATE},
    },
    {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "uid": "u6"},
        "spec": {"completions": 1, "template": TEMPLATE},
        "status": {"active": 1, "startTime": TIME},
    },
    {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": "db-1",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "u4"}],
        },
        "revision": 1,
        "data": {"spec": {"template": TEMPLATE}},
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c"},
        "spec": {"volumeName": "p", "accessModes": ["ReadWriteOnce"], "storageClassName": "s"},
        "status": {"phase": "Bound"},
    },
    {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "p"}, "spec": {"storageClassName": "s"}},
]
NODE = node("a", zone="a", disk="ssd")
NODE["metadata"] |= {"uid": "n1", "creationTimestamp": TIME, "annotations": {"placement.novasphere.dev/notice": "x"}}
NODE["spec"] = {"taints": [{"key": "spot", "value": "x", "effect": "NoSchedule"}], "unschedulable": False}
NODE["status"] |= {
    "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": TIME, "lastTransitionTime": TIME}],
    "images": [{"names": ["web:1"], "sizeBytes": 1000}],
}
DEPLOYMENT = deployment()
DEPLOYMENT["metadata"] |= {"uid": "u3", "generation": 1}
DEPLOYMENT["spec"] |= {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}}}
POLICY = example("policy.yaml") if (EXAMPLES / "policy.yaml").exists() else {}

SNAPSHOTS = [
    {
        **kubectl_list(NODE, RICH_POD, DEPLOYMENT, REPLICA_SET, *OTHERS),
        "wukongSnapshot": {"version": 1, "takenAt": TIME},
    },
    kubectl_list(NODE, node("b"), RICH_POD, pod("waiting"), REPLICA_SET, DEPLOYMENT, POLICY),
    NODE,
    RICH_POD,
    *OTHERS,
]
MANIFESTS = [pod(), DEPLOYMENT, RICH_POD, kubectl_list(DEPLOYMENT, OTHERS[1], OTHERS[3]), *OTHERS[4:7]]
POLICIES = [
    POLICY,
    {
        "apiVersion": "placement.novasphere.dev/v1alpha1",
        "kind": "PlacementPolicy",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": POLICY.get("spec", {}),
    },
    kubectl_list(POLICY, POLICY),
]
SCHEDULER_CONFIGS = [
    yaml.load((GOLDEN / f"{name}.yaml").read_text("utf-8"), Loader=yaml.CSafeLoader) for name in ("packing", "ratio")
]
PRICES = [
    {
        "prices": [{"instanceType": "m5.large", "perHour": 0.1, "capacity": "spot", "zone": "a"}],
        "nodes": {"a": 0.5},
    }
]
LATENCIES = [{"a": {"a": 0.1, "b": 2}, "b": {"a": 2}}]
RUN_CONFIGS = [
    {
        "components": ["load", "extender", "policy"],
        "lease": "a/b",
        "leaseSeconds": 15,
        "probes": ":8080",
        "mirrorAgeLimit": 60,
        "gate": {"mode": "Observe"},
        "usage": {"prometheus": "http://prometheus:9090"},
        "extender": {"plainHttp": True, "gpuResources": ["nvidia.com/gpu"], "criticalPriority": 5, "prices": "p.yaml"},
    }
]
KUBECONFIGS = [
    {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [
            {
                "name": "k",
                "cluster": {
                    "server": "https://10.0.0.1:6443",
                    "certificate-authority-data": "",
                    "insecure-skip-tls-verify": True,
                    "tls-server-name": "kubernetes",
                    "proxy-url": "http://proxy:3128",
                },
            }
        ],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "n"}}],
        "users": [{"name": "u", "user": user}],
    }
    for user in (
        {"token": "t", "as": "x", "as-groups": ["g"]},
        {"tokenFile": "t", "username": "u", "password": "p"},
        {"client-certificate-data": "aGk=", "client-key-data": "aGk="},
        {"client-certificate": "c.pem", "client-key": "k.pem"},
        {
            "exec": {
                "command": "aws",
                "args": ["a"],
                "env": [{"name": "A", "value": "b"}],
                "apiVersion": "client.authentication.k8s.io/v1",
            }
        },
    )
]
WUKONGS = [random_wukong(seed) for seed in range(12)]
SCENARIOS = [example(f"sim/{name}.yaml") for name in ("deadlock", "drain", "spot-first", "load", "soak", "preemption")]
_ATTEMPT = {
    "outcome": "bound",
    "node": "a",
    "feasible": ["a"],
    "scored": True,
    "scores": {"NodeResourcesFit": [5]},
    "final": [5],
}
RECORDINGS = [
    {
        "version": "v1.35.8",
        "seed": 1,
        "nodes": [node("a")],
        "existing": [pod("old", on="a")],
        "namespaces": [{"name": "default", "labels": {}}],
        "workloads": [OTHERS[1], REPLICA_SET],
        "steps": [
            {"pod": pod("web"), "attempts": [_ATTEMPT]},
            {"pod": pod("more"), "attempts": [{"outcome": "unschedulable", "message": "0/1 nodes", "feasible": []}]},
        ],
    }
]
