"""The current version of a Rollout keeps its pods although a snapshot does not keep all of its template.

A version is named by the hash of its template, and what a snapshot leaves out (environment, probes, annotations) is in
it. So the name that its ReplicaSet, pods and Services have is replaced by the hash of what the snapshot has, unless
the spec had just been changed: then it is a new version. Called by load.py. Pure.
"""

from __future__ import annotations

from typing import Any

from wukong.api.kinds import PODS, REPLICA_SETS, ROLLOUTS, SERVICES
from wukong.embedded.snapshot.revisions import DocumentsByKind
from wukong.embedded.store.documents import meta_of, value_at
from wukong.placement.rollout import hash_template


def rename_versions(by_kind: DocumentsByKind) -> None:
    """Replace the documents that name such a version."""
    for rollout in list(by_kind[ROLLOUTS.group_kind]):
        template, status = value_at(rollout, "spec.template"), rollout.get("status") or {}
        meta, known = meta_of(rollout), status.get("current")
        is_observed = status.get("observedGeneration") == meta.get("generation", 0)
        if not isinstance(template, dict) or not known or not is_observed:
            continue
        wanted = hash_template(template)
        for resource in (ROLLOUTS, REPLICA_SETS, PODS, SERVICES) if wanted != known else ():
            documents = by_kind[resource.group_kind]
            for index, document in enumerate(documents):
                if meta_of(document).get("namespace") == meta.get("namespace"):
                    documents[index] = _replace(document, known, wanted)


def _replace(value: Any, known: str, wanted: str) -> Any:
    """The same with `wanted` in place of every text that is `known`. What does not have it stays the same object."""
    if value == known:
        return wanted
    if isinstance(value, dict):
        parts = {name: _replace(part, known, wanted) for name, part in value.items()}
        return value if all(parts[name] is value[name] for name in value) else parts
    if isinstance(value, list):
        items = [_replace(part, known, wanted) for part in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value
