"""Nodes and requests of the extender's benchmark: nodes as an API server gives them, about 4 KB each, and one pod.

Every request has the nodes in another order, as kube-scheduler has: it filters them in parallel. Same seed, same bytes.
"""

from __future__ import annotations

import json
import random
from typing import Any

Json = dict[str, Any]

NODES = 5_000
CAPACITY_TYPE = "karpenter.sh/capacity-type"
TYPES = ("m5.xlarge", "m5.2xlarge", "c5.2xlarge", "r5.xlarge", "m6i.4xlarge")
_DAY = "2026-11-15T08:00:00Z"
_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def name_of(number: int) -> str:
    return f"ip-10-{number // 65536}-{number // 256 % 256}-{number % 256}.eu-west-1.compute.internal"


def a_node(number: int) -> Json:
    name, zone = name_of(number), f"eu-west-1{'abc'[number % 3]}"
    amounts = {"cpu": "8", "memory": "32386544Ki", "ephemeral-storage": "104845292Ki", "pods": "58"}
    return {
        "metadata": {
            "name": name,
            "uid": f"7f1d9c1e-0000-4000-8000-{number:012}",
            "resourceVersion": str(81_000_000 + number),
            "creationTimestamp": _DAY,
            "labels": {
                "beta.kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                "kubernetes.io/hostname": name,
                "node.kubernetes.io/instance-type": TYPES[number % len(TYPES)],
                "topology.kubernetes.io/region": "eu-west-1",
                "topology.kubernetes.io/zone": zone,
                "karpenter.sh/nodepool": "general",
                CAPACITY_TYPE: "spot" if number % 5 < 3 else "on-demand",
                "disk": "ssd" if number % 2 else "hdd",
            },
            "annotations": {
                "node.alpha.kubernetes.io/ttl": "0",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
                "csi.volume.kubernetes.io/nodeid": f'{{"ebs.csi.aws.com":"i-{number:017x}"}}',
            },
        },
        "spec": {"podCIDR": "10.244.0.0/24", "podCIDRs": ["10.244.0.0/24"], "providerID": f"aws:///{zone}/i-{number}"},
        "status": {
            "capacity": amounts,
            "allocatable": {**amounts, "cpu": "7910m", "memory": "31482480Ki"},
            "conditions": [
                {
                    "type": kind,
                    "status": status,
                    "lastHeartbeatTime": _DAY,
                    "lastTransitionTime": _DAY,
                    "reason": reason,
                    "message": message,
                }
                for kind, status, reason, message in _CONDITIONS
            ],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": name}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "machineID": f"{number:032x}",
                "systemUUID": f"{number:032x}",
                "bootID": f"{number:032x}",
                "kernelVersion": "6.1.115-126.197.amzn2023.x86_64",
                "osImage": "Amazon Linux 2023.6.20241111",
                "containerRuntimeVersion": "containerd://1.7.23",
                "kubeletVersion": "v1.35.8",
                "kubeProxyVersion": "",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
            "images": [
                {
                    "names": [f"registry.example.com/team/service-{image}@sha256:{image:064x}"],
                    "sizeBytes": 25_000_000 + image * 1_234_567,
                }
                for image in range(number % 7, number % 7 + 12)
            ],
        },
    }


def a_pod() -> Json:
    container = {
        "name": "main",
        "image": "registry.example.com/team/web:1.4.2",
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": f"SETTING_{number}", "value": f"value-{number}"} for number in range(10)],
        "resources": {"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"memory": "512Mi"}},
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10},
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
    }
    return {
        "metadata": {
            "name": "web-7d9c5b6f4-x2x7v",
            "generateName": "web-7d9c5b6f4-",
            "namespace": "shop",
            "uid": "b1946ac9-0000-4000-8000-000000000001",
            "labels": {"app": "web", "pod-template-hash": "7d9c5b6f4"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d9c5b6f4", "uid": "r"}],
        },
        "spec": {
            "containers": [container],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "schedulerName": "default-scheduler",
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
                {"key": "spot", "operator": "Exists"},
            ],
            "priority": 0,
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }


def node_list() -> bytes:
    return compact({"kind": "NodeList", "apiVersion": "v1", "items": [a_node(number) for number in range(NODES)]})


def bodies(count: int, full: bool, variants: int) -> list[bytes]:
    """Requests with `count` nodes each, none like the other."""
    rng = random.Random(count)
    pod, made = a_pod(), []
    for _ in range(variants):
        numbers = rng.sample(range(NODES), count)
        nodes = {"metadata": {}, "items": [a_node(number) for number in numbers]} if full else None
        names = None if full else [name_of(number) for number in numbers]
        made.append(compact({"Pod": pod, "Nodes": nodes, "NodeNames": names}))
    return made


def compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
