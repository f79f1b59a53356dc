"""Binding a pod to a node, and the scale of a workload: the other two subresources that are not parts of an object.

Called by server.py. A scale is a small document of its own that patches like any other.
"""

from __future__ import annotations

from wukong.api.resources import Key
from wukong.embedded.store.api_errors import another, conflict, invalid, not_found
from wukong.embedded.store.database import Database
from wukong.embedded.store.documents import (
    is_terminating,
    meta_of,
    value_at,
    with_condition,
    with_metadata,
    without_fields,
)
from wukong.embedded.store.kinds import Kind
from wukong.ports import Document

_SHARED = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def bind(database: Database, pods: Kind, key: Key, node: str, uid: str, now: float) -> None:
    """As the real one, it does not ask whether the node exists."""
    pod = database.get(pods.name, key)
    if pod is None:
        raise not_found(pods.name, key)
    own = meta_of(pod)["uid"]
    if uid and uid != own:
        raise another(pods.name, key, uid, own)
    why = _unbindable(pod)
    if why:
        raise conflict("pods/binding", key, f"pod {key.name} {why}")
    bound = {
        **pod,
        "spec": {**pod["spec"], "nodeName": node},
        "status": without_fields(pod["status"], "nominatedNodeName"),
    }
    database.put(pods.name, with_condition(bound, {"type": "PodScheduled", "status": "True"}, now))


def _unbindable(pod: Document) -> str:
    if is_terminating(pod):
        return "is being deleted, cannot be assigned to a host"
    if node := value_at(pod, "spec.nodeName"):
        return f'is already assigned to node "{node}"'
    return "has non-empty .spec.schedulingGates" if value_at(pod, "spec.schedulingGates") else ""


def scale_of(workload: Document) -> Document:
    """What `…/scale` shows."""
    meta = {name: value for name, value in meta_of(workload).items() if name in _SHARED}
    replicas, now = value_at(workload, "spec.replicas") or 0, value_at(workload, "status.replicas") or 0
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": meta,
        "spec": {"replicas": replicas},
        "status": {"replicas": now, "selector": _written(value_at(workload, "spec.selector") or {})},
    }


def scaled(kind: Kind, workload: Document, scale: Document) -> Document:
    """The workload with the replicas of a scale that somebody changed."""
    wanted = value_at(scale, "spec.replicas") or 0
    if not isinstance(wanted, int) or wanted < 0:
        problem = f"spec.replicas: Invalid value: {wanted}: must be greater than or equal to 0"
        raise invalid("Scale.autoscaling", meta_of(workload)["name"], [problem])
    version = meta_of(scale).get("resourceVersion")
    return with_metadata({**workload, "spec": {**workload["spec"], "replicas": wanted}}, resourceVersion=version)


def _written(selector: Document) -> str:
    """A selector in kubectl's syntax. ReplicationControllers select by plain labels."""
    if not set(selector) & {"matchLabels", "matchExpressions"}:
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    terms = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for each in selector.get("matchExpressions") or []:
        values = f"({','.join(each.get('values') or [])})"
        named = {"In": f"{each['key']} in {values}", "NotIn": f"{each['key']} notin {values}", "Exists": each["key"]}
        terms.append(named.get(each["operator"], f"!{each['key']}"))
    return ",".join(terms)
