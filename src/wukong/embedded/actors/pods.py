"""Pods as controllers see them: active, ready, available; and new pods from a template. For every workload actor."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from wukong.actions import Create, Delete
from wukong.api.core import Pod as AnyPod
from wukong.api.core import PodCondition
from wukong.api.kinds import PODS
from wukong.api.meta import Object, controller_of
from wukong.api.resources import Key, key_of
from wukong.embedded.store.documents import parse_time
from wukong.embedded.world.objects import Pod
from wukong.ports import Document
from wukong.state import Change, State

MANAGER = "kube-controller-manager"


def keys_on_node(change: Change, state: State) -> list[Key]:
    """The pods on a node that changed."""
    return state.pods.on_node(change.key.name)


def owned_pods(state: State, owner: Object) -> list[Pod]:
    """The pods whose controller this is, sorted by key."""
    found = [state.get(Pod, key) for key in state.owners.owned_by(owner.metadata.uid, PODS)]
    return [pod for pod in found if pod is not None and is_controlled_by(pod, owner)]


def is_controlled_by(found: Object, owner: Object) -> bool:
    controller = controller_of(found.metadata)
    return controller is not None and controller.uid == owner.metadata.uid


def is_active(pod: AnyPod) -> bool:
    return not pod.is_finished and not pod.is_terminating


def condition(pod: AnyPod, kind: str) -> PodCondition | None:
    return next((each for each in pod.status.conditions if each.type == kind), None)


def is_ready(pod: AnyPod) -> bool:
    ready = condition(pod, "Ready")
    return ready is not None and ready.status == "True"


def ready_since(pod: AnyPod) -> float:
    """When it last became ready; 0 if it does not say."""
    ready = condition(pod, "Ready")
    return parse_time(ready.last_transition_time) if ready is not None and ready.last_transition_time else 0.0


def is_available(pod: AnyPod, min_ready_seconds: int, now: float) -> bool:
    if not is_ready(pod):
        return False
    since = ready_since(pod)
    return min_ready_seconds == 0 or (since > 0 and since + min_ready_seconds <= now)


def next_available(pods: Iterable[AnyPod], min_ready_seconds: int, now: float) -> float | None:
    """Seconds until the next of these pods becomes available by waiting alone."""
    if not min_ready_seconds:
        return None
    waits = [ready_since(pod) + min_ready_seconds - now for pod in pods if is_ready(pod)]
    least = min((wait for wait in waits if wait > 0), default=inf)
    return None if least == inf else least


def reference(kind: str, api_version: str, owner: Object) -> Document:
    """What a controller writes into what it makes."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def new_pod(template: Document, owner: Object, reference: Document, **meta: object) -> Create:
    """A pod as the template says. Without a `name` it gets one that begins with the owner's."""
    given = template.get("metadata") or {}
    made: Document = {name: given[name] for name in ("labels", "annotations", "finalizers") if given.get(name)}
    if "name" not in meta:
        made["generateName"] = f"{owner.metadata.name}-"
    made |= {"namespace": owner.metadata.namespace, "ownerReferences": [reference], **meta}
    return Create(PODS, {"metadata": made, "spec": template.get("spec") or {}}, owner.metadata.namespace)


def deletion(pod: AnyPod) -> Delete:
    return Delete(PODS, key_of(pod), uid=pod.metadata.uid)
