"""The ephemeral volume controller: makes the claims of pods' ephemeral volumes, which go with their pods.

Follows pkg/controller/volume/ephemeral of 1.35. A claim of that name that is another's is left alone, and the pod
waits.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.actions import DONE, Action, Create, Outcome
from wukong.api.core import PersistentVolumeClaim
from wukong.api.kinds import PERSISTENT_VOLUME_CLAIMS, PODS
from wukong.api.meta import Object, controller_of
from wukong.api.resources import Key, key_of
from wukong.embedded.actors import pods
from wukong.embedded.actors.watch_keys import has_same_volumes
from wukong.embedded.world.objects import Pod
from wukong.state import State
from wukong.state.controller import Watch, each_side, each_side_unless


@each_side_unless(has_same_volumes)
def _key_of_pod(subject: Object, _: State) -> Iterable[Key]:
    assert isinstance(subject, Pod)
    volumes = subject.spec.volumes
    return (key_of(subject),) if volumes and any(volume.ephemeral is not None for volume in volumes) else ()


def _key_of_owner(subject: Object, _: State) -> Iterable[Key]:
    owner = controller_of(subject.metadata)
    is_pods = owner is not None and owner.kind == PODS.kind
    return (Key(subject.metadata.namespace, owner.name),) if is_pods and owner is not None else ()


class EphemeralVolumes:
    name = "ephemeral-volume"
    watches = (Watch(PODS, _key_of_pod), Watch(PERSISTENT_VOLUME_CLAIMS, each_side(_key_of_owner)))

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        pod = state.get(Pod, key)
        if pod is None or pod.metadata.deletion_timestamp is not None:
            return DONE
        actions: list[Action] = []
        for volume in pod.document["spec"].get("volumes") or ():
            name = f"{key.name}-{volume['name']}"
            is_missing = state.get(PersistentVolumeClaim, Key(key.namespace, name)) is None
            if volume.get("ephemeral") is not None and is_missing:
                template = volume["ephemeral"].get("volumeClaimTemplate") or {}
                owner = {**pods.reference_to(PODS, pod), "controller": True, "blockOwnerDeletion": True}
                kept = {name: entry for name, entry in (template.get("metadata") or {}).items() if entry}
                meta = {**kept, "name": name, "ownerReferences": [owner]}
                body = {"metadata": meta, "spec": template.get("spec") or {}}
                actions.append(Create(PERSISTENT_VOLUME_CLAIMS, body, key.namespace))
        return Outcome(tuple(actions)) if actions else DONE
