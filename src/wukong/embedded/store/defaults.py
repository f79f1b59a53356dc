"""What the API server fills in, for pods, pod templates, workloads and the few other kinds we write.

Called by server.py on every create and update of a built-in kind, with a copy that may be changed. What decides
placement in a new pod (resources, ports, priority, tolerations) is filled in by `wukong.admission` instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wukong.ports import Document

_TEMPLATED = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController"})
_POD_SPEC: Document = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
}
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


def fill(kind: str, document: Document) -> None:
    if kind in _TEMPLATED:
        template = document.setdefault("spec", {}).get("template")
        if isinstance(template, dict):
            template.setdefault("metadata", {})
            _pod_spec(template.setdefault("spec", {}))
    if kind in _BY_KIND:
        _BY_KIND[kind](document)


def _pod(pod: Document) -> None:
    spec = pod.setdefault("spec", {})
    _pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)


def _pod_spec(spec: Document) -> None:
    for name, value in _POD_SPEC.items():
        spec.setdefault(name, value)
    spec.setdefault("securityContext", {})
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:  # the second is the first's old name
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for container in [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]:
        _container(container)
    for volume in spec.get("volumes") or []:
        _volume(volume)


def _container(container: Document) -> None:
    container.setdefault("resources", {})
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("imagePullPolicy", "Always" if _is_latest(container.get("image", "")) else "IfNotPresent")
    for port in container.get("ports") or []:
        port.setdefault("protocol", "TCP")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(probe := container.get(name), dict):
            for field, value in _PROBE.items():
                probe.setdefault(field, value)
            if isinstance(get := probe.get("httpGet"), dict):
                get.setdefault("path", "/")
                get.setdefault("scheme", "HTTP")
    for variable in container.get("env") or []:
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if isinstance(reference, dict):
            reference.setdefault("apiVersion", "v1")


def _is_latest(image: str) -> bool:
    last = image.rpartition("/")[2]
    return "@" not in image and (":" not in last or last.endswith(":latest"))


def _volume(volume: Document) -> None:
    """A volume that says nothing is an empty directory."""
    if set(volume) == {"name"}:
        volume["emptyDir"] = {}
    for source in ("configMap", "secret", "projected", "downwardAPI"):
        if isinstance(held := volume.get(source), dict):
            held.setdefault("defaultMode", 420)


def _deployment(deployment: Document) -> None:
    spec = deployment["spec"]
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    _rolling(spec.setdefault("strategy", {}), {"maxUnavailable": "25%", "maxSurge": "25%"})


def _daemon_set(daemon_set: Document) -> None:
    spec = daemon_set["spec"]
    spec.setdefault("revisionHistoryLimit", 10)
    _rolling(spec.setdefault("updateStrategy", {}), {"maxUnavailable": 1, "maxSurge": 0})


def _stateful_set(stateful_set: Document) -> None:
    spec = stateful_set["spec"]
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("podManagementPolicy", "OrderedReady")
    kept = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    for when in ("whenDeleted", "whenScaled"):
        kept.setdefault(when, "Retain")
    strategy = spec.setdefault("updateStrategy", {})
    if "type" not in strategy:
        strategy.setdefault("rollingUpdate", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate" and isinstance(strategy.get("rollingUpdate"), dict):
        strategy["rollingUpdate"].setdefault("partition", 0)


def _rolling(strategy: Document, how: dict[str, Any]) -> None:
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        for name, value in how.items():
            rolling.setdefault(name, value)


def _replicated(workload: Document) -> None:
    workload["spec"].setdefault("replicas", 1)


def _replication_controller(controller: Document) -> None:
    _replicated(controller)
    labels = ((controller["spec"].get("template") or {}).get("metadata") or {}).get("labels")
    if labels:
        controller["spec"].setdefault("selector", labels)
        controller["metadata"].setdefault("labels", labels)


def _service(service: Document) -> None:
    spec = service.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    spec.setdefault("internalTrafficPolicy", "Cluster")
    for port in spec.get("ports") or []:
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))


def _priority_class(priority: Document) -> None:
    priority.setdefault("preemptionPolicy", "PreemptLowerPriority")
    priority.setdefault("value", 0)


def _namespace(namespace: Document) -> None:
    """So that a namespace can be selected by its name."""
    meta = namespace["metadata"]
    meta["labels"] = {**(meta.get("labels") or {}), "kubernetes.io/metadata.name": meta.get("name", "")}


def _node(node: Document) -> None:
    node.setdefault("spec", {})
    status = node.setdefault("status", {})
    if "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))


def _claim(claim: Document) -> None:
    claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def _volume_of_the_cluster(volume: Document) -> None:
    spec = volume.setdefault("spec", {})
    spec.setdefault("volumeMode", "Filesystem")
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")


def _secret(secret: Document) -> None:
    secret.setdefault("type", "Opaque")


_BY_KIND: dict[str, Callable[[Document], None]] = {
    "Pod": _pod,
    "Deployment": _deployment,
    "DaemonSet": _daemon_set,
    "StatefulSet": _stateful_set,
    "ReplicaSet": _replicated,
    "ReplicationController": _replication_controller,
    "Service": _service,
    "PriorityClass": _priority_class,
    "Namespace": _namespace,
    "Node": _node,
    "PersistentVolumeClaim": _claim,
    "PersistentVolume": _volume_of_the_cluster,
    "Secret": _secret,
}
