"""The pods of a DaemonSet: on which nodes they shall be, where one belongs, what a new one looks like.

Called by daemon_set.py. Which nodes take a daemon is decided by name, node selector, node
affinity and taints, not by resources: whether there is room is the scheduler's business.
"""

from __future__ import annotations

from typing import NamedTuple

from wukong.actions import Create
from wukong.api.core import Pod as AnyPod
from wukong.api.core import PodSpec, Toleration
from wukong.api.resources import Key, key_of
from wukong.embedded.actors import pods
from wukong.embedded.actors.stateful_set.ordinals import REVISION
from wukong.embedded.world.objects import DaemonSet, Node, Pod, template_of
from wukong.ports import Document
from wukong.semantics.node_selectors import allows_node
from wukong.semantics.tolerations import HARD_EFFECTS, is_tolerated
from wukong.state import State

_PREFIX, _NODE_FIELD = "node.kubernetes.io/", "metadata.name"
_TOLERATED = [
    *((f"{_PREFIX}{name}", "NoExecute") for name in ("not-ready", "unreachable")),
    *(
        (f"{_PREFIX}{name}", "NoSchedule")
        for name in ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
    ),
]
_ON_THE_HOST = (f"{_PREFIX}network-unavailable", "NoSchedule")  # of pods that need no network of their own


class Welcome(NamedTuple):
    """Whether a daemon shall be on a node; and whether one that is there already may stay."""

    shall_run: bool
    may_stay: bool


def welcome(node: Node, daemon_set: DaemonSet) -> Welcome:
    template = daemon_set.spec.template
    if template is None or template.spec.node_name not in ("", node.metadata.name):
        return Welcome(False, False)
    if not allows_node(AnyPod(spec=template.spec), node):
        return Welcome(False, False)
    tolerations = [*template.spec.tolerations, *_added(template.spec)]
    bad = {it.effect for it in node.spec.taints if it.effect in HARD_EFFECTS and not is_tolerated(it, tolerations)}
    return Welcome(not bad, "NoExecute" not in bad)


class Doors:
    """Which nodes take the daemons of a set: asked again only of nodes, and of sets, that changed."""

    def __init__(self) -> None:
        self._known: dict[Key, tuple[str, dict[str, tuple[str, Welcome]]]] = {}  # set → its spec → node → its answer

    def welcome(self, daemon_set: DaemonSet, state: State) -> dict[str, Welcome]:
        key, spec = key_of(daemon_set), f"{daemon_set.metadata.uid}/{daemon_set.metadata.generation}"
        before, known = self._known.get(key, ("", {}))
        known = known if before == spec else {}
        answers = {}
        for node in state.all(Node):
            name, version = node.metadata.name, f"{node.metadata.uid}/{node.metadata.resource_version}"
            held = known.get(name)
            answers[name] = held if held is not None and held[0] == version else (version, welcome(node, daemon_set))
        self._known[key] = spec, answers
        return {name: answer for name, (_, answer) in answers.items()}

    def forget(self, key: Key) -> None:
        self._known.pop(key, None)


def node_of(pod: Pod) -> str:
    """Where it is, or shall be."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    terms = affinity.required.node_selector_terms if affinity and affinity.required else []
    named = [field.values[0] for term in terms for field in term.match_fields if field.key == _NODE_FIELD]
    return pod.spec.node_name or next(iter(named), "")


def new_pod(daemon_set: DaemonSet, node: str, revision: str) -> Create:
    template = template_of(daemon_set)
    spec = dict(template.get("spec") or {})
    affinity = dict(spec.get("affinity") or {})
    term = {"matchFields": [{"key": _NODE_FIELD, "operator": "In", "values": [node]}]}
    own = dict(affinity.get("nodeAffinity") or {})
    own["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [term]}
    spec["affinity"] = {**affinity, "nodeAffinity": own}
    spec["tolerations"] = _tolerations(spec)
    labels = {**((template.get("metadata") or {}).get("labels") or {}), REVISION: revision}
    owner = pods.reference("DaemonSet", "apps/v1", daemon_set)
    return pods.new_pod({**template, "spec": spec}, daemon_set, owner, labels=labels)


def _tolerations(spec: Document) -> list[Document]:
    """Those of the template, then the daemons' own; the same one is not there twice."""
    made = list(spec.get("tolerations") or [])
    for key, effect in [*_TOLERATED, *([_ON_THE_HOST] if spec.get("hostNetwork") else [])]:
        own = {"key": key, "operator": "Exists", "effect": effect}
        same = [
            each
            for each in made
            if (each.get("key"), each.get("effect"), each.get("operator")) == (key, effect, "Exists")
        ]
        made = [own if each in same else each for each in made] if same else [*made, own]
    return made


def _added(spec: PodSpec) -> list[Toleration]:
    more = [_ON_THE_HOST] if spec.host_network else []
    return [Toleration(key=key, operator="Exists", effect=effect) for key, effect in (*_TOLERATED, *more)]
