"""The versions of a Deployment: template hashes, its ReplicaSets and their revision annotations.

Called by sync.py; the hash also by controller_revisions.py and snapshot/. Kubernetes hashes Go's in-memory form of the
template, which nobody else can repeat: here it is SHA-256 of the template as JSON with sorted keys, written in the same
alphabet. Names of ReplicaSets therefore differ from a real cluster's; nothing depends on them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from wukong.actions import Create
from wukong.api.field_types import struct_named
from wukong.api.kinds import DEPLOYMENTS, REPLICA_SETS
from wukong.embedded.actors.pods import reference_to
from wukong.embedded.store.semantic_equality import is_semantically_equal
from wukong.embedded.world.objects import Deployment, ReplicaSet, template_of
from wukong.ports import Document
from wukong.semantics.label_syntax import parse_integer

HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED = {
    *(REVISION, HISTORY, DESIRED_REPLICAS, MAX_REPLICAS),
    *("kubectl.kubernetes.io/last-applied-configuration", "deprecated.deployment.rollback.to"),
}
_TEMPLATE = struct_named("PodTemplateSpec")
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def hash_template(template: Document, collisions: int = 0) -> str:
    text = msgspec.json.encode([template, collisions], order="deterministic")
    number, word = int.from_bytes(hashlib.sha256(text).digest()[:4], "big"), ""
    for digit in str(number):
        word += _LETTERS[int(digit)]
    return word


def has_template_of(replica_set: ReplicaSet, deployment: Deployment) -> bool:
    """Whether this is the version the Deployment asks for: the same template but for the hash."""
    return is_semantically_equal(
        _TEMPLATE, _without_hash(template_of(replica_set)), _without_hash(template_of(deployment))
    )


def revision_of(subject: ReplicaSet | Deployment) -> int:
    """The revision that its annotation names; 0 if it has none, or one that is no number."""
    return parse_integer(subject.metadata.annotations.get(REVISION, "0")) or 0


def read_max_replicas(replica_set: ReplicaSet) -> int:
    """How many pods all versions might have when it was scaled last; 0 if its annotation is no such number."""
    text = replica_set.metadata.annotations.get(MAX_REPLICAS, "0")
    number = parse_integer(text)
    return number if number is not None and text[0] not in "+-" and number < 2**31 else 0


def build_annotations(
    deployment: Deployment, replica_set: ReplicaSet | None, old: Sequence[ReplicaSet]
) -> dict[str, str]:
    """The annotations that the new version should have, sizes left out. `replica_set` is None before it is created."""
    present = dict(replica_set.metadata.annotations) if replica_set is not None else {}
    wanted = present | {key: text for key, text in deployment.metadata.annotations.items() if key not in _NOT_COPIED}
    revision = max(map(revision_of, old), default=0) + 1
    before = revision_of(replica_set) if replica_set is not None else 0
    if before < revision:
        wanted[REVISION] = str(revision)
        if before:
            wanted[HISTORY] = ",".join(filter(None, [present.get(HISTORY, ""), str(before)]))
    return wanted


def create_replica_set(deployment: Deployment, old: Sequence[ReplicaSet], replicas: int, max_total: int) -> Create:
    """Create the ReplicaSet of the version that the Deployment asks for."""
    template = template_of(deployment)
    template_hash = hash_template(template, deployment.status.collision_count or 0)
    meta = template.get("metadata") or {}
    labels = {**(meta.get("labels") or {}), HASH: template_hash}
    selector = dict(deployment.document["spec"].get("selector") or {})
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH: template_hash}
    sizes = {DESIRED_REPLICAS: str(deployment.spec.replicas), MAX_REPLICAS: str(max_total)}
    body: Document = {
        "metadata": {
            "name": f"{deployment.metadata.name}-{template_hash}",
            "namespace": deployment.metadata.namespace,
            "labels": labels,
            "annotations": build_annotations(deployment, None, old) | sizes,
            "ownerReferences": [reference_to(DEPLOYMENTS, deployment)],
        },
        "spec": {
            "replicas": replicas,
            "selector": selector,
            "template": {**template, "metadata": {**meta, "labels": labels}},
        },
    }
    if deployment.spec.min_ready_seconds:
        body["spec"]["minReadySeconds"] = deployment.spec.min_ready_seconds
    return Create(REPLICA_SETS, body, deployment.metadata.namespace)


def _without_hash(template: Document) -> Document:
    meta = template.get("metadata") or {}
    labels = {key: value for key, value in (meta.get("labels") or {}).items() if key != HASH}
    other_meta = {key: value for key, value in meta.items() if key not in ("labels", "creationTimestamp")}
    return {**template, "metadata": {**other_meta, "labels": labels}}
