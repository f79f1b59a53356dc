"""What our Deployments have in common: where their pods run and what they may do.

Extender and second scheduler are on the way of every pod to its node, so they keep off spot nodes, apart from each
other, and need nobody of their own: their pods are placed by the cluster's default scheduler, whose extender is
ignorable. The other controllers are kept alike.
"""

from __future__ import annotations

from wukong.app.install.installation import Installation, build_meta, labels_of
from wukong.app.own_pod import POD_NAME, POD_NAMESPACE
from wukong.placement.capacity import SPOT_LABELS
from wukong.ports import Document

PRIORITY_CLASS = "system-cluster-critical"
USER = 65532  # by number: the kubelet cannot tell whether a named user is root
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


def build_namespace(installation: Installation) -> Document:
    about = build_meta(installation, installation.namespace, "namespace", is_namespaced=False)
    level = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {**about, "labels": {**about["labels"], **level}}}


def build_deployment(
    installation: Installation, name: str, component: str, pod: Document, notes: dict[str, str]
) -> Document:
    """`pod` holds what is particular: its containers and volumes. `notes` are annotations of the pods."""
    annotations = {"annotations": notes} if notes else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": build_meta(installation, name, component),
        "spec": {
            "replicas": installation.replicas,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "selector": {"matchLabels": labels_of(component)},
            "template": {
                "metadata": {"labels": labels_of(component), **annotations},
                "spec": {
                    "serviceAccountName": name,
                    "priorityClassName": PRIORITY_CLASS,
                    "securityContext": build_pod_security(),
                    "affinity": {"nodeAffinity": avoid_spot_nodes()},
                    "tolerations": [{"key": CONTROL_PLANE, "operator": "Exists", "effect": "NoSchedule"}],
                    "topologySpreadConstraints": build_spread(component),
                    **pod,
                },
            },
        },
    }


def build_controller_container(installation: Installation, arguments: list[str], probes: int, *, cpu: str) -> Document:
    """Of a component that serves nothing but probes."""
    return {
        "name": "wukong",
        "image": installation.image,
        "args": arguments,
        "env": build_pod_variables(),
        "ports": [{"name": "probes", "containerPort": probes, "protocol": "TCP"}],
        "livenessProbe": build_probe("/healthz", "probes", periodSeconds=10, timeoutSeconds=3, failureThreshold=3),
        "readinessProbe": build_probe("/readyz", "probes", periodSeconds=5, timeoutSeconds=3),
        "resources": build_resources(cpu, installation.memory, installation.memory_limit),
        "securityContext": build_container_security(),
    }


def build_budget(installation: Installation, name: str, component: str) -> Document:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": build_meta(installation, name, component),
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",  # a pod that never got ready must not hold up a drain
            "selector": {"matchLabels": labels_of(component)},
        },
    }


def build_network_policy(installation: Installation, name: str, component: str, ingress: list[Document]) -> Document:
    """Whoever else calls these pods is not let through."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": build_meta(installation, name, component),
        "spec": {
            "podSelector": {"matchLabels": labels_of(component)},
            "policyTypes": ["Ingress"],
            "ingress": ingress,
        },
    }


def build_port(port: int) -> Document:
    return {"port": port, "protocol": "TCP"}


def build_critical_pods_quota(installation: Installation) -> Document:
    """Leave to use the priority class: some clusters (GKE) refuse it wherever no quota names it. It limits nothing."""
    chosen = {"scopeName": "PriorityClass", "operator": "In", "values": [PRIORITY_CLASS]}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": build_meta(installation, "wukong-critical-pods", "quota"),
        "spec": {"hard": {"pods": "1G"}, "scopeSelector": {"matchExpressions": [chosen]}},
    }


def avoid_spot_nodes() -> Document:
    """One term, so that all must hold. NotIn also holds where the label is absent."""
    expressions = [
        {"key": label, "operator": "NotIn", "values": list(values)} for label, values in sorted(SPOT_LABELS.items())
    ]
    terms = [{"matchExpressions": expressions}]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def build_spread(component: str) -> list[Document]:
    """Never two on one node while another can take one; over zones if that is possible."""
    common = {
        "maxSkew": 1,
        "nodeTaintsPolicy": "Honor",  # a node we do not tolerate would count as an empty one for ever
        "labelSelector": {"matchLabels": labels_of(component)},
        "matchLabelKeys": ["pod-template-hash"],  # the pods of the version before do not count
    }
    return [
        {"topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule", **common},
        {"topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway", **common},
    ]


def build_pod_security() -> Document:
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,  # so that it can read its keys
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def build_container_security() -> Document:
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def build_resources(cpu: str, memory: str, most_memory: str) -> Document:
    """No limit on cpu: throttling would be waiting time of every pod."""
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": most_memory}}


def build_pod_variables() -> list[Document]:
    """Who the pod is, for Events about it."""
    fields = {POD_NAME: "metadata.name", POD_NAMESPACE: "metadata.namespace"}
    return [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()]


def build_secret_volume(name: str, secret: str) -> Document:
    return {"name": name, "secret": {"secretName": secret, "defaultMode": 0o440}}


def build_probe(path: str, port: str, scheme: str = "HTTP", **times: int) -> Document:
    return {"httpGet": {"path": path, "port": port, "scheme": scheme}, **times}
