"""Whose the pods of a snapshot are: by the workload that people know, a Deployment rather than its ReplicaSet. Pure.

Used by what is learnt of a workload from its pods: start_times.py, stop_times.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wukong.api.kinds import DEPLOYMENTS, KINDS, PODS, REPLICA_SETS
from wukong.api.resources import Key
from wukong.embedded.actors.kubelet.durations import Workload
from wukong.embedded.snapshot.load import LoadedSnapshot
from wukong.embedded.store.documents import meta_of
from wukong.ports import Document


def list_workload_pods(start: LoadedSnapshot) -> dict[Workload, list[Document]]:
    """The pods of each workload; those of nobody are left out."""
    documents = {resource.group_kind: items for resource, items in start.objects}
    deployments = dict(_find_deployments(documents.get(REPLICA_SETS.group_kind, ())))
    pods: dict[Workload, list[Document]] = {}
    for pod in documents.get(PODS.group_kind, ()):
        owner = _controller_of(pod)
        if owner is not None:
            pods.setdefault(deployments.get(owner, owner), []).append(pod)
    return pods


def _find_deployments(replica_sets: Sequence[Document]) -> Iterator[tuple[Workload, Workload]]:
    """Each ReplicaSet of a Deployment, and that Deployment."""
    for replica_set in replica_sets:
        owner = _controller_of(replica_set)
        if owner is not None and owner[0] == DEPLOYMENTS.group_kind:
            meta = meta_of(replica_set)
            yield (REPLICA_SETS.group_kind, Key(meta["namespace"], meta["name"])), owner


def _controller_of(document: Document) -> Workload | None:
    meta = meta_of(document)
    for owner in meta.get("ownerReferences") or ():
        if owner.get("controller"):
            kind = KINDS.group_kind_named(owner.get("kind", ""), owner.get("apiVersion") or "")
            return kind, Key(meta["namespace"], owner.get("name", ""))
    return None
