"""The ordinals of a StatefulSet's pods, and what a new pod of an ordinal looks like. Pure; called by sync.py."""

from __future__ import annotations

import re

from wukong.actions import Create
from wukong.api.kinds import STATEFUL_SETS
from wukong.embedded.actors import pods
from wukong.embedded.actors.controller_revisions import REVISION_LABEL
from wukong.embedded.actors.stateful_set import volume_claims
from wukong.embedded.world.objects import Pod, StatefulSet
from wukong.ports import Document

_POD_NAME = re.compile(r"(.*)-([0-9]+)")


def ordinal_of(stateful_set: StatefulSet, pod: Pod) -> int:
    """The ordinal in a pod's name; -1 if the name is not of this StatefulSet."""
    return parse_ordinal(stateful_set.metadata.name, pod.metadata.name)


def parse_ordinal(set_name: str, pod_name: str) -> int:
    """The same by their names."""
    match = _POD_NAME.fullmatch(pod_name)
    return int(match[2]) if match and match[1] == set_name else -1


def create_pod(stateful_set: StatefulSet, ordinal: int, template: Document, revision: str) -> Create:
    name = f"{stateful_set.metadata.name}-{ordinal}"
    labels = {
        **((template.get("metadata") or {}).get("labels") or {}),
        "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": str(ordinal),
        REVISION_LABEL: revision,
    }
    spec = dict(template.get("spec") or {})
    spec["hostname"] = name
    if service := stateful_set.document["spec"].get("serviceName"):
        spec["subdomain"] = service
    if volumes := volume_claims.build_volumes(stateful_set, name, list(spec.get("volumes") or ())):
        spec["volumes"] = volumes
    return pods.create_pod(STATEFUL_SETS, stateful_set, {**template, "spec": spec}, name=name, labels=labels)
