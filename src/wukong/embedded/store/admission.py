"""Admission of new and changed objects: the plugins of rules.admission, mutating functions, matchLabelKeys.

    defaults ─► priority, tolerations ─► mutating functions ─► priority, tolerations again ─► matchLabelKeys merged

The rules work on structs, which hold a part of a pod: what they change is written back into the whole document. Called
by writes.py. The service account's token is not mounted, and whether the account exists is not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from wukong.admission.mutation import merge_label_keys, run_plugins, tolerate_failing_nodes
from wukong.api.core import Pod, PriorityClass
from wukong.api.objects import Objects
from wukong.api.resources import Resource
from wukong.embedded.store.api_errors import forbidden
from wukong.embedded.store.database import Database
from wukong.embedded.store.documents import copy_document, meta_of
from wukong.embedded.store.normalize import normalize
from wukong.embedded.store.validation.objects import decode_pod
from wukong.errors import InputError
from wukong.ports import Document
from wukong.semantics.requests import container_requests_of

Mutator = Callable[[Resource, Document], Document]  # gets a copy of every new object and returns it as it shall be
PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
_NOT_READY_TAINT = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
_CPU_AND_MEMORY = ("cpu", "memory")


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
    return _run_plugins(pod, objects)


def prepare_pod_for_create(pod: Document) -> Document:
    """Return a new pod with its label keys merged and its first status.

    Comes after validation, which reads the selectors as they were written.
    """
    before, after = decode_pod(pod), decode_pod(pod)
    merge_label_keys(after)
    prepared_pod: Document = _overlay(pod, msgspec.to_builtins(before), msgspec.to_builtins(after))
    prepared_pod["status"] = {"phase": "Pending", "qosClass": _qos_class_of(after)}
    if prepared_pod["spec"].get("schedulingGates"):
        message = "Scheduling is blocked due to non-empty scheduling gates"
        condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": message}
        prepared_pod["status"]["conditions"] = [condition]
    return prepared_pod


def admit_pod_update(old: Document, pod: Document) -> Document:
    """Return a changed pod with the priority it had and, like a new one, the tolerations of failing nodes."""
    if pod.get("spec") is old["spec"]:
        return pod
    kept_fields = {name: old["spec"][name] for name in ("priority", "preemptionPolicy") if name in old["spec"]}
    pod = {**pod, "spec": {**kept_fields, **(pod.get("spec") or {})}}
    if pod["spec"].get("tolerations") == old["spec"].get("tolerations"):
        return pod
    before, after = decode_pod(pod), decode_pod(pod)
    tolerate_failing_nodes(after)
    admitted_pod: Document = _overlay(pod, msgspec.to_builtins(before), msgspec.to_builtins(after))
    return admitted_pod


def _run_plugins(pod: Document, objects: Objects) -> Document:
    before = decode_pod(pod)
    try:
        after = run_plugins(before, objects)
    except InputError as error:
        raise forbidden("pods", meta_of(pod).get("name", ""), "; ".join(error.problems)) from None
    return normalize(_overlay(pod, msgspec.to_builtins(before), msgspec.to_builtins(after)))


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
