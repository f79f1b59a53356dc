"""A workload with all that belongs to it, read from a cluster as it is now. Never from a mirror, so never old.

Called by whoever follows a rollout or goes back to a revision.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wukong.api.kinds import CONTROLLER_REVISIONS, DEPLOYMENTS, PODS, REPLICA_SETS
from wukong.api.resources import Key, Resource
from wukong.errors import InputError, NotFound, nearest
from wukong.ports import Cluster, Document, Selection

PAGE = 500


class WorkloadParts(msgspec.Struct, frozen=True):
    """A workload, what holds its versions (ReplicaSets or ControllerRevisions), and its pods."""

    workload: Document
    versions: list[Document]
    pods: list[Document]


async def read_workload(cluster: Cluster, resource: Resource, key: Key) -> Document:
    """The workload as the API server has it. Raises InputError that names the nearest one where there is none."""
    try:
        document = await cluster.get(resource, key, dict)
    except NotFound:
        names = [_meta(item)["name"] for item in await list_all(cluster, resource, key.namespace)]
        raise InputError(f"there is no {resource.kind} {key}.{nearest(key.name, names)}") from None
    return {**document, "kind": resource.kind, "apiVersion": resource.api_version}


async def read_parts(cluster: Cluster, resource: Resource, key: Key) -> WorkloadParts:
    workload = await read_workload(cluster, resource, key)
    uid, labels = _meta(workload)["uid"], format_selector((workload.get("spec") or {}).get("selector"))
    kind = REPLICA_SETS if resource == DEPLOYMENTS else CONTROLLER_REVISIONS
    versions = [item for item in await list_all(cluster, kind, key.namespace, labels) if _is_owned(item, {uid})]
    owners = {_meta(version)["uid"] for version in versions} | {uid}
    pods = [item for item in await list_all(cluster, PODS, key.namespace, labels) if _is_owned(item, owners)]
    return WorkloadParts(workload, [{**version, "kind": kind.kind} for version in versions], pods)


async def list_all(cluster: Cluster, resource: Resource, namespace: str, labels: str = "") -> list[Document]:
    """Every object of a kind in a namespace, page by page."""
    documents: list[Document] = []
    token = ""
    while True:
        page = await cluster.list(resource, dict, Selection(namespace, labels), limit=PAGE, token=token)
        documents += page.items
        token = page.token
        if not token:
            return documents


def format_selector(selector: Any) -> str:
    """A LabelSelector in kubectl's syntax; "" for what cannot be read, which selects everything."""
    if not isinstance(selector, dict):
        return ""
    terms = [f"{name}={value}" for name, value in (selector.get("matchLabels") or {}).items()]
    for entry in selector.get("matchExpressions") or ():
        key, operator, values = entry.get("key"), entry.get("operator"), ",".join(entry.get("values") or ())
        if operator in ("In", "NotIn"):
            terms.append(f"{key} {operator.lower()} ({values})")
        else:
            terms.append(str(key) if operator == "Exists" else f"!{key}")
    return ",".join(terms)


def _is_owned(document: Document, uids: set[str]) -> bool:
    owners = _meta(document).get("ownerReferences") or ()
    return any(owner.get("controller") and owner.get("uid") in uids for owner in owners)


def _meta(document: Document) -> Document:
    meta: Document = document.get("metadata") or {}
    return meta
