"""What the extender's Deployment and the second scheduler's have in common: where their pods run and what they may do.

Both are on the way of every pod to its node, so they keep off spot nodes, apart from each other, and need nobody of
their own: their pods are placed by the cluster's default scheduler, whose extender is ignorable.
"""

from __future__ import annotations

from wukong.app.install.installation import Installation, labels, meta
from wukong.placement.capacity import SPOT_LABELS
from wukong.ports import Document

PRIORITY_CLASS = "system-cluster-critical"
USER = 65532  # by number: the kubelet cannot tell whether a named user is root
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


def deployment(installation: Installation, name: str, component: str, pod: Document, notes: dict[str, str]) -> Document:
    """`pod` holds what is particular: its containers and volumes. `notes` are annotations of the pods."""
    annotations = {"annotations": notes} if notes else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta(installation, name, component),
        "spec": {
            "replicas": installation.replicas,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "selector": {"matchLabels": labels(component)},
            "template": {
                "metadata": {"labels": labels(component), **annotations},
                "spec": {
                    "serviceAccountName": name,
                    "priorityClassName": PRIORITY_CLASS,
                    "securityContext": pod_security(),
                    "affinity": {"nodeAffinity": off_spot_nodes()},
                    "tolerations": [{"key": CONTROL_PLANE, "operator": "Exists", "effect": "NoSchedule"}],
                    "topologySpreadConstraints": spread(component),
                    **pod,
                },
            },
        },
    }


def budget(installation: Installation, name: str, component: str) -> Document:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": meta(installation, name, component),
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",  # a pod that never got ready must not hold up a drain
            "selector": {"matchLabels": labels(component)},
        },
    }


def critical_pods_quota(installation: Installation) -> Document:
    """Leave to use the priority class: some clusters (GKE) refuse it wherever no quota names it. It limits nothing."""
    chosen = {"scopeName": "PriorityClass", "operator": "In", "values": [PRIORITY_CLASS]}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": meta(installation, "wukong-critical-pods", "quota"),
        "spec": {"hard": {"pods": "1G"}, "scopeSelector": {"matchExpressions": [chosen]}},
    }


def off_spot_nodes() -> Document:
    """One term, so that all must hold. NotIn also holds where the label is absent."""
    wanted = [
        {"key": label, "operator": "NotIn", "values": list(values)} for label, values in sorted(SPOT_LABELS.items())
    ]
    terms = [{"matchExpressions": wanted}]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def spread(component: str) -> list[Document]:
    """Never two on one node while another can take one; over zones if that is possible."""
    common = {
        "maxSkew": 1,
        "nodeTaintsPolicy": "Honor",  # a node we do not tolerate would count as an empty one for ever
        "labelSelector": {"matchLabels": labels(component)},
        "matchLabelKeys": ["pod-template-hash"],  # the pods of the version before do not count
    }
    return [
        {"topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule", **common},
        {"topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway", **common},
    ]


def pod_security() -> Document:
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,  # so that it can read its keys
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security() -> Document:
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def resources(cpu: str, memory: str, most_memory: str) -> Document:
    """No limit on cpu: throttling would be waiting time of every pod."""
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": most_memory}}


def secret_volume(name: str, secret: str) -> Document:
    return {"name": name, "secret": {"secretName": secret, "defaultMode": 0o440}}


def probe(path: str, port: str, scheme: str = "HTTP", **times: int) -> Document:
    return {"httpGet": {"path": path, "port": port, "scheme": scheme}, **times}
