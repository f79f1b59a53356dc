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
from wukong.api.kinds import KINDS, NODES, PODS
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


def reduce_document(document: Document) -> Document:
    """The object with what a snapshot keeps of its kind; its kind and apiVersion are in it."""
    kind = KINDS.of_document(document["kind"], document.get("apiVersion", ""))
    assert kind is not None, f"{document['kind']} is not in the table of kinds"
    assert kind.snapshot is not None, f"no snapshot holds {kind.group_kind}"
    if kind.snapshot.template_in:
        reduced: Document = {"metadata": _meta(document.get("metadata") or {})}
        path = f"{kind.snapshot.template_in}.template"
        _put(reduced, path, _template(_at(document, path) or {}))
    else:
        reduced = msgspec.to_builtins(decode_one(msgspec.json.encode(document), kind.group_kind))
    reduced["kind"], reduced["apiVersion"] = document["kind"], document.get("apiVersion", "")
    for path in kind.snapshot.more:
        _copy(document, reduced, path)
    _annotate(document, reduced)
    if kind.resource == NODES:
        for condition in reduced.get("status", {}).get("conditions", []):
            if message := condition.pop("message", ""):
                condition.update({"message": SHUTTING_DOWN} if SHUTTING_DOWN in message else {})
    elif kind.resource == PODS and "volumes" in reduced["spec"]:  # most carry only a name, another one in every pod
        reduced["spec"]["volumes"] = [volume for volume in reduced["spec"]["volumes"] if volume.keys() != {"name"}]
    reduced.get("metadata", {}).pop("resourceVersion", None)
    return reduced


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
