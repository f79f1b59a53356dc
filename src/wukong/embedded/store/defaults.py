"""The defaults that the API server fills in, for pods, pod templates, workloads and the few other kinds we write.

Called by writes.py on every create and update of a built-in kind, with a copy that may be changed. What decides
placement in a new pod (resources, ports, priority, tolerations) is filled in by `wukong.admission` instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wukong.ports import Document

_WITH_POD_TEMPLATE = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController"})
_POD_SPEC_DEFAULTS: Document = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
}
_PROBE_DEFAULTS = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


def fill(kind: str, document: Document) -> None:
    """Fill in the defaults of a document of this kind, in place."""
    if kind in _WITH_POD_TEMPLATE:
        template = document.setdefault("spec", {}).get("template")
        if isinstance(template, dict):
            template.setdefault("metadata", {})
            _fill_pod_spec(template.setdefault("spec", {}))
    if kind in _BY_KIND:
        _BY_KIND[kind](document)


def _fill_pod(pod: Document) -> None:
    spec = pod.setdefault("spec", {})
    _fill_pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)


def _fill_pod_spec(spec: Document) -> None:
    for name, value in _POD_SPEC_DEFAULTS.items():
        spec.setdefault(name, value)
    spec.setdefault("securityContext", {})
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:  # the second is the first's old name
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for container in [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]:
        _fill_container(container)
    for volume in spec.get("volumes") or []:
        _fill_volume(volume)


def _fill_container(container: Document) -> None:
    container.setdefault("resources", {})
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("imagePullPolicy", "Always" if _is_latest(container.get("image", "")) else "IfNotPresent")
    for port in container.get("ports") or []:
        port.setdefault("protocol", "TCP")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(probe := container.get(name), dict):
            for field, value in _PROBE_DEFAULTS.items():
                probe.setdefault(field, value)
            if isinstance(http_get := probe.get("httpGet"), dict):
                http_get.setdefault("path", "/")
                http_get.setdefault("scheme", "HTTP")
    for variable in container.get("env") or []:
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if isinstance(reference, dict):
            reference.setdefault("apiVersion", "v1")


def _is_latest(image: str) -> bool:
    name = image.rpartition("/")[2]
    return "@" not in image and (":" not in name or name.endswith(":latest"))


def _fill_volume(volume: Document) -> None:
    """Make a volume without a source an emptyDir, and set the mode of files from an object."""
    if set(volume) == {"name"}:
        volume["emptyDir"] = {}
    for name in ("configMap", "secret", "projected", "downwardAPI"):
        if isinstance(source := volume.get(name), dict):
            source.setdefault("defaultMode", 420)


def _fill_deployment(deployment: Document) -> None:
    spec = deployment["spec"]
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    _fill_rolling_update(spec.setdefault("strategy", {}), {"maxUnavailable": "25%", "maxSurge": "25%"})


def _fill_daemon_set(daemon_set: Document) -> None:
    spec = daemon_set["spec"]
    spec.setdefault("revisionHistoryLimit", 10)
    _fill_rolling_update(spec.setdefault("updateStrategy", {}), {"maxUnavailable": 1, "maxSurge": 0})


def _fill_stateful_set(stateful_set: Document) -> None:
    spec = stateful_set["spec"]
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("podManagementPolicy", "OrderedReady")
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    for event in ("whenDeleted", "whenScaled"):
        retention.setdefault(event, "Retain")
    strategy = spec.setdefault("updateStrategy", {})
    if "type" not in strategy:
        strategy.setdefault("rollingUpdate", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate" and isinstance(strategy.get("rollingUpdate"), dict):
        strategy["rollingUpdate"].setdefault("partition", 0)


def _fill_rolling_update(strategy: Document, parameters: dict[str, Any]) -> None:
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling_update = strategy.setdefault("rollingUpdate", {})
        for name, value in parameters.items():
            rolling_update.setdefault(name, value)


def _fill_replicas(workload: Document) -> None:
    workload["spec"].setdefault("replicas", 1)


def _fill_replication_controller(controller: Document) -> None:
    _fill_replicas(controller)
    labels = ((controller["spec"].get("template") or {}).get("metadata") or {}).get("labels")
    if labels:
        controller["spec"].setdefault("selector", labels)
        controller["metadata"].setdefault("labels", labels)


def _fill_service(service: Document) -> None:
    spec = service.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    spec.setdefault("internalTrafficPolicy", "Cluster")
    for port in spec.get("ports") or []:
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))


def _fill_priority_class(priority: Document) -> None:
    priority.setdefault("preemptionPolicy", "PreemptLowerPriority")
    priority.setdefault("value", 0)


def _fill_namespace(namespace: Document) -> None:
    """Label a namespace with its name, so that it can be selected by it."""
    meta = namespace["metadata"]
    meta["labels"] = {**(meta.get("labels") or {}), "kubernetes.io/metadata.name": meta.get("name", "")}


def _fill_node(node: Document) -> None:
    node.setdefault("spec", {})
    status = node.setdefault("status", {})
    if "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))


def _fill_volume_claim(claim: Document) -> None:
    claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def _fill_persistent_volume(volume: Document) -> None:
    spec = volume.setdefault("spec", {})
    spec.setdefault("volumeMode", "Filesystem")
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")


def _fill_secret(secret: Document) -> None:
    secret.setdefault("type", "Opaque")


_BY_KIND: dict[str, Callable[[Document], None]] = {
    "Pod": _fill_pod,
    "Deployment": _fill_deployment,
    "DaemonSet": _fill_daemon_set,
    "StatefulSet": _fill_stateful_set,
    "ReplicaSet": _fill_replicas,
    "ReplicationController": _fill_replication_controller,
    "Service": _fill_service,
    "PriorityClass": _fill_priority_class,
    "Namespace": _fill_namespace,
    "Node": _fill_node,
    "PersistentVolumeClaim": _fill_volume_claim,
    "PersistentVolume": _fill_persistent_volume,
    "Secret": _fill_secret,
}
