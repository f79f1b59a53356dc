"""No pod is bound against a required rule or beyond a node's capacity: asked of wukong.rules, one object at a time.

A scheduler decides on what it has seen, in any cluster: nodes may be tainted, and pods be bound by another instance,
before its watch tells. So a binding is right if it is right now, or by the mirror of the process that made it, with all
that this process bound itself, or tried to, on top: that much it must know. Rules that only the target node and its
pods decide are asked about every binding; those about pods elsewhere (inter-pod rules, spread) about every one up to a
hundred pods, and the more rarely the more pods there are, for each look then costs more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from wukong.api.core import Node, Pod
from wukong.api.kinds import (
    NAMESPACES,
    PERSISTENT_VOLUMES,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    SERVICES,
    STATEFUL_SETS,
)
from wukong.api.objects import Objects
from wukong.api.profile import default_profile
from wukong.api.resources import Key
from wukong.embedded.checkers.findings import Findings
from wukong.embedded.world.process import Process
from wukong.rules.cluster import Cluster
from wukong.rules.filters import Filters
from wukong.state import Change, State

SCHEDULER = "scheduler"
FEW = 50  # of so many pods each, of twice as many every other …
_FACTS = tuple(
    resource.group_kind
    for resource in (NAMESPACES, SERVICES, REPLICATION_CONTROLLERS, REPLICA_SETS, STATEFUL_SETS, PERSISTENT_VOLUMES)
)
_LOCAL = frozenset(
    {"NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit"}
)
replace = msgspec.structs.replace


class Bindings:
    def __init__(self, desk: Findings) -> None:
        self.desk, self.world = desk, desk.world
        self.profile = default_profile()
        self.local = replace(self.profile, filters=tuple(it for it in self.profile.filters if it in _LOCAL))
        self._own: dict[Process, dict[str, str]] = {}  # process → uid of a pod it bound → node
        self._bound = 0
        self._exclusive: set[str] = set()  # uids of pods that keep others off

    def hear(self, change: Change) -> None:
        old, new = change.old, change.new
        if not isinstance(new, Pod):
            if isinstance(old, Pod):
                self._exclusive.discard(old.metadata.uid)
                for bound in self._own.values():
                    bound.pop(old.metadata.uid, None)
            return
        if _keeps_others_off(new):
            self._exclusive.add(new.metadata.uid)
        process = self.world.acting
        if not new.spec.node_name or not isinstance(old, Pod) or old.spec.node_name:
            return
        if process is None or process.acting is None or process.acting.controller != SCHEDULER:
            return
        own = self._own.setdefault(process, {})
        self._check(change.key, old, new.spec.node_name, process, own)
        own[new.metadata.uid] = new.spec.node_name

    def _check(self, key: Key, pod: Pod, node: str, process: Process, own: Mapping[str, str]) -> None:
        self._bound += 1
        state = self.world.state
        is_turn = self._bound % max(1, len(state.objects["Pod"]) // FEW) == 0
        is_whole = is_turn and (bool(self._exclusive) or _looks_around(pod))
        why = self._refused(state, key, pod, node, {}, is_whole=is_whole)
        known = {**_assumed(process.state), **own}
        if why and (process.state is state or self._refused(process.state, key, pod, node, known, is_whole=is_whole)):
            self.desk.note(f"pod {key}", f"bound to {node} although {why}")

    def _refused(
        self, state: State, key: Key, pod: Pod, node: str, own: Mapping[str, str], *, is_whole: bool
    ) -> str | None:
        """Why this pod does not fit there, in the eyes of a mirror; None if it does."""
        found = state.get(Node, Key("", node))
        if found is None:
            return "there is no such node"
        cluster = _cluster(state, key, found, own, is_whole=is_whole)
        profile = self.profile if is_whole else self.local
        verdict = Filters(cluster, pod, profile).reject(cluster.nodes[node])
        return f"{verdict.plugin} says: {', '.join(verdict.reasons)}" if verdict is not None else None


def _cluster(state: State, key: Key, node: Node, own: Mapping[str, str], *, is_whole: bool) -> Cluster:
    """What the rules are to know: everything, or no more than the node and its pods."""
    objects = Objects()
    objects.of("Node").extend(state.all(Node) if is_whole else [node])
    objects.of("Pod").extend(_pods(state, key, node.metadata.name, own, is_whole=is_whole))
    if is_whole:
        for kind in _FACTS:
            objects.of(kind).extend(state.objects.get(kind, {}).values())
    return Cluster(objects)


def _pods(state: State, key: Key, node: str, own: Mapping[str, str], *, is_whole: bool) -> Iterable[Pod]:
    if is_whole or own:
        found = [pod for other, pod in state.objects.get("Pod", {}).items() if other != key and isinstance(pod, Pod)]
    else:
        found = [pod for pod in state.pods_on(node) if pod.key != str(key)]
    for pod in found:
        home = pod.spec.node_name or own.get(pod.metadata.uid, "")
        if home and (is_whole or home == node):
            yield pod if pod.spec.node_name else replace(pod, spec=replace(pod.spec, node_name=home))


def _assumed(state: State) -> dict[str, str]:
    """What the process tried to bind, and has not been told of yet: uid of a pod → node."""
    found = (state.placements.get(key) for key in state.placements)
    return {each.pod.metadata.uid: each.node for each in found if each is not None}


def _keeps_others_off(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    return bool(affinity and affinity.pod_anti_affinity and affinity.pod_anti_affinity.required)


def _looks_around(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    if affinity and affinity.pod_affinity and affinity.pod_affinity.required:
        return True
    return any(each.when_unsatisfiable == "DoNotSchedule" for each in pod.spec.topology_spread_constraints)
