"""A cluster of forty nodes as EKS has them: names of 44 letters, three zones, spot and on-demand, daemons, all in use.

Used by the tests of what is printed at 80 columns. Everything is computed from a node's number: no chance, no clock.
"""

from __future__ import annotations

from cli.manifests import Manifest, node

NODES = 40
CORDONED, SILENT, GPU = 7, 13, (38, 39)  # by number
ZONES = ("eu-central-1a", "eu-central-1b", "eu-central-1c")
SPOT_TAINT = {"key": "spot", "value": "true", "effect": "NoSchedule"}
GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}
CORDON_TAINT = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def node_name(number: int) -> str:
    return f"ip-10-0-{12 + number // 10}-{34 + number * 5}.eu-central-1.compute.internal"


def eks_nodes() -> list[Manifest]:
    return [_eks_node(number) for number in range(NODES)]


def eks_cluster() -> list[Manifest]:
    """Nodes with daemons and with `api` and `cache` pods; `cache` pods keep others of their app off their hosts."""
    pods = [pod for number in range(NODES) for pod in _pods_of(number)]
    return [*eks_nodes(), *map(_namespace, ("default", "kube-system", "shop")), *_owners(), _budget(), *pods]


def is_spot(number: int) -> bool:
    return number % 2 == 1 and number not in GPU


def _eks_node(number: int) -> Manifest:
    labels = {
        "topology.kubernetes.io/zone": ZONES[number % 3],
        "topology.kubernetes.io/region": "eu-central-1",
        "node.kubernetes.io/instance-type": "g5.2xlarge" if number in GPU else "m6i.xlarge",
        "karpenter.sh/capacity-type": "spot" if is_spot(number) else "on-demand",
    }
    manifest = node(node_name(number), cpu="3920m", pods="58", kubelet="v1.35.2-eks-1234567", **labels)
    taints = [SPOT_TAINT] if is_spot(number) and number % 4 == 1 else []
    taints += [GPU_TAINT] if number in GPU else []
    taints += [CORDON_TAINT] if number == CORDONED else []
    taints += [UNREACHABLE] if number == SILENT else []
    manifest["spec"] = {"taints": taints, **({"unschedulable": True} if number == CORDONED else {})}
    ready = "Unknown" if number == SILENT else "True"
    manifest["status"]["conditions"] = [{"type": "Ready", "status": ready}]
    return manifest


def _pods_of(number: int) -> list[Manifest]:
    placed = [
        _pod("kube-system", f"aws-node-{number:02}", "aws-node", "DaemonSet", "50m", number),
        _pod("kube-system", f"kube-proxy-{number:02}", "kube-proxy", "DaemonSet", "100m", number),
    ]
    if number in GPU:
        return placed
    placed += [_pod("shop", f"api-{number:02}-{copy}", "api", "ReplicaSet", "650m", number) for copy in range(4)]
    placed += [_pod("shop", f"batch-{number:02}", "batch", "ReplicaSet", f"{40 * (number % 9)}m", number)]
    if number % 5 == 0:
        placed.append(_cache_pod(number))
    return placed


def _pod(namespace: str, name: str, app: str, owner: str, cpu: str, number: int, **spec: object) -> Manifest:
    reference = {"apiVersion": "apps/v1", "kind": owner, "name": app, "uid": f"uid-{app}", "controller": True}
    requests = {"cpu": cpu, "memory": "128Mi"}
    metadata = {"name": name, "namespace": namespace, "labels": {"app": app}, "ownerReferences": [reference]}
    container = {"name": app, "image": f"registry.example.com/{app}:1", "resources": {"requests": requests}}
    tolerations = [{"operator": "Exists"}] if owner == "DaemonSet" else [{"key": "spot", "operator": "Exists"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": node_name(number), "containers": [container], "tolerations": tolerations, **spec},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def _cache_pod(number: int) -> Manifest:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "cache"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return _pod("shop", f"cache-{number:02}", "cache", "ReplicaSet", "200m", number, affinity=affinity)


def _namespace(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"name": name}}}


def _owners() -> list[Manifest]:
    return [_owner("kube-system", name, "DaemonSet") for name in ("aws-node", "kube-proxy")] + [
        _owner("shop", name, "ReplicaSet", replicas) for name, replicas in (("api", 152), ("batch", 38), ("cache", 8))
    ]


def _owner(namespace: str, app: str, kind: str, replicas: int = 0) -> Manifest:
    container = {"name": app, "image": f"registry.example.com/{app}:1"}
    template = {"metadata": {"labels": {"app": app}}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": app, "namespace": namespace, "uid": f"uid-{app}"},
        "spec": {
            "selector": {"matchLabels": {"app": app}},
            "template": template,
            **({"replicas": replicas} if replicas else {}),
        },
    }


def _budget() -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "cache", "namespace": "shop"},
        "spec": {"minAvailable": 8, "selector": {"matchLabels": {"app": "cache"}}},
        "status": {"disruptionsAllowed": 0, "currentHealthy": 8, "desiredHealthy": 8, "expectedPods": 8},
    }
