"""The pods of a DaemonSet: what a new one looks like, and to which node one belongs. Used by its controller."""

from __future__ import annotations

from wukong.actions import Create
from wukong.api.core import PodSpec, Toleration
from wukong.api.kinds import DAEMON_SETS
from wukong.embedded.actors import pods
from wukong.embedded.actors.controller_revisions import REVISION_LABEL
from wukong.embedded.world.objects import DaemonSet, Pod, template_of
from wukong.ports import Document

_PREFIX, _NODE_FIELD = "node.kubernetes.io/", "metadata.name"
_TOLERATED = [
    *((f"{_PREFIX}{name}", "NoExecute") for name in ("not-ready", "unreachable")),
    *(
        (f"{_PREFIX}{name}", "NoSchedule")
        for name in ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
    ),
]
_TOLERATED_ON_HOST_NETWORK = (f"{_PREFIX}network-unavailable", "NoSchedule")


def node_of(pod: Pod) -> str:
    """The node on which the pod is; if it is not bound, the one that its affinity names."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    terms = affinity.required.node_selector_terms if affinity and affinity.required else []
    names = [field.values[0] for term in terms for field in term.match_fields if field.key == _NODE_FIELD]
    return pod.spec.node_name or next(iter(names), "")


def create_pod(daemon_set: DaemonSet, node: str, revision: str) -> Create:
    template = template_of(daemon_set)
    spec = dict(template.get("spec") or {})
    affinity = dict(spec.get("affinity") or {})
    term = {"matchFields": [{"key": _NODE_FIELD, "operator": "In", "values": [node]}]}
    node_affinity = dict(affinity.get("nodeAffinity") or {})
    node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [term]}
    spec["affinity"] = {**affinity, "nodeAffinity": node_affinity}
    spec["tolerations"] = _build_tolerations(spec)
    labels = {**((template.get("metadata") or {}).get("labels") or {}), REVISION_LABEL: revision}
    return pods.create_pod(DAEMON_SETS, daemon_set, {**template, "spec": spec}, labels=labels)


def added_tolerations(spec: PodSpec) -> list[Toleration]:
    """The tolerations that the controller adds to a template's own."""
    tolerated = _list_tolerated(spec.host_network)
    return [Toleration(key=key, operator="Exists", effect=effect) for key, effect in tolerated]


def _build_tolerations(spec: Document) -> list[Document]:
    """The template's tolerations, then the added ones; an added one replaces the same one of the template."""
    tolerations = list(spec.get("tolerations") or [])
    for key, effect in _list_tolerated(bool(spec.get("hostNetwork"))):
        added = {"key": key, "operator": "Exists", "effect": effect}
        is_same = [
            (toleration.get("key"), toleration.get("effect"), toleration.get("operator")) == (key, effect, "Exists")
            for toleration in tolerations
        ]
        if any(is_same):
            tolerations = [added if same else toleration for toleration, same in zip(tolerations, is_same, strict=True)]
        else:
            tolerations.append(added)
    return tolerations


def _list_tolerated(host_network: bool) -> list[tuple[str, str]]:
    """Keys and effects of taints that every daemon tolerates."""
    return [*_TOLERATED, *([_TOLERATED_ON_HOST_NETWORK] if host_network else [])]
