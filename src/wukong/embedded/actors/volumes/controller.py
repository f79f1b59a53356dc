"""The volume controller: binds claims to volumes, says who is to make one, and what became of volumes let go.

Follows pkg/controller/volume/persistentvolume of 1.35. Keys are claims, and volumes (without a namespace).

- A claim that names its volume is bound to it if that suits and is free, and a volume that names a claim to that.
- A claim of a class that binds at once gets the smallest volume that suits, of those with the fewest access modes; one
  that waits for a first consumer is left to the scheduler, who names the volume, or the node to make one for.
- Where no volume suits, the claim's provisioner is named on it (provisioner.py).
- A volume whose claim is gone is Released; whoever made it deletes it, if its policy says so. A claim whose volume is
  gone, or is bound to another claim, is Lost.

Left out: expansion, events, and claims without a class that get a default one later.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.actions import DONE, Action, Outcome
from wukong.api.core import PersistentVolume, PersistentVolumeClaim
from wukong.api.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from wukong.api.meta import Object
from wukong.api.resources import Key, key_of
from wukong.api.storage import NO_PROVISIONER, StorageClass
from wukong.embedded.actors.volumes import binding
from wukong.semantics.volume_claims import (
    BETA_STORAGE_PROVISIONER,
    MIGRATED_PLUGINS,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    class_of_claim,
    class_of_volume,
    is_bound,
    is_reference_to,
    list_candidates,
    size_of_claim,
    size_of_volume,
    waits_for_consumer,
)
from wukong.state import State
from wukong.state.controller import Watch, each_side


def _keys_of_claim(subject: Object, state: State) -> Iterable[Key]:
    """The claim, and its volume."""
    assert isinstance(subject, PersistentVolumeClaim)
    yield key_of(subject)
    if subject.spec.volume_name:
        yield Key("", subject.spec.volume_name)


def _keys_of_volume(subject: Object, state: State) -> Iterable[Key]:
    """The volume, and the claims it is for: its own, or those that wait for one of its class."""
    assert isinstance(subject, PersistentVolume)
    yield Key("", subject.metadata.name)
    reference = subject.spec.claim_ref
    if reference is not None:
        yield Key(reference.namespace, reference.name)
    else:
        yield from _list_pending(state, class_of_volume(subject))


def _keys_of_class(subject: Object, state: State) -> Iterable[Key]:
    return _list_pending(state, subject.metadata.name)


def _list_pending(state: State, class_name: str) -> list[Key]:
    claims = state.objects.get(PERSISTENT_VOLUME_CLAIMS.group_kind, {})
    return [
        key
        for key, claim in sorted(claims.items())
        if isinstance(claim, PersistentVolumeClaim) and not is_bound(claim) and class_of_claim(claim) == class_name
    ]


class Volumes:
    name = "persistentvolume-binder"
    watches = (
        Watch(PERSISTENT_VOLUME_CLAIMS, each_side(_keys_of_claim)),
        Watch(PERSISTENT_VOLUMES, each_side(_keys_of_volume)),
        Watch(STORAGE_CLASSES, each_side(_keys_of_class)),
    )

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        if not key.namespace:
            volume = state.get(PersistentVolume, key)
            return DONE if volume is None else Outcome(tuple(_sync_volume(volume, state)))
        claim = state.get(PersistentVolumeClaim, key)
        if claim is None or claim.metadata.deletion_timestamp is not None:
            return DONE
        return Outcome(tuple(_sync_bound(claim, state) if is_bound(claim) else _sync_unbound(claim, state)))


def _sync_volume(volume: PersistentVolume, state: State) -> list[Action]:
    """The phase of a volume that is not being bound just now; also of one that is being deleted, which waits for it."""
    reference = volume.spec.claim_ref
    if reference is None:
        phase = "Available"
    else:
        claim = state.get(PersistentVolumeClaim, Key(reference.namespace, reference.name))
        if claim is not None and is_reference_to(reference, claim):
            return []  # with its claim
        phase = "Released" if reference.uid else "Available"
    return [binding.set_phase(volume, phase)] if volume.status.phase != phase else []


def _sync_bound(claim: PersistentVolumeClaim, state: State) -> list[Action]:
    volume = state.get(PersistentVolume, Key("", claim.spec.volume_name))
    if volume is not None and (volume.spec.claim_ref is None or is_reference_to(volume.spec.claim_ref, claim)):
        return binding.bind(volume, claim)
    return [binding.lose(claim)] if claim.status.phase != "Lost" else []


def _sync_unbound(claim: PersistentVolumeClaim, state: State) -> list[Action]:
    if claim.spec.volume_name:
        volume = state.get(PersistentVolume, Key("", claim.spec.volume_name))
        return binding.bind(volume, claim) if volume is not None and _can_have(claim, volume) else []
    storage_class = state.get(StorageClass, Key("", class_of_claim(claim)))
    is_waiting = waits_for_consumer(storage_class) and SELECTED_NODE not in claim.metadata.annotations
    volume = _find_volume(claim, state, takes_any=not waits_for_consumer(storage_class))
    if volume is not None:
        return binding.bind(volume, claim)
    if is_waiting or storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
        return []
    return _name_provisioner(claim, storage_class)


def _can_have(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """Whether a claim gets the volume that it names. One that names the claim, too, need not suit."""
    if volume.spec.claim_ref is not None:
        return is_reference_to(volume.spec.claim_ref, claim)
    asked, offered = claim.spec, volume.spec
    return (
        volume.metadata.deletion_timestamp is None
        and size_of_volume(volume) >= size_of_claim(claim)
        and class_of_volume(volume) == class_of_claim(claim)
        and (offered.volume_attributes_class_name or "") == (asked.volume_attributes_class_name or "")
        and (offered.volume_mode or "Filesystem") == (asked.volume_mode or "Filesystem")
        and set(asked.access_modes) <= set(offered.access_modes)
    )


def _find_volume(claim: PersistentVolumeClaim, state: State, *, takes_any: bool) -> PersistentVolume | None:
    """The volume kept for the claim or, if it `takes_any`, the best of those that suit."""
    volumes = state.objects.get(PERSISTENT_VOLUMES.group_kind, {}).values()
    kept, suitable = list_candidates(claim, (entry for entry in volumes if isinstance(entry, PersistentVolume)))
    if kept is not None or not takes_any:
        return kept
    return min(
        suitable,
        key=lambda volume: (len(volume.spec.access_modes), size_of_volume(volume), volume.metadata.name),
        default=None,
    )


def _name_provisioner(claim: PersistentVolumeClaim, storage_class: StorageClass) -> list[Action]:
    name = MIGRATED_PLUGINS.get(storage_class.provisioner, storage_class.provisioner)
    if claim.metadata.annotations.get(STORAGE_PROVISIONER) == name:
        return []
    return [binding.annotate_claim(claim, {STORAGE_PROVISIONER: name, BETA_STORAGE_PROVISIONER: name})]
