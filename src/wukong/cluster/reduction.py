"""What `wukong snapshot` keeps of an object: what decides placement, what Kubernetes' controllers go by, nothing else.

    kept      the fields of our structs; statuses of workloads; what containers wait for; a few annotations
    dropped   environments, arguments, commands, probes, secrets' names, all other annotations, who manages which field

Called by `wukong snapshot`, and on a change that is to be compared with what it wrote. Pure.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wukong.api.core import PodTemplateSpec
from wukong.api.decode import decode_one
from wukong.api.kinds import KINDS
from wukong.placement.leaving_nodes import NOTICE, SHUTTING_DOWN
from wukong.ports import Document

_ANNOTATIONS = (
    NOTICE,
    "deployment.kubernetes.io/",
    "controller.kubernetes.io/pod-deletion-cost",
    "deprecated.daemonset.template.generation",
    "sim.novasphere.dev/",
    "testbed.wukong/",  # the former prefix of those
)
# Fields beyond those of our structs, as paths; [] goes through a list.
_MORE: dict[str, tuple[str, ...]] = {
    "Node": ("spec.taints[].timeAdded", "status.conditions[].lastTransitionTime"),
    "Pod": (
        "spec.restartPolicy",
        "spec.readinessGates",
        "status.containerStatuses[].state.waiting.reason",
        "status.containerStatuses[].ready",
    ),
    "Namespace": ("spec.finalizers", "status.phase"),
    "ReplicationController": ("status",),
    "ReplicaSet": ("spec.template.spec.restartPolicy", "status"),
    "StatefulSet": (
        *("spec.template.spec.restartPolicy", "spec.serviceName", "spec.ordinals", "spec.revisionHistoryLimit"),
        "status",
    ),
    "Deployment": ("spec.template.spec.restartPolicy", "spec.revisionHistoryLimit", "status"),
    "DaemonSet": ("spec.template.spec.restartPolicy", "spec.revisionHistoryLimit", "status"),
    "PodDisruptionBudget": ("status",),
    "Job": (
        *("spec.parallelism", "spec.completions", "spec.backoffLimit", "spec.suspend", "spec.selector"),
        *("spec.template.spec.restartPolicy", "status"),
    ),
    "ControllerRevision": ("revision", "data.spec.template.spec.restartPolicy"),
}
_TEMPLATES = {"Job": "spec", "ControllerRevision": "data.spec"}  # of the kinds that have no struct


def kept(document: Document) -> Document:
    """The object reduced; its kind is one of KINDS, or Job, or ControllerRevision."""
    kind = document["kind"]
    if kind in KINDS:
        made: Document = msgspec.to_builtins(decode_one(msgspec.json.encode(document), kind))
    else:
        made = {"metadata": _meta(document.get("metadata") or {})}
        _put(made, f"{_TEMPLATES[kind]}.template", _template(_at(document, f"{_TEMPLATES[kind]}.template") or {}))
    made["kind"], made["apiVersion"] = kind, document.get("apiVersion", "")
    for path in _MORE.get(kind, ()):
        _copy(document, made, path)
    _annotate(document, made)
    if kind == "Node":
        for condition in made.get("status", {}).get("conditions", []):
            if message := condition.pop("message", ""):
                condition.update({"message": SHUTTING_DOWN} if SHUTTING_DOWN in message else {})
    elif kind == "Pod" and "volumes" in made["spec"]:  # most carry nothing but a name, a different one in every pod
        made["spec"]["volumes"] = [volume for volume in made["spec"]["volumes"] if volume.keys() != {"name"}]
    made.get("metadata", {}).pop("resourceVersion", None)
    return made


def _meta(meta: Document) -> Document:
    names = ("name", "namespace", "uid", "generation", "labels", "ownerReferences", "creationTimestamp", "annotations")
    return {name: meta[name] for name in (*names, "deletionTimestamp", "finalizers") if meta.get(name)}


def _template(template: Document) -> Document:
    without_nulls = decode_one(msgspec.json.encode({"kind": "Pod", **template}), "Pod")
    made: Document = msgspec.to_builtins(msgspec.convert(msgspec.to_builtins(without_nulls), PodTemplateSpec))
    made.get("metadata", {}).pop("namespace", None)
    return made


def _annotate(document: Document, made: Document) -> None:
    """The annotations that matter, on the object and on its template."""
    for path in ("metadata", "spec.template.metadata", "data.spec.template.metadata"):
        if isinstance(meta := _at(made, path), dict):
            meta.pop("annotations", None)
            given = _at(document, f"{path}.annotations") or {}
            if found := {key: text for key, text in given.items() if key.startswith(_ANNOTATIONS)}:
                meta["annotations"] = found
    if (grace := _at(document, "metadata.deletionGracePeriodSeconds")) is not None:
        made["metadata"]["deletionGracePeriodSeconds"] = grace


def _copy(source: Any, target: Any, path: str) -> None:
    step, _, rest = path.partition(".")
    if not isinstance(source, dict) or not isinstance(target, dict):
        return
    name = step.removesuffix("[]")
    if source.get(name) is None:
        return
    if not rest:
        target[name] = source[name]
    elif step.endswith("[]"):
        for given, into in zip(source[name], target.setdefault(name, []), strict=False):
            _copy(given, into, rest)
    else:
        _copy(source[name], target.setdefault(name, {}), rest)


def _put(target: Document, path: str, value: Any) -> None:
    *above, last = path.split(".")
    for name in above:
        target = target.setdefault(name, {})
    target[last] = value


def _at(document: Any, path: str) -> Any:
    for name in path.split("."):
        document = document.get(name) if isinstance(document, dict) else None
    return document
