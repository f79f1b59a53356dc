"""The versions of a workload: template hashes, a Deployment's ReplicaSets and their revision annotations.

Called by deployment.py, stateful_set.py and daemon_set.py. Kubernetes hashes Go's in-memory form of the template, which
nobody else can repeat: here it is SHA-256 of the template as JSON with sorted keys, written in the same alphabet. Names
of ReplicaSets therefore differ from a real cluster's; nothing depends on them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from wukong.actions import Create
from wukong.api.kinds import REPLICA_SETS
from wukong.embedded.actors.pods import reference
from wukong.embedded.world.objects import Deployment, ReplicaSet, template_of
from wukong.ports import Document

HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MOST = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED = {
    *(REVISION, HISTORY, DESIRED, MOST),
    *("kubectl.kubernetes.io/last-applied-configuration", "deprecated.deployment.rollback.to"),
}
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_REPLICA_SETS = REPLICA_SETS


def hash_of(template: Document, collisions: int = 0) -> str:
    text = msgspec.json.encode([template, collisions], order="deterministic")
    number, word = int.from_bytes(hashlib.sha256(text).digest()[:4], "big"), ""
    for digit in str(number):
        word += _LETTERS[int(digit)]
    return word


def is_of(replica_set: ReplicaSet, deployment: Deployment) -> bool:
    """Whether this is the version the Deployment asks for: the same template but for the hash."""
    return _unhashed(template_of(replica_set)) == _unhashed(template_of(deployment))


def revision_of(found: ReplicaSet | Deployment) -> int:
    text = found.metadata.annotations.get(REVISION, "0")
    return int(text) if text.isdigit() else 0


def annotated(deployment: Deployment, replica_set: ReplicaSet | None, old: Sequence[ReplicaSet]) -> dict[str, str]:
    """What the new version's annotations shall say, sizes left out."""
    has = dict(replica_set.metadata.annotations) if replica_set is not None else {}
    wanted = has | {key: text for key, text in deployment.metadata.annotations.items() if key not in _NOT_COPIED}
    revision = max(map(revision_of, old), default=0) + 1
    before = revision_of(replica_set) if replica_set is not None else 0
    if before < revision:
        wanted[REVISION] = str(revision)
        if before:
            wanted[HISTORY] = ",".join(filter(None, [has.get(HISTORY, ""), str(before)]))
    return wanted


def created(deployment: Deployment, old: Sequence[ReplicaSet], replicas: int, most: int) -> Create:
    """The ReplicaSet of a version nobody has made yet."""
    template = template_of(deployment)
    word = hash_of(template, deployment.status.collision_count or 0)
    meta = template.get("metadata") or {}
    labels = {**(meta.get("labels") or {}), HASH: word}
    selector = dict(deployment.document["spec"].get("selector") or {})
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH: word}
    sizes = {DESIRED: str(deployment.spec.replicas), MOST: str(most)}
    body: Document = {
        "metadata": {
            "name": f"{deployment.metadata.name}-{word}",
            "namespace": deployment.metadata.namespace,
            "labels": labels,
            "annotations": annotated(deployment, None, old) | sizes,
            "ownerReferences": [reference("Deployment", "apps/v1", deployment)],
        },
        "spec": {
            "replicas": replicas,
            "selector": selector,
            "template": {**template, "metadata": {**meta, "labels": labels}},
        },
    }
    if deployment.spec.min_ready_seconds:
        body["spec"]["minReadySeconds"] = deployment.spec.min_ready_seconds
    return Create(_REPLICA_SETS, body, deployment.metadata.namespace)


def _unhashed(template: Document) -> Document:
    meta = template.get("metadata") or {}
    labels = {key: value for key, value in (meta.get("labels") or {}).items() if key != HASH}
    kept = {key: value for key, value in meta.items() if key not in ("labels", "creationTimestamp")}
    return {**template, "metadata": {**kept, "labels": labels}}
