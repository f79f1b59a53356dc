"""A StatefulSet's pods by ordinal, and what each of them needs next. Pure; called by stateful_set.py."""

from __future__ import annotations

import re

from wukong.actions import Create
from wukong.embedded.actors import pods
from wukong.embedded.actors.stateful_set import volume_claims
from wukong.embedded.world.objects import Pod, StatefulSet
from wukong.ports import Document

REVISION = "controller-revision-hash"
_ORDINAL = re.compile(r"(.*)-([0-9]+)")


def ordinal_of(stateful_set: StatefulSet, pod: Pod) -> int:
    """-1 for a pod whose name is none of ours."""
    found = _ORDINAL.fullmatch(pod.metadata.name)
    return int(found[2]) if found and found[1] == stateful_set.metadata.name else -1


def revision_of(pod: Pod) -> str:
    return pod.metadata.labels.get(REVISION, "")


def new_pod(stateful_set: StatefulSet, ordinal: int, template: Document, revision: str) -> Create:
    name = f"{stateful_set.metadata.name}-{ordinal}"
    owner = pods.reference("StatefulSet", "apps/v1", stateful_set)
    labels = {
        **((template.get("metadata") or {}).get("labels") or {}),
        "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": str(ordinal),
        REVISION: revision,
    }
    spec = dict(template.get("spec") or {})
    spec["hostname"] = name
    if service := stateful_set.document["spec"].get("serviceName"):
        spec["subdomain"] = service
    if own := volume_claims.volumes(stateful_set, name, list(spec.get("volumes") or ())):
        spec["volumes"] = own
    return pods.new_pod({**template, "spec": spec}, stateful_set, owner, name=name, labels=labels)
