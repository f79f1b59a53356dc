"""The subresources pods/binding and scale, which unlike status are no part of the object itself.

Called by server.py. A Scale is a small document of its own that is patched like any other.
"""

from __future__ import annotations

from wukong.api.resources import Key
from wukong.embedded.store.api_errors import conflict, invalid, not_found, storage_uid_mismatch
from wukong.embedded.store.database import Database
from wukong.embedded.store.documents import (
    is_terminating,
    meta_of,
    value_at,
    with_condition,
    with_metadata,
    without_fields,
)
from wukong.embedded.store.kinds import ServedKind
from wukong.ports import Document

_SHARED_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def bind(database: Database, pods: ServedKind, key: Key, node: str, uid: str, now: float) -> None:
    """Bind a pod to a node. Like a real server, it does not check that the node exists.

    Raises NotFound, or Conflict where the pod has another uid or cannot be bound.
    """
    pod = database.get(pods.name, key)
    if pod is None:
        raise not_found(pods.name, key)
    pod_uid = meta_of(pod)["uid"]
    if uid and uid != pod_uid:
        raise storage_uid_mismatch(pods.name, key, uid, pod_uid)
    refusal = _binding_refusal_of(pod)
    if refusal:
        raise conflict("pods/binding", key, f"pod {key.name} {refusal}")
    bound = {
        **pod,
        "spec": {**pod["spec"], "nodeName": node},
        "status": without_fields(pod["status"], "nominatedNodeName"),
    }
    database.put(pods.name, with_condition(bound, {"type": "PodScheduled", "status": "True"}, now))


def _binding_refusal_of(pod: Document) -> str:
    """Return why the pod cannot be bound, or an empty text."""
    if is_terminating(pod):
        return "is being deleted, cannot be assigned to a host"
    if node := value_at(pod, "spec.nodeName"):
        return f'is already assigned to node "{node}"'
    return "has non-empty .spec.schedulingGates" if value_at(pod, "spec.schedulingGates") else ""


def scale_of(workload: Document) -> Document:
    """Return the Scale of a workload, as `…/scale` shows it."""
    meta = {name: value for name, value in meta_of(workload).items() if name in _SHARED_METADATA}
    replicas, current = value_at(workload, "spec.replicas") or 0, value_at(workload, "status.replicas") or 0
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": meta,
        "spec": {"replicas": replicas},
        "status": {"replicas": current, "selector": _format_selector(value_at(workload, "spec.selector") or {})},
    }


def apply_scale(workload: Document, scale: Document) -> Document:
    """Return the workload with the replicas of a changed Scale. Raises Invalid where they are no count."""
    replicas = value_at(scale, "spec.replicas") or 0
    if not isinstance(replicas, int) or replicas < 0:
        problem = f"spec.replicas: Invalid value: {replicas}: must be greater than or equal to 0"
        raise invalid("Scale.autoscaling", meta_of(workload)["name"], [problem])
    version = meta_of(scale).get("resourceVersion")
    return with_metadata({**workload, "spec": {**workload["spec"], "replicas": replicas}}, resourceVersion=version)


def _format_selector(selector: Document) -> str:
    """Format a selector in kubectl's syntax. ReplicationControllers select by plain labels."""
    if not set(selector) & {"matchLabels", "matchExpressions"}:
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    terms = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for expression in selector.get("matchExpressions") or []:
        values = f"({','.join(expression.get('values') or [])})"
        formats = {
            "In": f"{expression['key']} in {values}",
            "NotIn": f"{expression['key']} notin {values}",
            "Exists": expression["key"],
        }
        terms.append(formats.get(expression["operator"], f"!{expression['key']}"))
    return ",".join(terms)
