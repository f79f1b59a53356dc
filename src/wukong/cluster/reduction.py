"""Reduces an object to what a snapshot keeps: what placement and Kubernetes' controllers read, nothing else.

    kept      the fields of our structs; statuses of workloads; what containers wait for; a few annotations
    dropped   environments, arguments, commands, probes, all other annotations, who manages which field; of volumes
              everything but their kind, claim, image, and which disk they are: secrets' names, attributes of drivers
    hidden    in virtual machines: what their guests are told (guest_data.py)

Called by `wukong snapshot`, and for a change that is compared with a snapshot. Pure.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wukong.api.core import PodTemplateSpec
from wukong.api.decode import decode_one
from wukong.api.kinds import KINDS, NODES, PODS
from wukong.api.kubevirt import KUBEVIRT_GROUP
from wukong.api.vm import VM_GROUP
from wukong.cluster.guest_data import hide_guest_data
from wukong.placement.leaving_nodes import NOTICE, SHUTTING_DOWN
from wukong.placement.pods.mark import MARK
from wukong.ports import Document
from wukong.semantics.volume_claims import READ_ANNOTATIONS as VOLUME_ANNOTATIONS

_ANNOTATIONS = (
    NOTICE,
    MARK,
    "placement.novasphere.dev/policy",  # of a budget: the policy that it is of
    "deployment.kubernetes.io/",
    "controller.kubernetes.io/pod-deletion-cost",
    "deprecated.daemonset.template.generation",
    "argocd.argoproj.io/tracking-id",  # who keeps the object: a plan warns of it
    "meta.helm.sh/release-name",
    "sim.novasphere.dev/",
    "testbed.wukong/",  # the former prefix of those
    "vm.sim.novasphere.dev/",
    *VOLUME_ANNOTATIONS,
    "kubevirt.io/domain",
    "kubevirt.io/vm-generation",
    "kubevirt.io/migrationJobName",
    "kubevirt.io/evacuationMigration",
    "kubevirt.io/allow-pod-bridge-network-live-migration",
)
_POD_SPECS = ("spec", "spec.template.spec", "data.spec.template.spec")
_MACHINE_VOLUMES = (  # whose contents are kept, those of cloud-init hidden
    *("name", "persistentVolumeClaim", "dataVolume", "containerDisk", "cloudInitNoCloud", "cloudInitConfigDrive"),
)
_VOLUMES_BY_KIND = frozenset({"csi"})  # of which placement reads only that there is one


def reduce_document(document: Document) -> Document:
    """Return what a snapshot keeps of an object, with its kind and apiVersion."""
    kind = KINDS.of_document(document["kind"], document.get("apiVersion", ""))
    assert kind is not None, f"{document['kind']} is not in the table of kinds"
    assert kind.snapshot is not None, f"no snapshot holds {kind.group_kind}"
    if kind.snapshot.template_in:
        reduced: Document = {"metadata": _reduce_metadata(document.get("metadata") or {})}
        path = f"{kind.snapshot.template_in}.template"
        _set_at(reduced, path, _reduce_template(_value_at(document, path) or {}))
    else:
        reduced = msgspec.to_builtins(decode_one(msgspec.json.encode(document), kind.group_kind))
    reduced["kind"], reduced["apiVersion"] = document["kind"], document.get("apiVersion", "")
    for path in kind.snapshot.more:
        _copy_path(document, reduced, path)
    if kind.resource.group in (VM_GROUP, KUBEVIRT_GROUP) and "spec" in reduced:
        reduced["spec"] = hide_guest_data(reduced["spec"])
    _copy_annotations(document, reduced)
    if kind.resource == NODES:
        for condition in reduced.get("status", {}).get("conditions", []):
            if message := condition.pop("message", ""):
                condition.update({"message": SHUTTING_DOWN} if SHUTTING_DOWN in message else {})
    _reduce_volumes(reduced)
    if kind.resource.group in (VM_GROUP, KUBEVIRT_GROUP):
        _reduce_machine(reduced)
    if kind.resource == PODS and "volumes" in reduced["spec"]:  # most carry only a name, another one in every pod
        reduced["spec"]["volumes"] = [volume for volume in reduced["spec"]["volumes"] if volume.keys() != {"name"}]
    for name in ("resourceVersion", "managedFields"):
        reduced.get("metadata", {}).pop(name, None)
    restore_omitted_fields(reduced)
    return reduced


def restore_omitted_fields(document: Document) -> None:
    """In place: write out what our structs omit because it is their default, and the API has no default for."""
    for path in _POD_SPECS:
        for constraint in (_value_at(document, path) or {}).get("topologySpreadConstraints") or ():
            constraint.setdefault("whenUnsatisfiable", "DoNotSchedule")


def _reduce_metadata(meta: Document) -> Document:
    names = ("name", "namespace", "uid", "generation", "labels", "ownerReferences", "creationTimestamp", "annotations")
    return {name: meta[name] for name in (*names, "deletionTimestamp", "finalizers") if meta.get(name)}


def _reduce_template(template: Document) -> Document:
    pod = decode_one(msgspec.json.encode({"kind": "Pod", **template}), "Pod")
    reduced: Document = msgspec.to_builtins(msgspec.convert(msgspec.to_builtins(pod), PodTemplateSpec))
    reduced.get("metadata", {}).pop("namespace", None)
    return reduced


def _reduce_volumes(reduced: Document) -> None:
    """Of what is inside a volume of a driver placement reads nothing: only that there is one."""
    for path in _POD_SPECS:
        for volume in (_value_at(reduced, path) or {}).get("volumes") or ():
            volume.update({name: {} for name in volume if name in _VOLUMES_BY_KIND})


def _reduce_machine(reduced: Document) -> None:
    """Of a virtual machine's volumes placement reads claims and images; credentials and files stay outside.

    What cloud-init is told is hidden already (guest_data.py). A vmTemplate may have anything anywhere.
    """
    for path in ("spec", "spec.template.spec", "spec.vmTemplate.spec.template.spec"):
        spec = _value_at(reduced, path)
        if not isinstance(spec, dict):
            continue
        spec.pop("accessCredentials", None)
        volumes = spec.get("volumes")
        for volume in volumes if isinstance(volumes, list) else ():
            if isinstance(volume, dict):
                volume.update({name: {} for name in volume if name not in _MACHINE_VOLUMES})


def _copy_annotations(document: Document, reduced: Document) -> None:
    """Keep the annotations that controllers read, on the object and on its template."""
    for path in ("metadata", "spec.template.metadata", "data.spec.template.metadata"):
        if isinstance(meta := _value_at(reduced, path), dict):
            meta.pop("annotations", None)
            annotations = _value_at(document, f"{path}.annotations") or {}
            if kept := {key: text for key, text in annotations.items() if key.startswith(_ANNOTATIONS)}:
                meta["annotations"] = kept
    if (grace := _value_at(document, "metadata.deletionGracePeriodSeconds")) is not None:
        reduced["metadata"]["deletionGracePeriodSeconds"] = grace


def _copy_path(source: Any, target: Any, path: str) -> None:
    step, _, rest = path.partition(".")
    if not isinstance(source, dict) or not isinstance(target, dict):
        return
    name = step.removesuffix("[]")
    if source.get(name) is None:
        return
    if not rest:
        target[name] = source[name]
    elif step.endswith("[]"):
        for source_item, target_item in zip(source[name], target.setdefault(name, []), strict=False):
            _copy_path(source_item, target_item, rest)
    else:
        _copy_path(source[name], target.setdefault(name, {}), rest)


def _set_at(target: Document, path: str, value: Any) -> None:
    *above, last = path.split(".")
    for name in above:
        target = target.setdefault(name, {})
    target[last] = value


def _value_at(document: Any, path: str) -> Any:
    for name in path.split("."):
        document = document.get(name) if isinstance(document, dict) else None
    return document
