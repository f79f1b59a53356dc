"""What happens to a new pod before it is stored: the plugins of rules.admission, mutating functions, label keys.

    defaults ─► priority, tolerations ─► mutating functions ─► priority, tolerations again ─► matchLabelKeys merged

The rules work on structs, which read a part of a pod: what they change is written back into the whole document. Called
by writing.py. The service account's token is not mounted, and nobody asks whether the account exists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from wukong.admission.mutation import merge_label_keys, run_plugins, tolerate_failing_nodes
from wukong.api.core import Pod, PriorityClass
from wukong.api.kinds import Objects
from wukong.api.resources import Resource
from wukong.embedded.store.api_errors import forbidden
from wukong.embedded.store.database import Database
from wukong.embedded.store.documents import copied, meta_of
from wukong.embedded.store.kinds import PODS
from wukong.embedded.store.normalize import normal
from wukong.embedded.store.validation.objects import as_pod
from wukong.errors import InputError
from wukong.ports import Document
from wukong.semantics.requests import container_requests_of

Mutator = Callable[[Resource, Document], Document]  # sees every new object, and gives it back as it shall be
CLASSES = "priorityclasses.scheduling.k8s.io"
_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
_CPU_AND_MEMORY = ("cpu", "memory")


def mutated(resource: Resource, document: Document, mutators: Sequence[Mutator]) -> Document:
    for mutate in mutators:
        document = mutate(resource, copied(document))
    return document


def not_ready(node: Document) -> Document:
    """A new node takes no pods before somebody found it ready and took this taint away."""
    spec = node.get("spec") or {}
    taints = spec.get("taints") or []
    is_there = any(
        (each.get("key"), each.get("effect")) == (_NOT_READY["key"], _NOT_READY["effect"]) for each in taints
    )
    return node if is_there else {**node, "spec": {**spec, "taints": [*taints, dict(_NOT_READY)]}}


def admitted(pod: Document, database: Database, mutators: Sequence[Mutator]) -> Document:
    """Raises Denied where the pod's priority cannot be what it says."""
    objects = Objects(priority_classes=[msgspec.convert(each, PriorityClass) for each in database.all(CLASSES)])
    account = pod["spec"].setdefault("serviceAccountName", "default")
    pod["spec"].setdefault("serviceAccount", account)
    pod = _plugged_in(pod, objects)
    if mutators:
        pod = _plugged_in(mutated(PODS, pod, mutators), objects)
    return pod


def prepared(pod: Document) -> Document:
    """The last steps, after validation could read the selectors as they were written: label keys, and the status."""
    before, after = as_pod(pod), as_pod(pod)
    merge_label_keys(after)
    made: Document = _overlaid(pod, msgspec.to_builtins(before), msgspec.to_builtins(after))
    made["status"] = {"phase": "Pending", "qosClass": _quality(after)}
    if made["spec"].get("schedulingGates"):
        why = "Scheduling is blocked due to non-empty scheduling gates"
        gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": why}
        made["status"]["conditions"] = [gated]
    return made


def readmitted(old: Document, pod: Document) -> Document:
    """A changed pod keeps its priority, and tolerates failing nodes for a while, as a new one does."""
    if pod.get("spec") is old["spec"]:
        return pod
    kept = {name: old["spec"][name] for name in ("priority", "preemptionPolicy") if name in old["spec"]}
    pod = {**pod, "spec": {**kept, **(pod.get("spec") or {})}}
    if pod["spec"].get("tolerations") == old["spec"].get("tolerations"):
        return pod
    before, after = as_pod(pod), as_pod(pod)
    tolerate_failing_nodes(after)
    made: Document = _overlaid(pod, msgspec.to_builtins(before), msgspec.to_builtins(after))
    return made


def _plugged_in(pod: Document, objects: Objects) -> Document:
    before = as_pod(pod)
    try:
        after = run_plugins(before, objects)
    except InputError as error:
        raise forbidden("pods", meta_of(pod).get("name", ""), "; ".join(error.problems)) from None
    return normal(_overlaid(pod, msgspec.to_builtins(before), msgspec.to_builtins(after)))


def _overlaid(value: Any, before: Any, after: Any) -> Any:
    """The value with what differs between before and after put over it. Lists only ever grew at their end."""
    if before == after:
        return value
    if isinstance(value, dict) and isinstance(after, dict):
        was: Any = before if isinstance(before, dict) else {}
        return {**value, **{name: _overlaid(value.get(name), was.get(name), entry) for name, entry in after.items()}}
    if isinstance(value, list) and isinstance(after, list):
        was = [*before, *[None] * (len(after) - len(before))] if isinstance(before, list) else [None] * len(after)
        held = [*value, *[None] * (len(after) - len(value))]
        return [_overlaid(*each) for each in zip(held, was, after, strict=True)]
    return after


def _quality(pod: Pod) -> str:
    """The quality of service class: Guaranteed where each container's limits are its requests, for cpu and memory."""
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    amounts = [(each.resources.requests, each.resources.limits) for each in containers]
    said = [name for requests, limits in amounts for name in (*requests, *limits) if name in _CPU_AND_MEMORY]
    if pod.spec.resources is not None and any(name in _CPU_AND_MEMORY for name in container_requests_of(pod)):
        said.append("")
    if not said:
        return "BestEffort"
    is_guaranteed = all(
        name in limits and requests.get(name) == limits[name]
        for requests, limits in amounts
        for name in _CPU_AND_MEMORY
    )
    return "Guaranteed" if is_guaranteed else "Burstable"
