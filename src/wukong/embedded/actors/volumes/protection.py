"""The protection controllers: a claim that a pod uses, and a volume that is bound, stay until that is over.

Follow pkg/controller/volume/pvcprotection and pvprotection of 1.35. The finalizers come with admission (store/
admission.py); what was created without gets its own here. A claim is in use by pods that have a node, whether they run
or not; its ephemeral volume's pod may be just waiting for its removal. A volume is in use as long as it is Bound.

Whether a pod uses a claim is read from the mirror; the real controller asks the API server before it lets one go.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.actions import DONE, Outcome, Patch
from wukong.api.core import PersistentVolume, PersistentVolumeClaim
from wukong.api.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from wukong.api.meta import Object
from wukong.api.resources import Key, Resource, key_of
from wukong.embedded.actors.pods import MANAGER
from wukong.embedded.actors.watch_keys import has_same_volumes
from wukong.embedded.store.documents import value_at
from wukong.embedded.world.objects import Pod
from wukong.ports import PatchBody
from wukong.semantics.volume_claims import CLAIM_PROTECTION, VOLUME_PROTECTION
from wukong.state import State
from wukong.state.controller import Watch, each_side, each_side_unless


def _keys_of_claim(subject: Object, _: State) -> Iterable[Key]:
    return (key_of(subject),) if _is_due(subject, CLAIM_PROTECTION) else ()


def _keys_of_volume(subject: Object, _: State) -> Iterable[Key]:
    return (Key("", subject.metadata.name),) if _is_due(subject, VOLUME_PROTECTION) else ()


@each_side_unless(has_same_volumes)
def _keys_of_pod(subject: Object, state: State) -> Iterable[Key]:
    """The claims of a pod that are being deleted."""
    assert isinstance(subject, Pod)
    if not subject.spec.volumes:
        return ()
    keys = (Key(subject.metadata.namespace, name) for name in _list_claims(subject))
    claims = (state.get(PersistentVolumeClaim, key) for key in keys)
    return [key_of(claim) for claim in claims if claim is not None and claim.metadata.deletion_timestamp is not None]


def _is_due(subject: Object, finalizer: str) -> bool:
    """Whether an object lacks its finalizer, or is being deleted and has it."""
    return (finalizer in subject.metadata.finalizers) == (subject.metadata.deletion_timestamp is not None)


class ClaimProtection:
    name = "pvc-protection-controller"
    watches = (Watch(PERSISTENT_VOLUME_CLAIMS, each_side(_keys_of_claim)), Watch(PODS, _keys_of_pod))

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        claim = state.get(PersistentVolumeClaim, key)
        if claim is None or not _is_due(claim, CLAIM_PROTECTION):
            return DONE
        is_leaving = claim.metadata.deletion_timestamp is not None
        if is_leaving and any(_uses(pod, claim) for pod in state.of(Pod).values()):
            return DONE
        return Outcome((_patch_finalizers(PERSISTENT_VOLUME_CLAIMS, claim, CLAIM_PROTECTION),))


class VolumeProtection:
    name = "pv-protection-controller"
    watches = (Watch(PERSISTENT_VOLUMES, each_side(_keys_of_volume)),)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        volume = state.get(PersistentVolume, key)
        if volume is None or not _is_due(volume, VOLUME_PROTECTION):
            return DONE
        if volume.metadata.deletion_timestamp is not None and volume.status.phase == "Bound":
            return DONE
        return Outcome((_patch_finalizers(PERSISTENT_VOLUMES, volume, VOLUME_PROTECTION),))


def _uses(pod: Object, claim: PersistentVolumeClaim) -> bool:
    if not isinstance(pod, Pod) or not pod.spec.node_name or pod.metadata.namespace != claim.metadata.namespace:
        return False
    claims = [volume.persistent_volume_claim for volume in pod.spec.volumes if volume.persistent_volume_claim]
    if any(source.claim_name == claim.metadata.name for source in claims):
        return True
    is_its_own = any(owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references)
    return is_its_own and claim.metadata.name in _list_claims(pod) and not _is_shut_down(pod)


def _is_shut_down(pod: Pod) -> bool:
    """Whether its kubelet is done with it, or it was deleted by force: only its removal is waited for."""
    return pod.is_terminating and value_at(pod.document, "metadata.deletionGracePeriodSeconds") == 0


def _list_claims(pod: Pod) -> list[str]:
    """The names of its claims, those of ephemeral volumes included."""
    volumes = pod.spec.volumes
    named = [volume.persistent_volume_claim.claim_name for volume in volumes if volume.persistent_volume_claim]
    return [*named, *(f"{pod.metadata.name}-{volume.name}" for volume in volumes if volume.ephemeral is not None)]


def _patch_finalizers(resource: Resource, subject: Object, finalizer: str) -> Patch:
    """Add the finalizer, or remove it from what is being deleted; on this very version, as an update does."""
    meta = subject.metadata
    rest = [name for name in meta.finalizers if name != finalizer]
    finalizers = rest if meta.deletion_timestamp is not None else [*rest, finalizer]
    body = {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version, "finalizers": finalizers or None}}
    return Patch(resource, key_of(subject), PatchBody("merge", body, manager=MANAGER))
