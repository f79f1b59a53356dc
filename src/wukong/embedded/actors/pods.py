"""Pods as controllers see them: active, ready, available; and the actions that create and delete them.

Used by every workload actor, by scenarios and by views.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.actions import Create, Delete
from wukong.api.core import Pod as AnyPod
from wukong.api.core import PodCondition
from wukong.api.kinds import PODS
from wukong.api.meta import Object, controller_of
from wukong.api.resources import Resource, key_of
from wukong.embedded.store.documents import parse_time
from wukong.embedded.world.objects import Pod
from wukong.ports import Document
from wukong.state import State

MANAGER = "kube-controller-manager"


def list_owned(state: State, owner: Object) -> list[Pod]:
    """The pods whose controller is this owner, sorted by key."""
    candidates = [state.get(Pod, key) for key in state.owners.owned_by(owner.metadata.uid, PODS)]
    return [pod for pod in candidates if pod is not None and is_controlled_by(pod, owner)]


def is_controlled_by(subject: Object, owner: Object) -> bool:
    controller = controller_of(subject.metadata)
    return controller is not None and controller.uid == owner.metadata.uid


def is_active(pod: AnyPod) -> bool:
    return not pod.is_finished and not pod.is_terminating


def condition(pod: AnyPod, kind: str) -> PodCondition | None:
    for condition in pod.status.conditions:
        if condition.type == kind:
            return condition
    return None


def is_ready(pod: AnyPod) -> bool:
    ready = condition(pod, "Ready")
    return ready is not None and ready.status == "True"


def ready_since(pod: AnyPod) -> float:
    """When it last became ready; 0 if its status does not say."""
    ready = condition(pod, "Ready")
    return parse_time(ready.last_transition_time) if ready is not None and ready.last_transition_time else 0.0


def is_available(pod: AnyPod, min_ready_seconds: int, now: float) -> bool:
    if not is_ready(pod):
        return False
    since = ready_since(pod)
    return min_ready_seconds == 0 or (since > 0 and since + min_ready_seconds <= now)


def is_maturing(pod: AnyPod, min_ready_seconds: int, now: float) -> bool:
    """Whether waiting alone makes it available."""
    if not min_ready_seconds or not is_ready(pod):
        return False
    since = ready_since(pod)
    return since > 0 and since + min_ready_seconds > now


def seconds_until_available(ready_times: Iterable[float], min_ready_seconds: int, now: float) -> float | None:
    """Seconds until the next of the pods that became ready then is available by waiting alone. None if none will be."""
    if not min_ready_seconds:
        return None
    waits = (since + min_ready_seconds - now for since in ready_times)
    return min((wait for wait in waits if wait > 0), default=None)


def reference_to(resource: Resource, owner: Object) -> Document:
    """The owner reference that a controller writes into the objects it creates or adopts."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def create_pod(resource: Resource, owner: Object, template: Document, **meta: object) -> Create:
    """Create a pod from the template, with `meta` added to its metadata.

    Without a `name` the server gives it one that begins with the owner's.
    """
    template_meta = template.get("metadata") or {}
    pod_meta: Document = {
        name: template_meta[name] for name in ("labels", "annotations", "finalizers") if template_meta.get(name)
    }
    if "name" not in meta:
        pod_meta["generateName"] = f"{owner.metadata.name}-"
    pod_meta |= {"namespace": owner.metadata.namespace, "ownerReferences": [reference_to(resource, owner)], **meta}
    return Create(PODS, {"metadata": pod_meta, "spec": template.get("spec") or {}}, owner.metadata.namespace)


def delete_pod(pod: AnyPod) -> Delete:
    return Delete(PODS, key_of(pod), uid=pod.metadata.uid)
