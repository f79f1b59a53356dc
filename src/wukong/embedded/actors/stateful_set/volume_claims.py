"""The volume claims of a StatefulSet's pods: made before the pod, kept or deleted as its retention policy says. Pure.

Called by stateful_set.py. Nobody binds claims here: a pod with one that is not bound is placed as if it had none, as in
a cluster whose storage is at hand on every node.
"""

from __future__ import annotations

from wukong.actions import Action, Create, Patch
from wukong.api.core import PersistentVolumeClaim
from wukong.api.kinds import PERSISTENT_VOLUME_CLAIMS, STATEFUL_SETS
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.embedded.actors import pods
from wukong.embedded.actors.events import note
from wukong.embedded.world.objects import Pod, StatefulSet
from wukong.ports import Document, PatchBody
from wukong.state import State


def templates(stateful_set: StatefulSet) -> list[Document]:
    return list(stateful_set.document["spec"].get("volumeClaimTemplates") or ())


def volumes(stateful_set: StatefulSet, pod: str, own: list[Document]) -> list[Document]:
    """The claims of the pod of this name as volumes, then its own; a claim replaces a volume of the same name."""
    named = {it["metadata"]["name"]: {"claimName": f"{it['metadata']['name']}-{pod}"} for it in templates(stateful_set)}
    made: list[Document] = [{"name": name, "persistentVolumeClaim": claim} for name, claim in named.items()]
    return [*made, *(it for it in own if it.get("name") not in named)]


def missing(stateful_set: StatefulSet, pod: str, state: State) -> list[Action]:
    """Claims that the pod of this name needs and that are not there."""
    made: list[Action] = []
    meta = stateful_set.metadata
    for template in templates(stateful_set):
        name = f"{template['metadata']['name']}-{pod}"
        if state.get(PersistentVolumeClaim, Key(meta.namespace, name)) is not None:
            continue
        given = template["metadata"]
        selector = (stateful_set.document["spec"].get("selector") or {}).get("matchLabels") or {}
        body: Document = {"name": name, "labels": {**(given.get("labels") or {}), **selector}}
        if given.get("annotations"):
            body["annotations"] = given["annotations"]
        if _policy(stateful_set, "whenDeleted"):
            body["ownerReferences"] = [pods.reference("StatefulSet", "apps/v1", stateful_set)]
        made.append(
            Create(PERSISTENT_VOLUME_CLAIMS, {"metadata": body, "spec": template.get("spec") or {}}, meta.namespace)
        )
        text = f"create Claim {name} Pod {pod} in StatefulSet {meta.name} success"
        made.append(note(STATEFUL_SETS, stateful_set, "SuccessfulCreate", text))
    return made


def retained(stateful_set: StatefulSet, pod: Pod, state: State, *, is_condemned: bool) -> list[Action]:
    """Give the pod's claims the owners by which they go along: with the set, or with a pod that is scaled away."""
    wanted: list[Document] = []
    if _policy(stateful_set, "whenScaled") and is_condemned:
        wanted = [pods.reference("Pod", "v1", pod)]
    elif _policy(stateful_set, "whenDeleted"):
        wanted = [pods.reference("StatefulSet", "apps/v1", stateful_set)]
    made: list[Action] = []
    for template in templates(stateful_set):
        key = Key(pod.metadata.namespace, f"{template['metadata']['name']}-{pod.metadata.name}")
        claim = state.get(PersistentVolumeClaim, key)
        if claim is None or claim.metadata.deletion_timestamp is not None:
            continue
        ours = [it.uid for it in claim.metadata.owner_references if _is_ours(it.kind, it.name, stateful_set, pod)]
        if ours == [it["uid"] for it in wanted]:
            continue
        refs = [*({"$patch": "delete", "uid": uid} for uid in ours), *wanted]
        body = {"metadata": {"uid": claim.metadata.uid, "ownerReferences": refs}}
        made.append(Patch(PERSISTENT_VOLUME_CLAIMS, key, PatchBody("strategic", body, manager=pods.MANAGER)))
    return made


def _is_ours(kind: str, name: str, stateful_set: Object, pod: Object) -> bool:
    return (kind, name) in (("StatefulSet", stateful_set.metadata.name), ("Pod", pod.metadata.name))


def _policy(stateful_set: StatefulSet, when: str) -> bool:
    kept = stateful_set.document["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return bool(kept.get(when) == "Delete")
