"""Pods that have a node and wait for their volumes there (PreBind): what is written for them, and when they go on.

Called by controller.py. A volume that is there gets the claim's name, a claim to be provisioned gets the node's; then
the volume controller binds, and as in kube-scheduler it is looked for that once a second, ten minutes at most. What a
claim was promised is decided by the engine (volume_use.py). Pods all of whose claims are bound never get here.
"""

from __future__ import annotations

from math import ceil

import msgspec

from wukong.actions import Action, Patch
from wukong.api.core import PersistentVolume, PersistentVolumeClaim, Pod
from wukong.api.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from wukong.api.resources import Key
from wukong.engine.volume_use import Promise, promise_volumes
from wukong.ports import PatchBody
from wukong.semantics.node_selectors import accepts_node, compile_node_selector
from wukong.semantics.volume_claims import BOUND_BY_CONTROLLER, SELECTED_NODE, is_bound, is_reference_to
from wukong.state import State

POLL_SECONDS, LONGEST_WAIT = 1.0, 600.0  # bindTimeoutSeconds
_MOMENT = 1e-6


class Wait(msgspec.Struct):
    """One pod that waits. `seen` are the writes for it that the state has shown."""

    uid: str
    promise: Promise
    since: float
    due: float
    is_changed: bool = False
    is_known: bool = False  # what came of it, which is acted on when it is due
    seen: frozenset[str] = frozenset()

    def concerns(self, subject: PersistentVolume | PersistentVolumeClaim) -> bool:
        name = subject.metadata.name
        if isinstance(subject, PersistentVolume):
            reference = subject.spec.claim_ref
            key = None if reference is None else Key(reference.namespace, reference.name)
            return name in self.promise.bindings or key in self.promise.provisions
        key = Key(subject.metadata.namespace, name)
        return key in self.promise.bindings.values() or key in self.promise.provisions


def find_promise(pod: Pod, node: str, state: State) -> Promise | None:
    """What is to be bound before the pod is. None if everything is bound, or the pod has no claims."""
    if not pod.spec.volumes:
        return None
    snapshot = state.snapshot
    labels = snapshot.rows[snapshot.row_of[node]].labels
    return promise_volumes(snapshot.facts.volumes, snapshot.volume_use, pod, node, labels)


def build_writes(promise: Promise, state: State) -> tuple[Action, ...]:
    """Bind volumes to their claims, then name the node on the claims to be provisioned; not what is written already."""
    actions: list[Action] = []
    for name, key in promise.bindings.items():
        claim, volume = state.get(PersistentVolumeClaim, key), state.get(PersistentVolume, Key("", name))
        if claim is not None and volume is not None and not _is_bound_to(volume, claim):
            actions.append(_bind_volume(volume, claim))
    for key in promise.provisions:
        claim = state.get(PersistentVolumeClaim, key)
        if claim is not None and claim.metadata.annotations.get(SELECTED_NODE) != promise.node:
            body = {"metadata": {"uid": claim.metadata.uid, "annotations": {SELECTED_NODE: promise.node}}}
            actions.append(Patch(PERSISTENT_VOLUME_CLAIMS, key, PatchBody("merge", body)))
    return tuple(actions)


def _bind_volume(volume: PersistentVolume, claim: PersistentVolumeClaim) -> Patch:
    meta = claim.metadata
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
    }
    head = {"uid": volume.metadata.uid, "resourceVersion": volume.metadata.resource_version}
    is_kept = volume.spec.claim_ref is not None
    annotations = {} if is_kept else {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
    body = {"metadata": {**head, **annotations}, "spec": {"claimRef": reference}}
    return Patch(PERSISTENT_VOLUMES, Key("", volume.metadata.name), PatchBody("merge", body))


def start_wait(pod: Pod, promise: Promise, now: float) -> Wait:
    return Wait(pod.metadata.uid, promise, now, now + LONGEST_WAIT)


def look(wait: Wait, state: State, now: float) -> str | None:
    """Return "" once everything is bound, what went wrong, or None while it is to be waited for until `wait.due`.

    What has happened is found out at the next full second.
    """
    wait.is_changed = False
    result = _check(wait, state)
    if result is None:
        wait.due, wait.is_known = wait.since + LONGEST_WAIT, False
        return None if now < wait.due - _MOMENT else "binding volumes: context deadline exceeded"
    if not wait.is_known:
        seconds = max(POLL_SECONDS, ceil((now - wait.since) / POLL_SECONDS - _MOMENT) * POLL_SECONDS)
        wait.due, wait.is_known = wait.since + seconds, True
    return result if now >= wait.due - _MOMENT else None


def _check(wait: Wait, state: State) -> str | None:
    is_complete = True
    for check in (_check_binding, _check_provision):
        result = check(wait, state)
        if result:
            return f"binding volumes: {result}"
        is_complete = is_complete and result == ""
    return "" if is_complete else None


def _check_binding(wait: Wait, state: State) -> str | None:
    is_complete = True
    for name, key in wait.promise.bindings.items():
        claim, volume = state.get(PersistentVolumeClaim, key), state.get(PersistentVolume, Key("", name))
        if claim is None or volume is None:
            missing = f'persistentvolumeclaim "{key}"' if claim is None else f'persistentvolume "{name}"'
            return f"failed to check binding: {missing} not found"
        if _is_bound_to(volume, claim):
            wait.seen |= {name}
        elif name in wait.seen:
            return f'ClaimRef got reset for pv "{name}"'
        if not _is_reachable(volume, wait.promise.node, state):
            return _format_conflict(name, wait.promise.node)
        is_complete = is_complete and is_bound(claim)
    return "" if is_complete else None


def _check_provision(wait: Wait, state: State) -> str | None:
    is_complete, node = True, wait.promise.node
    for key in wait.promise.provisions:
        claim = state.get(PersistentVolumeClaim, key)
        if claim is None:
            return f'failed to check provisioning pvc: persistentvolumeclaim "{key}" not found'
        if claim.metadata.annotations.get(SELECTED_NODE) == node:
            wait.seen |= {str(key)}
        elif str(key) in wait.seen:
            return f'provisioning failed for PVC "{key.name}"'
        volume = state.get(PersistentVolume, Key("", claim.spec.volume_name)) if claim.spec.volume_name else None
        if volume is not None and not _is_reachable(volume, node, state):
            return _format_conflict(volume.metadata.name, node)
        is_complete = is_complete and is_bound(claim) and volume is not None
    return "" if is_complete else None


def _is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    reference = volume.spec.claim_ref
    return reference is not None and bool(reference.uid) and is_reference_to(reference, claim)


def _is_reachable(volume: PersistentVolume, node: str, state: State) -> bool:
    row = state.snapshot.row_of.get(node)
    required = volume.spec.node_affinity.required if volume.spec.node_affinity else None
    if row is None or required is None:
        return True
    return accepts_node(compile_node_selector(required), state.snapshot.rows[row].labels, "")


def _format_conflict(volume: str, node: str) -> str:
    return f'pv "{volume}" node affinity doesn\'t match node "{node}": no matching NodeSelectorTerms'
