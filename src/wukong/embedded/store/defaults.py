"""The defaults that the API server fills in, as a table: struct → field → value; and those that it computes.

Types and the defaults that Kubernetes declares beside them are in api/field_types.py; here are those of its code.
stored_form.py calls both functions for every struct of a document, from the innermost out, after zeros were left out:
a field is absent where Go has nil, "" or 0. What decides placement in a new pod (requests, host ports, priority,
tolerations) is filled in by `wukong.admission` instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wukong.ports import Document

_FILE_MODE: Document = {"defaultMode": 0o644}
_CONTAINER: Document = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
DEFAULTS: dict[str, Document] = {
    "PodSpec": {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "securityContext": {},
    },
    "Container": _CONTAINER,
    "EphemeralContainer": _CONTAINER,
    "Probe": {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
    "HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "ObjectFieldSelector": {"apiVersion": "v1"},
    "SecretVolumeSource": _FILE_MODE,
    "ConfigMapVolumeSource": _FILE_MODE,
    "DownwardAPIVolumeSource": _FILE_MODE,
    "ProjectedVolumeSource": _FILE_MODE,
    "ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    "HostPathVolumeSource": {"type": ""},
    "PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    "PersistentVolumeClaimStatus": {"phase": "Pending"},
    "PersistentVolumeSpec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
    "PersistentVolumeStatus": {"phase": "Pending"},
    "Secret": {"type": "Opaque"},
    "NamespaceStatus": {"phase": "Active"},
    "DeploymentSpec.apps": {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600},
    "ReplicaSetSpec.apps": {"replicas": 1},
    "DaemonSetSpec.apps": {"revisionHistoryLimit": 10},
    "StatefulSetSpec.apps": {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "podManagementPolicy": "OrderedReady",
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    },
    "StatefulSetPersistentVolumeClaimRetentionPolicy.apps": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    "JobSpec.batch": {"completionMode": "NonIndexed", "suspend": False, "manualSelector": False},
    "PodFailurePolicyOnPodConditionsPattern.batch": {"status": "True"},
    "CronJobSpec.batch": {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    },
    "StorageClass.storage.k8s.io": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    "PriorityClass.scheduling.k8s.io": {"preemptionPolicy": "PreemptLowerPriority"},
}
# Fields of features that are off unless somebody turns them on: the server drops them.
DISABLED: dict[str, tuple[str, ...]] = {
    "PodSpec": ("workloadRef",),
    "Lifecycle": ("stopSignal",),
    "VolumeProjection": ("podCertificate", "clusterTrustBundle"),
    "RollingUpdateStatefulSetStrategy.apps": ("maxUnavailable",),
}


def has_more(name: str) -> bool:
    """Whether there is anything to fill in, to drop or to compute in structs of this name."""
    return name in DEFAULTS or name in DISABLED or name in _COMPUTED


def fill_fields(name: str, value: Document) -> None:
    """Fill in what the table has for a struct of this name, in place; drop the fields of features that are off."""
    for field, default in DEFAULTS.get(name, _NONE).items():
        if field not in value:
            value[field] = dict(default) if isinstance(default, dict) else default
    for field in DISABLED.get(name, ()):
        value.pop(field, None)


def compute_fields(name: str, value: Document) -> None:
    """Fill in the fields that depend on others, in place; what is in the struct has its own defaults already."""
    if name in _COMPUTED:
        _COMPUTED[name](value)


_NONE: Document = {}


def _fill_pod(pod: Document) -> None:
    pod["spec"].setdefault("enableServiceLinks", True)


def _fill_pod_spec(spec: Document) -> None:
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:  # the second is the first's old name
        spec["serviceAccountName"] = spec["serviceAccount"] = account


def _fill_container(container: Document) -> None:
    container.setdefault("imagePullPolicy", "Always" if _is_latest(container.get("image", "")) else "IfNotPresent")


def _is_latest(image: str) -> bool:
    name = image.rpartition("/")[2]
    return "@" not in image and (":" not in name or name.endswith(":latest"))


def _fill_volume(volume: Document) -> None:
    """A volume without a source is an emptyDir; an image is pulled like a container's."""
    if volume.keys() <= {"name"}:
        volume["emptyDir"] = {}
    if (image := volume.get("image")) is not None and "pullPolicy" not in image:
        policy = "Always" if _is_latest(image.get("reference", "")) else "IfNotPresent"
        volume["image"] = {**image, "pullPolicy": policy}


def _fill_deployment_strategy(strategy: Document) -> None:
    _fill_rolling_update(strategy, {"maxUnavailable": "25%", "maxSurge": "25%"})


def _fill_daemon_set_strategy(strategy: Document) -> None:
    _fill_rolling_update(strategy, {"maxUnavailable": 1, "maxSurge": 0})


def _fill_rolling_update(strategy: Document, parameters: dict[str, Any]) -> None:
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        parameters_given = strategy.get("rollingUpdate", {})
        if not parameters.keys() <= parameters_given.keys():
            strategy["rollingUpdate"] = {**parameters, **parameters_given}


def _fill_stateful_set_strategy(strategy: Document) -> None:
    if "type" not in strategy:
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and "partition" not in strategy.get("rollingUpdate", {"partition": 0}):
        strategy["rollingUpdate"] = {"partition": 0, **strategy["rollingUpdate"]}


def _fill_stateful_set(spec: Document) -> None:
    head = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    claims = spec.get("volumeClaimTemplates") or ()
    if not all(head.items() <= claim.items() for claim in claims):
        spec["volumeClaimTemplates"] = [{**claim, **head} for claim in claims]


def _fill_job_spec(spec: Document) -> None:
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 2**31 - 1 if "backoffLimitPerIndex" in spec else 6)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")


def _fill_job(job: Document) -> None:
    _take_labels(job, job["spec"]["template"]["metadata"].get("labels"))


def _fill_replication_controller(controller: Document) -> None:
    labels = ((controller["spec"].get("template") or {}).get("metadata") or {}).get("labels")
    if labels and not controller["spec"].get("selector"):
        controller["spec"]["selector"] = dict(labels)
    _take_labels(controller, labels)


def _take_labels(document: Document, labels: Document | None) -> None:
    """An object without labels takes those of its template, as the same object: generated_fields.py can tell."""
    if labels and not document["metadata"].get("labels"):
        document["metadata"] = {**document["metadata"], "labels": labels}


def _fill_service_spec(spec: Document) -> None:
    kind = spec.setdefault("type", "ClusterIP")
    if spec.setdefault("sessionAffinity", "None") == "None":
        spec.pop("sessionAffinityConfig", None)
    elif (spec.get("sessionAffinityConfig") or {}).get("clientIP", {}).get("timeoutSeconds") is None:
        spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
    if kind != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and spec.get("externalIPs")):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    if not all(port.get("targetPort") for port in spec.get("ports") or ()):
        spec["ports"] = [{**port, "targetPort": port.get("targetPort") or port["port"]} for port in spec["ports"]]


def _fill_namespace(namespace: Document) -> None:
    """Label a namespace with its name, so that it can be selected by it."""
    meta = namespace["metadata"]
    labels = {**(meta.get("labels") or {}), "kubernetes.io/metadata.name": meta.get("name", "")}
    if labels != meta.get("labels"):
        namespace["metadata"] = {**meta, "labels": labels}


def _fill_node_status(status: Document) -> None:
    if "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))


def _fill_autoscaler(spec: Document) -> None:
    """At least one replica, 80 % of cpu; a behavior has all its rules, but for the window in which it scales down."""
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    if "behavior" in spec:
        up = {"stabilizationWindowSeconds": 0, **_scaling_rules(("Pods", 4), ("Percent", 100))}
        down = _scaling_rules(("Percent", 100))
        behavior = spec["behavior"]
        spec["behavior"] = {
            "scaleUp": {**up, **(behavior.get("scaleUp") or {})},
            "scaleDown": {**down, **(behavior.get("scaleDown") or {})},
        }


def _scaling_rules(*policies: tuple[str, int]) -> Document:
    listed = [{"type": type_, "value": value, "periodSeconds": 15} for type_, value in policies]
    return {"selectPolicy": "Max", "policies": listed}


def _fill_limit_range_item(item: Document) -> None:
    """Of containers: what is limited to a maximum has that as its default limit, which is the default request, too."""
    if item.get("type") == "Container":
        limits = {**(item.get("max") or {}), **(item.get("default") or {})}
        requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
        item |= {name: amounts for name, amounts in (("default", limits), ("defaultRequest", requests)) if amounts}


_COMPUTED: dict[str, Callable[[Document], None]] = {
    "Pod": _fill_pod,
    "PodSpec": _fill_pod_spec,
    "Container": _fill_container,
    "EphemeralContainer": _fill_container,
    "Volume": _fill_volume,
    "DeploymentStrategy.apps": _fill_deployment_strategy,
    "DaemonSetUpdateStrategy.apps": _fill_daemon_set_strategy,
    "StatefulSetUpdateStrategy.apps": _fill_stateful_set_strategy,
    "StatefulSetSpec.apps": _fill_stateful_set,
    "JobSpec.batch": _fill_job_spec,
    "Job.batch": _fill_job,
    "ReplicationController": _fill_replication_controller,
    "ServiceSpec": _fill_service_spec,
    "Namespace": _fill_namespace,
    "NodeStatus": _fill_node_status,
    "HorizontalPodAutoscalerSpec.autoscaling": _fill_autoscaler,
    "LimitRangeItem": _fill_limit_range_item,
}
