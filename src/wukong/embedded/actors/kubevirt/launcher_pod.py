"""The virt-launcher pod of a VirtualMachineInstance, and the target pod of a migration; pure.

Follows pkg/virt-controller/services/template.go of KubeVirt 1.7 in all that placement and lifecycle depend on. What the
template of the virtual machine says about scheduling arrives unchanged; KubeVirt adds its node selector, labels, a
readiness gate, and to every required node term that the host's cpu model must not be obsolete. Commands, mounts and
security contexts are left out. Called by the controllers of instances and of migrations.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping

from wukong.api.kinds import VIRTUAL_MACHINE_INSTANCES
from wukong.embedded.actors.kubevirt.launcher_resources import build_resources, is_cpu_dedicated, list_claims
from wukong.embedded.actors.pods import reference_to
from wukong.embedded.store.documents import meta_of
from wukong.embedded.store.kubevirt import names
from wukong.embedded.world.objects import Pod, VirtualMachineInstance, VirtualMachineInstanceMigration
from wukong.ports import Document

IMAGE = "quay.io/kubevirt/virt-launcher:v1.7.0"
_GRACE_PADDING, _DEFAULT_GRACE = 15, 30  # seconds; the padding is added twice
_COPIED = ("schedulerName", "tolerations", "topologySpreadConstraints", "priorityClassName", "dnsPolicy", "dnsConfig")
_NOT_COPIED = ("kubectl.kubernetes.io", "kubevirt.io/storage-observed-api-version", "kubevirt.io/latest-observed-api")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_MOST_NAME = 63


def build_launcher_pod(instance: VirtualMachineInstance, claims: Collection[str], *, emulates: bool) -> Document:
    """The pod in which an instance starts. `claims` are those volume claims of its namespace that exist."""
    spec, meta = instance.spec, meta_of(instance.document)
    name = instance.metadata.name
    grace = spec.get("terminationGracePeriodSeconds")
    pod_spec: Document = {
        "hostname": spec.get("hostname") or _shorten(name),
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": (_DEFAULT_GRACE if grace is None else grace) + 2 * _GRACE_PADDING,
        "containers": _build_containers(spec, emulates=emulates),
        "nodeSelector": _build_node_selector(spec),
        "readinessGates": [{"conditionType": names.UNPAUSED}],
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        **{field: spec[field] for field in _COPIED if spec.get(field)},
    }
    if init_containers := _build_init_containers(spec):
        pod_spec["initContainers"] = init_containers
    if volumes := _build_volumes(spec, claims):
        pod_spec["volumes"] = volumes
    if affinity := _build_affinity(spec):
        pod_spec["affinity"] = affinity
    return {
        "metadata": {
            "generateName": f"virt-launcher-{name}-",
            "namespace": instance.metadata.namespace,
            "labels": {
                **(meta.get("labels") or {}),
                names.LAUNCHER_LABEL: names.LAUNCHER,
                names.CREATED_BY_LABEL: instance.metadata.uid,
                names.NAME_LABEL: spec.get("hostname") or _shorten(name),
                names.ID_LABEL: _identify(name),
            },
            "annotations": _build_annotations(name, meta.get("annotations") or {}),
            "ownerReferences": [reference_to(VIRTUAL_MACHINE_INSTANCES, instance)],
        },
        "spec": pod_spec,
    }


def build_target_pod(
    instance: VirtualMachineInstance,
    migration: VirtualMachineInstanceMigration,
    source: Pod,
    node_labels: Mapping[str, str],
    claims: Collection[str],
    *,
    emulates: bool,
) -> Document:
    """The pod to which an instance migrates: on another node than its source, with a cpu model as the source's has.

    `node_labels` are those of the source's node.
    """
    pod = build_launcher_pod(instance, claims, emulates=emulates)
    meta, spec = pod["metadata"], pod["spec"]
    meta["labels"] |= {names.MIGRATION_JOB_LABEL: migration.metadata.uid}
    meta["annotations"] |= {names.MIGRATION_JOB_ANNOTATION: migration.metadata.name}
    added: Mapping[str, str] = migration.document["spec"].get("addedNodeSelector") or {}
    spec["nodeSelector"] = {**added, **spec["nodeSelector"]}
    if uses_host_model(instance.spec):
        spec["nodeSelector"] |= _build_cpu_selector(source, node_labels)
    term = {
        "labelSelector": {"matchLabels": {names.CREATED_BY_LABEL: instance.metadata.uid}},
        "topologyKey": "kubernetes.io/hostname",
    }
    affinity = spec.get("affinity") or {}
    anti_affinity = affinity.get("podAntiAffinity") or {}
    anti_affinity = {**anti_affinity, _REQUIRED: [*(anti_affinity.get(_REQUIRED) or ()), term]}
    spec["affinity"] = {**affinity, "podAntiAffinity": anti_affinity}
    return pod


def uses_host_model(spec: Document) -> bool:
    model = ((spec.get("domain") or {}).get("cpu") or {}).get("model")
    return model in (None, "", "host-model")


def _build_cpu_selector(source: Pod, node_labels: Mapping[str, str]) -> dict[str, str]:
    """What the source itself was held to, if it is the target of a migration; else what its node is."""
    kept: dict[str, str] = {
        key: value
        for key, value in (source.document["spec"].get("nodeSelector") or {}).items()
        if key.startswith((names.CPU_FEATURE_PREFIX, names.MIGRATION_MODEL_PREFIX))
    }
    if kept:
        return kept
    models = sorted(key for key in node_labels if key.startswith(names.HOST_MODEL_PREFIX))
    return {
        names.MIGRATION_MODEL_PREFIX + key.removeprefix(names.HOST_MODEL_PREFIX): node_labels[key] for key in models[:1]
    }


def _build_node_selector(spec: Document) -> dict[str, str]:
    domain = spec.get("domain") or {}
    selector = {names.SCHEDULABLE_LABEL: "true"}
    if architecture := spec.get("architecture"):
        selector["kubernetes.io/arch"] = architecture.lower()
    selector |= spec.get("nodeSelector") or {}
    if is_cpu_dedicated(domain):
        selector[names.CPU_MANAGER_LABEL] = "true"
    cpu = domain.get("cpu") or {}
    if not uses_host_model(spec) and cpu["model"] != "host-passthrough":
        selector[names.CPU_MODEL_PREFIX + cpu["model"]] = "true"
    if machine := (domain.get("machine") or {}).get("type"):
        selector[names.MACHINE_TYPE_PREFIX + machine] = "true"
    for feature in cpu.get("features") or ():
        if feature.get("policy") in (None, "", "require"):
            selector[names.CPU_FEATURE_PREFIX + feature["name"]] = "true"
    return selector


def _build_affinity(spec: Document) -> Document:
    affinity: Document = spec.get("affinity") or {}
    if not uses_host_model(spec):
        return affinity
    requirement = {"key": names.OBSOLETE_HOST_MODEL_LABEL, "operator": "DoesNotExist"}
    node_affinity = affinity.get("nodeAffinity") or {}
    terms = (node_affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or [{}]
    # Terms are alternatives, so that each has to say it.
    terms = [{**term, "matchExpressions": [*(term.get("matchExpressions") or ()), requirement]} for term in terms]
    return {**affinity, "nodeAffinity": {**node_affinity, _REQUIRED: {"nodeSelectorTerms": terms}}}


def _build_annotations(name: str, annotations: Mapping[str, str]) -> dict[str, str]:
    copied = {key: value for key, value in annotations.items() if not key.startswith(_NOT_COPIED)}
    return {
        names.DOMAIN_ANNOTATION: name,
        **copied,
        "kubectl.kubernetes.io/default-container": "compute",
        "kubevirt.io/migrationTransportUnix": "true",
        "descheduler.alpha.kubernetes.io/request-evict-only": "",
    }


def _build_containers(spec: Document, *, emulates: bool) -> list[Document]:
    compute = {"name": "compute", "image": IMAGE, "resources": build_resources(spec, emulates=emulates)}
    return [compute, *(_build_disk_container(volume, "") for volume in _list_container_disks(spec))]


def _build_init_containers(spec: Document) -> list[Document]:
    devices = (spec.get("domain") or {}).get("devices") or {}
    containers = []
    logs_console = devices.get("logSerialConsole")
    if devices.get("autoattachSerialConsole") is not False and logs_console is not False:
        requests, limits = {"cpu": "5m", "memory": "35M"}, {"cpu": "15m", "memory": "60M"}
        resources = {"requests": requests, "limits": limits}
        log = {"name": "guest-console-log", "image": IMAGE, "restartPolicy": "Always", "resources": resources}
        containers.append(log)
    disks = _list_container_disks(spec)
    if disks:
        resources = {"requests": {"cpu": "10m", "memory": "1M"}, "limits": {"cpu": "100m", "memory": "40M"}}
        containers.append({"name": "container-disk-binary", "image": IMAGE, "resources": resources})
        containers += [_build_disk_container(volume, "-init") for volume in disks]
    return containers


def _build_disk_container(volume: Document, suffix: str) -> Document:
    requests = {"cpu": "1m", "memory": "1M", "ephemeral-storage": "50M"}
    resources = {"requests": requests, "limits": {"cpu": "10m", "memory": "40M"}}
    name = f"volume{volume['name']}{suffix}"
    return {"name": name, "image": volume["containerDisk"].get("image") or IMAGE, "resources": resources}


def _list_container_disks(spec: Document) -> list[Document]:
    return [volume for volume in spec.get("volumes") or () if volume.get("containerDisk")]


def _build_volumes(spec: Document, claims: Collection[str]) -> list[Document]:
    return [
        {"name": volume["name"], "persistentVolumeClaim": {"claimName": claim}}
        for volume, claim in list_claims(spec)
        if claim in claims
    ]


def _shorten(name: str) -> str:
    """The name as a host name: without what comes after a dot, and no longer than one may be."""
    return name.partition(".")[0][:_MOST_NAME].rstrip("-")


def _identify(name: str) -> str:
    if len(name) <= _MOST_NAME:
        return name
    digest = hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()[:8]
    return f"{name[: _MOST_NAME - 9]}-{digest}"
