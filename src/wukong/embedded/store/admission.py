"""Admission of new and changed objects: the plugins of rules.admission, mutating functions, matchLabelKeys.

    defaults ─► limit ranges, priority, tolerations ─► mutating functions ─► the same again ─► validation
             ─► limit ranges ─► pod security ─► validating functions ─► quotas

The rules work on structs, which hold a part of a pod: what they change is written back into the whole document. Called
by writes.py. The service account's token is not mounted, and whether the account exists is not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from wukong.admission.mutation import merge_label_keys, run_plugins, set_default_amounts, tolerate_failing_nodes
from wukong.api.core import PersistentVolumeClaim, Pod, PriorityClass
from wukong.api.field_types import struct_named
from wukong.api.kinds import LIMIT_RANGES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, RESOURCE_QUOTAS
from wukong.api.objects import Objects
from wukong.api.quantity import parse_quantity
from wukong.api.resources import Key, Resource
from wukong.api.storage import StorageClass
from wukong.embedded.store.api_errors import forbidden
from wukong.embedded.store.database import Database
from wukong.embedded.store.documents import copy_document, meta_of, with_metadata
from wukong.embedded.store.kinds import ServedKind
from wukong.embedded.store.limits import limit_ranges, pod_security, quotas
from wukong.embedded.store.limits.usage import IGNORED
from wukong.embedded.store.stored_form import store_form_of
from wukong.embedded.store.validation.objects import decode_pod
from wukong.errors import InputError, Invalid
from wukong.ports import Document
from wukong.semantics.requests import container_requests_of
from wukong.semantics.volume_claims import (
    CLAIM_PROTECTION,
    CLASS_ANNOTATION,
    VOLUME_PROTECTION,
    class_of_claim,
    find_default_class,
)

Mutator = Callable[[Resource, Document], Document]  # gets a copy of every new object and returns it as it shall be
PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
STORAGE_CLASSES = "storageclasses.storage.k8s.io"
_NOT_READY_TAINT = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
_NO_RESIZE = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
)
_CPU_AND_MEMORY = ("cpu", "memory")
_POD = struct_named("Pod")
_PROTECTION = {PERSISTENT_VOLUME_CLAIMS.kind: CLAIM_PROTECTION, PERSISTENT_VOLUMES.kind: VOLUME_PROTECTION}
_LIMITED = (PODS, PERSISTENT_VOLUME_CLAIMS)


def mutate(resource: Resource, document: Document, mutators: Sequence[Mutator]) -> Document:
    """Return what the mutators, one after the other, make of a new object."""
    for mutator in mutators:
        document = mutator(resource, copy_document(document))
    return document


def add_not_ready_taint(node: Document) -> Document:
    """Return the node with the taint that keeps pods away until the node is found ready (TaintNodesByCondition)."""
    spec = node.get("spec") or {}
    taints = spec.get("taints") or []
    has_taint = any(
        (taint.get("key"), taint.get("effect")) == (_NOT_READY_TAINT["key"], _NOT_READY_TAINT["effect"])
        for taint in taints
    )
    return node if has_taint else {**node, "spec": {**spec, "taints": [*taints, dict(_NOT_READY_TAINT)]}}


def admit_claim(claim: Document, database: Database) -> Document:
    """Return a new claim with the default class, if it names none and there is one (DefaultStorageClass)."""
    spec = claim.get("spec") or {}
    annotations = meta_of(claim).get("annotations") or {}
    if spec.get("storageClassName") is not None or CLASS_ANNOTATION in annotations:
        return claim
    classes = [msgspec.convert(entry, StorageClass) for entry in database.list_objects(STORAGE_CLASSES)]
    default = find_default_class(classes)
    return claim if default is None else {**claim, "spec": {**spec, "storageClassName": default.metadata.name}}


def normalize_sources(claim: Document, before: Document | None = None) -> Document:
    """Return a claim whose dataSource and dataSourceRef say the same, if one of the two is there.

    A dataSource alone that is neither a claim nor a snapshot is dropped, as ever, unless the claim had one before.
    """
    spec = claim.get("spec") or {}
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    had_source = any((before or {}).get("spec", {}).get(name) for name in ("dataSource", "dataSourceRef"))
    if source and not reference and not had_source and not _is_old_source(source):
        return {**claim, "spec": {name: value for name, value in spec.items() if name != "dataSource"}}
    if source and not reference:
        return {**claim, "spec": {**spec, "dataSourceRef": dict(source)}}
    if reference and not source and not reference.get("namespace"):
        local = {name: value for name, value in reference.items() if name != "namespace"}
        return {**claim, "spec": {**spec, "dataSource": local}}
    return claim


def _is_old_source(source: Document) -> bool:
    kinds = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))
    return (source.get("apiGroup") or "", source.get("kind")) in kinds


def check_resize(before: Document, after: Document, database: Database) -> None:
    """Raise Denied where a claim may not grow: its class must allow it (PersistentVolumeClaimResize)."""
    old, new = (msgspec.convert(claim, PersistentVolumeClaim) for claim in (before, after))
    sizes = [parse_quantity(claim.spec.resources.requests.get("storage", 0)) for claim in (old, new)]
    if sizes[1] <= sizes[0]:
        return
    class_name = class_of_claim(old)
    storage_class = database.get(STORAGE_CLASSES, Key("", class_name)) if class_name else None
    is_allowed = class_of_claim(new) == class_name and bool((storage_class or {}).get("allowVolumeExpansion"))
    if not is_allowed:
        raise forbidden("persistentvolumeclaims", new.metadata.name, _NO_RESIZE)


def protect(kind: ServedKind, document: Document) -> Document:
    """Return a new claim or volume with the finalizer that keeps it while it is used (StorageObjectInUseProtection)."""
    finalizer = _PROTECTION.get(kind.resource.kind) if kind.resource.group == "" else None
    finalizers = meta_of(document).get("finalizers") or []
    if finalizer is None or finalizer in finalizers:
        return document
    return with_metadata(document, finalizers=[*finalizers, finalizer])


def admit_pod(pod: Document, database: Database) -> Document:
    """Return a new pod, whose defaults are filled in, after all plugins. They run again after mutators.

    Raises Denied where its priority class is unknown or contradicts its priority.
    """
    objects = Objects(
        priority_classes=[
            msgspec.convert(priority_class, PriorityClass) for priority_class in database.list_objects(PRIORITY_CLASSES)
        ]
    )
    account = pod["spec"].setdefault("serviceAccountName", "default")
    pod["spec"].setdefault("serviceAccount", account)
    return limit_ranges.set_defaults(_run_plugins(pod, objects), list_limit_ranges(pod, database)).pod


def list_limit_ranges(document: Document, database: Database) -> list[Document]:
    """The LimitRanges of an object's namespace."""
    return database.list_objects(LIMIT_RANGES.plural, meta_of(document).get("namespace", ""))


def check_limit_ranges(kind: ServedKind, document: Document, database: Database) -> None:
    """Raise Denied where a LimitRange refuses a new pod, or a claim."""
    ranges = list_limit_ranges(document, database) if kind.resource in _LIMITED else []
    if ranges:
        is_claim = kind.resource == PERSISTENT_VOLUME_CLAIMS
        find_refusals = limit_ranges.find_claim_refusals if is_claim else limit_ranges.find_pod_refusals
        for refusal in find_refusals(document, ranges):
            raise forbidden(kind.name, meta_of(document).get("name", ""), refusal)


def check_pod_security(pod: Document, database: Database) -> None:
    """Raise Denied where the namespace enforces a Pod Security Standard that a pod does not meet."""
    namespace = database.get("namespaces", Key("", meta_of(pod).get("namespace", "")))
    standard = pod_security.standard_of(namespace)
    if standard.level != "privileged" and (refusal := pod_security.find_refusal(standard, pod)):
        raise forbidden("pods", meta_of(pod).get("name", ""), refusal)


def charge_quotas(kind: ServedKind, before: Document | None, after: Document, database: Database) -> None:
    """Charge the quotas of its namespace for a new object, or one that takes more. Raises Denied where one refuses."""
    if not kind.resource.namespaced or kind.name in IGNORED:
        return
    present = database.list_objects(RESOURCE_QUOTAS.plural, meta_of(after).get("namespace", ""))
    if not present:
        return
    verdict = quotas.judge(kind.name, present, after, before)
    for refusal in verdict.refusals:
        raise forbidden(kind.name, meta_of(after).get("name", ""), refusal)
    for quota in verdict.charged:
        database.put(RESOURCE_QUOTAS.plural, quota)


def prepare_pod_for_create(pod: Document) -> Document:
    """Return a new pod with its label keys merged and its first status.

    Comes after validation, which reads the selectors as they were written.
    """
    before, after = decode_pod(pod), decode_pod(pod)
    merge_label_keys(after)
    prepared_pod: Document = _overlay(pod, msgspec.to_builtins(before), msgspec.to_builtins(after))
    if prepared_pod["spec"]["terminationGracePeriodSeconds"] < 0:  # once meant "at once"
        prepared_pod["spec"] = {**prepared_pod["spec"], "terminationGracePeriodSeconds": 1}
    prepared_pod["status"] = {"phase": "Pending", "qosClass": _qos_class_of(after)}
    if prepared_pod["spec"].get("schedulingGates"):
        message = "Scheduling is blocked due to non-empty scheduling gates"
        condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": message}
        prepared_pod["status"]["conditions"] = [condition]
    return prepared_pod


def admit_pod_update(old: Document, pod: Document) -> Document:
    """Return a changed pod with the priority it had and, like a new one, requests, ports and tolerations filled in."""
    if pod.get("spec") is old["spec"]:
        return pod
    kept_fields = {name: old["spec"][name] for name in ("priority", "preemptionPolicy") if name in old["spec"]}
    pod = {**pod, "spec": {**kept_fields, **(pod.get("spec") or {})}}
    if pod["spec"].get("terminationGracePeriodSeconds", 0) < 0:
        pod["spec"]["terminationGracePeriodSeconds"] = 1
    try:
        before, after = decode_pod(pod), decode_pod(pod)
    except Invalid:  # validation says why, and what else is wrong
        return pod
    set_default_amounts(after)
    if pod["spec"].get("tolerations") != old["spec"].get("tolerations"):
        tolerate_failing_nodes(after)
    admitted_pod: Document = _overlay(pod, msgspec.to_builtins(before), msgspec.to_builtins(after))
    return admitted_pod


def _run_plugins(pod: Document, objects: Objects) -> Document:
    before = decode_pod(pod)
    try:
        after = run_plugins(before, objects)
    except InputError as error:
        raise forbidden("pods", meta_of(pod).get("name", ""), "; ".join(error.problems)) from None
    return store_form_of(_POD, _overlay(pod, msgspec.to_builtins(before), msgspec.to_builtins(after)), pod)


def _overlay(value: Any, before: Any, after: Any) -> Any:
    """Return the value with all that differs between before and after put over it. Lists only grow at their end."""
    if before == after:
        return value
    if isinstance(value, dict) and isinstance(after, dict):
        old: Any = before if isinstance(before, dict) else {}
        return {**value, **{name: _overlay(value.get(name), old.get(name), entry) for name, entry in after.items()}}
    if isinstance(value, list) and isinstance(after, list):
        old = [*before, *[None] * (len(after) - len(before))] if isinstance(before, list) else [None] * len(after)
        padded = [*value, *[None] * (len(after) - len(value))]
        return [_overlay(*values) for values in zip(padded, old, after, strict=True)]
    return after


def _qos_class_of(pod: Pod) -> str:
    """Return the QoS class: Guaranteed where the limits of each container are its requests, for cpu and memory."""
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    amounts = [(container.resources.requests, container.resources.limits) for container in containers]
    named_resources = [name for requests, limits in amounts for name in (*requests, *limits) if name in _CPU_AND_MEMORY]
    if pod.spec.resources is not None and any(name in _CPU_AND_MEMORY for name in container_requests_of(pod)):
        named_resources.append("")
    if not named_resources:
        return "BestEffort"
    is_guaranteed = all(
        name in limits and requests.get(name) == limits[name]
        for requests, limits in amounts
        for name in _CPU_AND_MEMORY
    )
    return "Guaranteed" if is_guaranteed else "Burstable"
