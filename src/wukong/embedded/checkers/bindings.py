"""No pod is bound against a required rule or beyond a node's capacity: asked of wukong.rules, one object at a time.

A scheduler decides on what it has seen, in any cluster: nodes may be tainted, and pods be bound by another instance,
before its watch shows it. So a binding is right if it is right now, or by the mirror of the process that made it, as it
is or as it was at the decision, with all that this process had bound itself by then, or tried to, on top: that much it
must know. What it tried to bind may have failed since (tests/live/test_bindings_in_flight.py shows that in Kubernetes).
Rules that only the target node and its pods decide are asked about every binding; those about pods elsewhere (inter-pod
rules, spread) about every one up to a hundred pods, and the more rarely the more pods there are, for each look then
costs more. What people bind is their own. A pod with claims may have waited for its volumes since it was decided: of it
only is asked whether the node reaches them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, NamedTuple

import msgspec

from wukong.actions import Action, Bind
from wukong.api.core import Node, Pod
from wukong.api.kinds import (
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    SERVICES,
    STATEFUL_SETS,
)
from wukong.api.objects import Objects
from wukong.api.profile import default_profile
from wukong.api.resources import Key
from wukong.embedded.checkers.acting_controller import ActingController, Decision, acting_controller
from wukong.embedded.checkers.findings import Findings
from wukong.embedded.checkers.node_loads import NodeLoads, SummedNode
from wukong.embedded.checkers.placed_requests import PlacedRequests
from wukong.embedded.world.process import Process
from wukong.rules.cluster import Cluster
from wukong.rules.filters import Filters
from wukong.rules.ports import host_ports_of
from wukong.runtime.dispatch import Item
from wukong.state import Change, State

FEW = 50  # up to so many pods every binding is checked in full, up to twice as many every other …
_FACTS = tuple(
    resource.group_kind for resource in (NAMESPACES, SERVICES, REPLICATION_CONTROLLERS, REPLICA_SETS, STATEFUL_SETS)
)
_STORAGE = (PERSISTENT_VOLUME_CLAIMS.group_kind, PERSISTENT_VOLUMES.group_kind)
_LOCAL = frozenset(
    {"NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit"}
)
_NOBODY_ELSE = Cluster(Objects())  # what rules about one node ask of other nodes
_OF_VOLUMES = frozenset({"VolumeBinding", "VolumeZone"})
replace = msgspec.structs.replace
MOST_DECISIONS = 4096  # remembered: many more than are under way at the same time


class BoundPod(NamedTuple):
    """A pod that a process bound: where, and as the how many-th binding of all."""

    node: str
    number: int


class KnownPlacements(NamedTuple):
    """What a process had to know besides its mirror when it decided."""

    placed: Mapping[str, str]  # uid of a pod that it was about to bind → node
    bindings: int  # how many bindings there had been


class Bindings:
    kinds: ClassVar[frozenset[str]] = frozenset({PODS.group_kind})

    def __init__(self, findings: Findings) -> None:
        self.findings, self.world = findings, findings.world
        self.profile = default_profile()
        local_filters = tuple(name for name in self.profile.filters if name in _LOCAL)
        self.local_profile = replace(self.profile, filters=local_filters)
        volume_filters = tuple(name for name in self.profile.filters if name in _OF_VOLUMES)
        self.volume_profile = replace(self.profile, filters=volume_filters)
        self._bound_pods: dict[Process, dict[str, BoundPod]] = {}  # process → uid of a pod that it bound
        self._known: dict[Decision, KnownPlacements] = {}  # of decisions to bind
        self._bindings = 0
        self._requests = PlacedRequests()
        pods = (pod for pod in self.world.state.of(Pod).values() if isinstance(pod, Pod))
        # uids of pods with required anti-affinity
        self._exclusive = {pod.metadata.uid for pod in pods if _has_required_anti_affinity(pod)}

    def fork(self, findings: Findings) -> Bindings:
        """For a copy of a world with one process."""
        copy = Bindings.__new__(Bindings)
        copy.findings, copy.world = findings, findings.world
        copy.profile, copy.local_profile, copy._requests = self.profile, self.local_profile, self._requests
        copy.volume_profile = self.volume_profile
        copy._bindings, copy._exclusive = self._bindings, set(self._exclusive)
        copies = dict(zip(self.world.processes, copy.world.processes, strict=True))
        copy._bound_pods = {copies[process]: dict(pods) for process, pods in self._bound_pods.items()}
        copy._known = {(copies[process], turn): known for (process, turn), known in self._known.items()}
        return copy

    def observe(self, change: Change) -> None:
        old, new = change.old, change.new
        if not isinstance(new, Pod):
            if isinstance(old, Pod):
                self._forget(old.metadata.uid)
            return
        if _has_required_anti_affinity(new):
            self._exclusive.add(new.metadata.uid)
        if not new.spec.node_name or not isinstance(old, Pod) or old.spec.node_name:
            return
        actor = acting_controller(self.world)
        if actor is None:
            return
        self._check(change.key, old, new, actor)
        bound_pods = self._bound_pods.setdefault(actor.process, {})
        bound_pods[new.metadata.uid] = BoundPod(new.spec.node_name, self._bindings)

    def observe_decision(self, process: Process, item: Item, actions: Sequence[Action]) -> None:
        """Remember what a process must know that is going to bind a pod."""
        if actions and any(isinstance(action, Bind) for action in actions):
            placed = {**_assumed_nodes(process.state), **_nodes_under_way(process, item.controller)}
            self._known[process, process.turns] = KnownPlacements(placed, self._bindings)
            if len(self._known) > MOST_DECISIONS:
                del self._known[next(iter(self._known))]

    def _forget(self, uid: str) -> None:
        self._exclusive.discard(uid)
        for bound_pods in self._bound_pods.values():
            bound_pods.pop(uid, None)

    def _check(self, key: Key, pod: Pod, bound: Pod, actor: ActingController) -> None:
        self._bindings += 1
        state, node = self.world.state, bound.spec.node_name
        is_sampled = self._bindings % max(1, len(state.of(Pod)) // FEW) == 0
        is_whole = is_sampled and (bool(self._exclusive) or _depends_on_other_nodes(pod))
        if not is_whole and self._fits_by_sums(state, pod, bound):
            return
        reason = self._refusal(state, key, pod, node, {}, is_whole=is_whole)
        if not reason:
            return
        if not self._was_right(key, pod, node, actor, is_whole=is_whole):
            self.findings.report(f"pod {key}", f"bound to {node} although {reason}")

    def _fits_by_sums(self, state: State, pod: Pod, bound: Pod) -> bool:
        """Whether the rules that only the node and its pods decide take the pod where it is bound now; False also where
        sums do not tell."""
        node = state.get(Node, Key("", bound.spec.node_name))
        if node is None or host_ports_of(pod) or _has_claims(pod):
            return False
        info = SummedNode(node, state.index_of(NodeLoads).without(bound))
        return Filters(_NOBODY_ELSE, pod, self.local_profile).reject(info) is None

    def _was_right(self, key: Key, pod: Pod, node: str, actor: ActingController, *, is_whole: bool) -> bool:
        """Whether the pod fits there by what the process knows, or knew when it decided."""
        process = actor.process
        if process.state is self.world.state and process.acting_decision is None:
            return False  # it decided on the truth, right now
        known_now = KnownPlacements(_assumed_nodes(process.state), self._bindings)
        if not self._refusal(process.state, key, pod, node, self._list_known(process, known_now), is_whole=is_whole):
            return True
        known = self._known.get(actor.decision)
        if known is None:
            return False
        return not self._refusal(actor.mirror(), key, pod, node, self._list_known(process, known), is_whole=is_whole)

    def _list_known(self, process: Process, known: KnownPlacements) -> dict[str, str]:
        """The pods that a process knew to be placed, or to be placed soon: uid → node."""
        bound_pods = self._bound_pods.get(process, {})
        return {**known.placed, **{uid: pod.node for uid, pod in bound_pods.items() if pod.number <= known.bindings}}

    def _refusal(
        self, state: State, key: Key, pod: Pod, node_name: str, bound_nodes: Mapping[str, str], *, is_whole: bool
    ) -> str | None:
        """Why this pod does not fit there by what a mirror shows; None if it does."""
        node = state.get(Node, Key("", node_name))
        if node is None:
            return "there is no such node"
        cluster = _build_cluster(state, key, node, bound_nodes, is_whole=is_whole)
        profile = self.profile if is_whole else self.local_profile
        if _has_claims(pod):
            profile = self.volume_profile
        verdict = Filters(cluster, pod, profile, self._requests.of).reject(cluster.nodes[node_name])
        return f"{verdict.plugin} says: {', '.join(verdict.reasons)}" if verdict is not None else None


def _has_claims(pod: Pod) -> bool:
    return any(volume.persistent_volume_claim or volume.ephemeral for volume in pod.spec.volumes)


def _build_cluster(state: State, key: Key, node: Node, bound_nodes: Mapping[str, str], *, is_whole: bool) -> Cluster:
    """What the rules are to know: everything, or no more than the node and its pods."""
    objects = Objects()
    objects.of("Node").extend(state.all(Node) if is_whole else [node])
    objects.of("Pod").extend(_placed_pods(state, key, node.metadata.name, bound_nodes, is_whole=is_whole))
    if is_whole:
        for kind in _FACTS:
            objects.of(kind).extend(state.objects.get(kind, {}).values())
    for kind in _STORAGE:
        objects.of(kind).extend(state.objects.get(kind, {}).values())
    return Cluster(objects)


def _placed_pods(state: State, key: Key, node: str, bound_nodes: Mapping[str, str], *, is_whole: bool) -> Iterable[Pod]:
    """Every placed pod but the one with this key, or only those on the node."""
    pods: Iterable[Pod]
    if is_whole or bound_nodes:
        pods = [pod for pod_key, pod in state.of(Pod).items() if pod_key != key and isinstance(pod, Pod)]
    else:
        on_node = (state.get(Pod, pod_key) for pod_key in state.pods.on_node(node) if pod_key != key)
        pods = [pod for pod in on_node if pod is not None]
    for pod in pods:
        node_name = pod.spec.node_name or bound_nodes.get(pod.metadata.uid, "")
        if node_name and (is_whole or node_name == node):
            yield pod if pod.spec.node_name else replace(pod, spec=replace(pod.spec, node_name=node_name))


def _assumed_nodes(state: State) -> dict[str, str]:
    """What the process tried to bind and its watch has not shown yet: uid of a pod → node."""
    placements = (state.placements.get(key) for key in state.placements)
    return {placement.pod.metadata.uid: placement.node for placement in placements if placement is not None}


def _nodes_under_way(process: Process, controller: str) -> dict[str, str]:
    """What the process has decided to bind, and not been answered yet: uid of a pod → node."""
    decisions = process.workers.list_under_way(controller) if process.workers is not None else ()
    works = (decision.work for decision in decisions)
    pending = (action for work in works for action in work.outcome.actions[work.position :])
    return {action.uid: action.node for action in pending if isinstance(action, Bind)}


def _has_required_anti_affinity(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    return bool(affinity and affinity.pod_anti_affinity and affinity.pod_anti_affinity.required)


def _depends_on_other_nodes(pod: Pod) -> bool:
    """Whether required pod affinity or spread makes pods on other nodes matter."""
    affinity = pod.spec.affinity
    if affinity and affinity.pod_affinity and affinity.pod_affinity.required:
        return True
    return any(constraint.when_unsatisfiable == "DoNotSchedule" for constraint in pod.spec.topology_spread_constraints)
