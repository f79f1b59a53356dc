"""The DaemonSet controller: one pod on every node that takes it, updated one node at a time (maxUnavailable).

Follows kube-controller-manager 1.35: pods name their node by affinity and tolerate what daemons tolerate; the scheduler
binds them. Which nodes take one is decided by node name, node selector and affinity, and taints, not by resources.
maxSurge is not played: a pod is always deleted before its successor is made.
"""

from __future__ import annotations

from wukong.actions import DONE, Action, Create, Outcome
from wukong.api.core import Toleration
from wukong.api.resources import RESOURCES, Key
from wukong.embedded.actors import pods
from wukong.embedded.actors.ordinals import REVISION, revision_of
from wukong.embedded.actors.replica_set import controlled_by, writing_status
from wukong.embedded.actors.revisions import hash_of
from wukong.embedded.actors.sizes import percent
from wukong.embedded.objects import DaemonSet, Node, Pod, template_of
from wukong.ports import Document
from wukong.rules.taints import tolerates
from wukong.state import State
from wukong.state.contract import Watch

DAEMON_SETS = RESOURCES["DaemonSet"]
_TOLERATED = [
    *({"key": f"node.kubernetes.io/{name}", "effect": "NoExecute"} for name in ("not-ready", "unreachable")),
    *(
        {"key": f"node.kubernetes.io/{name}", "effect": "NoSchedule"}
        for name in ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
    ),
]
_NODE_FIELD = "metadata.name"


def _every(_: object, state: State) -> list[Key]:
    return [pods.key_of(each) for each in state.all(DaemonSet)]


class DaemonSets:
    name = "daemonset"
    watches = (
        Watch(DAEMON_SETS),
        Watch(pods.PODS, controlled_by("DaemonSet")),
        Watch(RESOURCES["Node"], _every),
    )

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        daemon_set = state.get(DaemonSet, key)
        if daemon_set is None or daemon_set.metadata.deletion_timestamp is not None:
            return DONE
        owned = pods.owned_pods(state, daemon_set)
        wanted = [it.metadata.name for it in state.all(Node) if _takes(it, daemon_set)]
        revision = hash_of(template_of(daemon_set))
        actions = _placed(daemon_set, owned, wanted, revision) or _rolled(daemon_set, owned, wanted, revision, now)
        status, before = _counted(daemon_set, owned, wanted, revision, now), daemon_set.document.get("status") or {}
        if status != before:
            actions.append(writing_status(DAEMON_SETS, key, before, status))
        return Outcome(tuple(actions), pods.next_available(owned, daemon_set.spec.min_ready_seconds, now))


def node_of(pod: Pod) -> str:
    """Where it is, or shall be."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    terms = affinity.required.node_selector_terms if affinity and affinity.required else []
    named = [field.values[0] for term in terms for field in term.match_fields if field.key == _NODE_FIELD]
    return pod.spec.node_name or next(iter(named), "")


def _takes(node: Node, daemon_set: DaemonSet) -> bool:
    template = daemon_set.spec.template
    if template is None:
        return False
    labels = node.metadata.labels
    if not template.spec.node_selector.items() <= labels.items():
        return False
    tolerations = [
        *template.spec.tolerations,
        *(Toleration(key=it["key"], operator="Exists", effect=it["effect"]) for it in _TOLERATED),
    ]
    hard = [taint for taint in node.spec.taints if taint.effect in ("NoSchedule", "NoExecute")]
    return all(any(tolerates(each, taint) for each in tolerations) for taint in hard)


def _placed(daemon_set: DaemonSet, owned: list[Pod], wanted: list[str], revision: str) -> list[Action]:
    """Missing pods are made; those of other nodes, second ones and finished ones go."""
    made: list[Action] = []
    by_node: dict[str, list[Pod]] = {}
    for pod in owned:
        by_node.setdefault(node_of(pod), []).append(pod)
    for node in wanted:
        there = [pod for pod in by_node.get(node, []) if not pod.is_terminating]
        finished = [pod for pod in there if pod.is_finished]
        made += [pods.deletion(pod) for pod in finished]
        running = [pod for pod in there if not pod.is_finished]
        made += [pods.deletion(pod) for pod in running[1:]]
        if not by_node.get(node):
            made.append(_pod(daemon_set, node, revision))
    elsewhere = [pod for node in sorted(by_node.keys() - set(wanted)) for pod in by_node[node]]
    return [*made, *(pods.deletion(pod) for pod in elsewhere if not pod.is_terminating)]


def _rolled(daemon_set: DaemonSet, owned: list[Pod], wanted: list[str], revision: str, now: float) -> list[Action]:
    strategy = daemon_set.spec.update_strategy
    if strategy is not None and strategy.type == "OnDelete":
        return []
    rolling = strategy.rolling_update if strategy else None
    most = max(1, percent(1 if rolling is None else rolling.max_unavailable, len(wanted), up=True))
    at_least = daemon_set.spec.min_ready_seconds
    staying = {node_of(pod): pod for pod in owned if not pod.is_terminating}
    well = {node for node, pod in staying.items() if pods.is_available(pod, at_least, now)}
    old = [staying[node] for node in wanted if node in staying and revision_of(staying[node]) != revision]
    sick = [pod for pod in old if node_of(pod) not in well]
    budget = most - (len(wanted) - len(well & set(wanted)))
    healthy = [pod for pod in old if node_of(pod) in well]
    return [pods.deletion(pod) for pod in [*sick, *healthy[: max(0, budget)]]]


def _pod(daemon_set: DaemonSet, node: str, revision: str) -> Create:
    template = template_of(daemon_set)
    spec = dict(template.get("spec") or {})
    affinity = dict(spec.get("affinity") or {})
    term = {"matchFields": [{"key": _NODE_FIELD, "operator": "In", "values": [node]}]}
    own = dict(affinity.get("nodeAffinity") or {})
    own["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [term]}
    spec["affinity"] = {**affinity, "nodeAffinity": own}
    tolerated = [{**each, "operator": "Exists"} for each in _TOLERATED]
    spec["tolerations"] = [*(spec.get("tolerations") or []), *tolerated]
    labels = {**((template.get("metadata") or {}).get("labels") or {}), REVISION: revision}
    owner = pods.reference("DaemonSet", "apps/v1", daemon_set)
    return pods.new_pod({**template, "spec": spec}, daemon_set, owner, labels=labels)


def _counted(daemon_set: DaemonSet, owned: list[Pod], wanted: list[str], revision: str, now: float) -> Document:
    active = [pod for pod in owned if pods.is_active(pod)]
    there = {node_of(pod): pod for pod in active if node_of(pod) in wanted}
    available = sum(pods.is_available(pod, daemon_set.spec.min_ready_seconds, now) for pod in there.values())
    status = {
        "currentNumberScheduled": len(there),
        "numberMisscheduled": sum(node_of(pod) not in wanted for pod in active),
        "desiredNumberScheduled": len(wanted),
        "numberReady": sum(map(pods.is_ready, there.values())),
    }
    more = {
        "observedGeneration": daemon_set.metadata.generation,
        "updatedNumberScheduled": sum(revision_of(pod) == revision for pod in there.values()),
        "numberAvailable": available,
        "numberUnavailable": len(wanted) - available,
    }
    return {**status, **{name: value for name, value in more.items() if value}}
