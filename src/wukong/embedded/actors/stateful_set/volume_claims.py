"""The volume claims of a StatefulSet's pods: created before the pod, kept or deleted by its retention policy. Pure.

Called by sync.py, ordinals.py and ordinal_index.py. Claims are bound by actors/volumes and the scheduler.
"""

from __future__ import annotations

from wukong.actions import Action, Create, Patch
from wukong.api.core import PersistentVolumeClaim
from wukong.api.kinds import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from wukong.api.meta import Object, OwnerReference
from wukong.api.resources import Key
from wukong.embedded.actors import pods
from wukong.embedded.actors.events import note_about
from wukong.embedded.world.objects import Pod, StatefulSet
from wukong.ports import Document, PatchBody
from wukong.state import State


def _claim_templates_of(stateful_set: StatefulSet) -> list[Document]:
    return list(stateful_set.document["spec"].get("volumeClaimTemplates") or ())


def build_volumes(stateful_set: StatefulSet, pod: str, volumes: list[Document]) -> list[Document]:
    """The claims of the pod of this name as volumes, then the template's; a claim replaces a volume of its name."""
    names = [template["metadata"]["name"] for template in _claim_templates_of(stateful_set)]
    claimed = {name: {"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{pod}"}} for name in names}
    return [*claimed.values(), *(volume for volume in volumes if volume.get("name") not in claimed)]


def build_prefixes(stateful_set: StatefulSet) -> tuple[Key, ...]:
    """What the keys of its claims begin with, before the ordinal."""
    meta = stateful_set.metadata
    names = [template["metadata"]["name"] for template in _claim_templates_of(stateful_set)]
    return tuple(Key(meta.namespace, f"{name}-{meta.name}-") for name in names)


def maintain_claims(stateful_set: StatefulSet, pod: Pod, state: State) -> list[Action]:
    """What the claims of a pod that stays need: those that a pending one lacks, and their owners."""
    if not _claim_templates_of(stateful_set):
        return []
    is_pending = pod.status.phase == "Pending"
    claims = create_missing(stateful_set, pod.metadata.name, state) if is_pending else []
    return [*claims, *update_owners(stateful_set, pod, state, is_condemned=False)]


def create_missing(stateful_set: StatefulSet, pod: str, state: State) -> list[Action]:
    """Create the claims that the pod of this name needs and that are not there, each with its Event."""
    actions: list[Action] = []
    meta = stateful_set.metadata
    for template in _claim_templates_of(stateful_set):
        name = f"{template['metadata']['name']}-{pod}"
        present = state.get(PersistentVolumeClaim, Key(meta.namespace, name))
        if present is not None and present.metadata.deletion_timestamp is None:
            continue  # one that is being deleted is refused as it is there, and tried again: the pod waits for its end
        template_meta = template["metadata"]
        selector = (stateful_set.document["spec"].get("selector") or {}).get("matchLabels") or {}
        claim_meta: Document = {"name": name, "labels": {**(template_meta.get("labels") or {}), **selector}}
        if template_meta.get("annotations"):
            claim_meta["annotations"] = template_meta["annotations"]
        if _deletes_claims(stateful_set, "whenDeleted"):
            claim_meta["ownerReferences"] = [pods.reference_to(STATEFUL_SETS, stateful_set)]
        body = {"metadata": claim_meta, "spec": template.get("spec") or {}}
        actions.append(Create(PERSISTENT_VOLUME_CLAIMS, body, meta.namespace))
        text = f"create Claim {name} Pod {pod} in StatefulSet {meta.name} success"
        actions.append(note_about(STATEFUL_SETS, stateful_set, "SuccessfulCreate", text))
    return actions


def update_owners(stateful_set: StatefulSet, pod: Pod, state: State, *, is_condemned: bool) -> list[Action]:
    """Set the owner that a pod's claims are deleted with: the StatefulSet, a pod that is scaled away, or none."""
    wanted: list[Document] = []
    if _deletes_claims(stateful_set, "whenScaled") and is_condemned:
        wanted = [pods.reference_to(PODS, pod)]
    elif _deletes_claims(stateful_set, "whenDeleted"):
        wanted = [pods.reference_to(STATEFUL_SETS, stateful_set)]
    actions: list[Action] = []
    for template in _claim_templates_of(stateful_set):
        key = Key(pod.metadata.namespace, f"{template['metadata']['name']}-{pod.metadata.name}")
        claim = state.get(PersistentVolumeClaim, key)
        if claim is None or claim.metadata.deletion_timestamp is not None:
            continue
        owners = claim.metadata.owner_references
        our_uids = [owner.uid for owner in owners if _is_ours(owner, stateful_set, pod)]
        if our_uids == [reference["uid"] for reference in wanted]:
            continue
        references = [*({"$patch": "delete", "uid": uid} for uid in our_uids), *wanted]
        body = {"metadata": {"uid": claim.metadata.uid, "ownerReferences": references}}
        actions.append(Patch(PERSISTENT_VOLUME_CLAIMS, key, PatchBody("strategic", body, manager=pods.MANAGER)))
    return actions


def _is_ours(owner: OwnerReference, stateful_set: Object, pod: Object) -> bool:
    ours = ((STATEFUL_SETS.kind, stateful_set.metadata.name), (PODS.kind, pod.metadata.name))
    return (owner.kind, owner.name) in ours


def _deletes_claims(stateful_set: StatefulSet, when: str) -> bool:
    """Whether the retention policy is Delete; `when` is whenScaled or whenDeleted."""
    policy = stateful_set.document["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return bool(policy.get(when) == "Delete")
