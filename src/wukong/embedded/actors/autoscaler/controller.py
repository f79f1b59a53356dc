"""The loop of the cluster autoscaler: every ten seconds it asks for nodes, or else looks who is not needed any more.

    pods wait ─► they fit on nodes that are there or booting ─► nothing
             └─► else nodes of the group that wastes the least ─► NodeRequests ─► cloud_provider.py
    nobody waits in vain ─► unneeded ─► a soft taint: pods rather go elsewhere
                            └─► for ten minutes, none asked for meanwhile ─► tainted ─► node_removal.py

Follows cluster-autoscaler 1.35 with its default flags and the expander least-waste. It does not look while nothing
changes and nothing is due, for then it would find what it found before. What it does not know: limits of cores and
memory, similar groups to balance, clusters that are too sick to scale, and nodes that never come. Pods on a node that
goes are evicted, daemons excepted: they go with it. Groups that are offerings of a NodePool it only removes nodes of,
without a soft taint: ../karpenter asks for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import ClassVar

from wukong.actions import DONE, Action, Create, Outcome
from wukong.api.kinds import DAEMON_SETS, NODE_REQUESTS, NODES, POD_DISRUPTION_BUDGETS, PODS
from wukong.api.node_groups import NodeGroup, NodeRequest, find_group
from wukong.api.resources import Key
from wukong.embedded.actors.autoscaler.memory import Memory, StateVersion
from wukong.embedded.actors.autoscaler.new_node import add_new_nodes, make_new_node
from wukong.embedded.actors.autoscaler.pod_rules import list_moving, list_waiting, seconds_to_be_old, without_node
from wukong.embedded.actors.autoscaler.refusals import describe_refusals
from wukong.embedded.actors.autoscaler.scale_down import UnneededNode, find_underused, review_nodes
from wukong.embedded.actors.autoscaler.scale_up import Candidate, Option, choose_option, place_where_they_fit
from wukong.embedded.actors.autoscaler.taints import (
    is_candidate,
    is_leaving,
    mark_candidate,
    taint_node,
    unmark_candidate,
    untaint_node,
)
from wukong.embedded.actors.events import note_about, note_about_pod
from wukong.embedded.actors.node_lifecycle.zones import is_ready
from wukong.embedded.world.clock import Chance
from wukong.embedded.world.objects import Node, Pod
from wukong.engine import Snapshot
from wukong.engine.new_nodes import NewNode
from wukong.state import Change, State
from wukong.state.controller import NodeRight, Watch, no_keys

LOOP = Key("", "loop")
PERIOD = 10.0  # scan-interval
UNNEEDED_SECONDS, UNREADY_SECONDS = 600.0, 1200.0  # scale-down-unneeded-time, scale-down-unready-time
AFTER_ADD, AFTER_FAILURE = 600.0, 180.0  # scale-down-delay-after-add, scale-down-delay-after-failure
RECHECK = 300.0  # unremovable-node-recheck-timeout
MOST_AT_ONCE, MOST_DRAINS = 10, 1  # max-scale-down-parallelism, max-drain-parallelism
MOST_NEW = 1000  # max-nodes-per-scaleup
MOST_SOFT_TAINTS = 10  # max-bulk-soft-taint-count: set or taken back in a round
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
_KINDS = (PODS, NODES, POD_DISRUPTION_BUDGETS, NODE_REQUESTS, DAEMON_SETS)


def _loop_key(_: Change, __: State) -> Iterable[Key]:
    return (LOOP,)


class Autoscaler:
    name = "cluster-autoscaler"
    node_rights: ClassVar[frozenset[NodeRight]] = frozenset({NodeRight.REQUEST_OF_GROUP})
    watches = (
        *(Watch(resource, _loop_key) for resource in (PODS, NODES, POD_DISRUPTION_BUDGETS, NODE_REQUESTS)),
        Watch(DAEMON_SETS, no_keys),
    )

    def __init__(self, groups: Sequence[NodeGroup], chance: Chance | None = None, *, is_idle: bool = False) -> None:
        """One that `is_idle` leaves the nodes as they are: while a snapshot comes to rest they are as it says."""
        self.node_groups = {group.name: group for group in groups}
        self.is_idle, self._chance = is_idle, chance or Chance()
        self._offset = PERIOD * self._chance.share("loop")
        self._memory = Memory()

    def copy_memory(self, source: Autoscaler, _: State) -> None:
        self._memory = source._memory.copy()

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        if self.is_idle:
            return DONE
        memory = self._memory
        memory.due = min(memory.due, self._next_round(now))
        if now < memory.due - 1e-4:
            return Outcome(requeue_after=memory.due - now)
        memory.looked_at, memory.due = now, inf
        look = _Look(self, state, now)
        actions = look.run()
        memory.due = self._round_after(look.next_look)
        return Outcome(tuple(actions), memory.due - now if memory.due < inf else None)

    def _next_round(self, now: float) -> float:
        """When it looks next: now, if this is the moment and it has not looked yet."""
        return self._round_after(max(now, self._memory.looked_at + 0.001))

    def _round_after(self, moment: float) -> float:
        """The first round at this moment or later. In whole milliseconds, for moments are not kept exactly."""
        if moment == inf:
            return inf
        instant, offset, period = round(moment * 1000), round(self._offset * 1000), round(PERIOD * 1000)
        return (offset - (offset - instant) // period * period) / 1000


class _Look:
    """One round of the loop. `next_look` says when something is due without any change; infinity: never."""

    def __init__(self, autoscaler: Autoscaler, state: State, now: float) -> None:
        self.groups, self.memory = autoscaler.node_groups, autoscaler._memory
        self.chance, self.state, self.now = autoscaler._chance, state, now
        self.growing = {name: group for name, group in self.groups.items() if not group.node_pool}
        self.next_look = inf
        self.nodes: dict[str, list[Node]] = {name: [] for name in self.groups}  # by group
        for node in state.all(Node):
            if (group := find_group(self.groups.values(), node.metadata.labels)) is not None:
                self.nodes[group.name].append(node)
        self.requests = [
            request
            for request in state.all(NodeRequest)
            if request.group in self.groups and state.get(Node, Key("", request.metadata.name)) is None
        ]
        self.snapshot: Snapshot = state.snapshot.fork()
        self.new_nodes: dict[str, NewNode] = {}
        self.real_rows = len(self.snapshot.rows)
        self.memory.keep_nodes({node.metadata.name for nodes in self.nodes.values() for node in nodes})

    def run(self) -> list[Action]:
        actions = self._settle_removals()
        upcoming = [self._new_node(self.groups[request.group]) for request in self.requests]
        if upcoming:
            add_new_nodes(self.snapshot, upcoming)
        of_pools = (request.requested_at for request in self.requests if request.group not in self.growing)
        self.memory.last_scale_up = max(self.memory.last_scale_up, max(of_pools, default=-inf))
        waiting = [*list_waiting(self.state), *self._list_driven_out()]
        helpless = place_where_they_fit(self.snapshot, waiting)
        if not self.growing:
            helpless = []  # somebody else asks for nodes
        if (wait := seconds_to_be_old(helpless, self.now)) > 0:
            self.next_look = self.now + wait
        elif helpless:
            candidates = self._list_candidates()
            option = choose_option(self.snapshot, candidates, helpless, len(upcoming), self.chance, self.now)
            if option is not None:
                return [*actions, *self._ask_for_nodes(option)]
            actions += self._note_refusals(helpless, candidates, len(upcoming))
        return [*actions, *self._scale_down()]

    # ---- up

    def _new_node(self, group: NodeGroup) -> NewNode:
        if group.name not in self.new_nodes:
            self.new_nodes[group.name] = make_new_node(group, self.state, self.snapshot)
        return self.new_nodes[group.name]

    def _list_driven_out(self) -> list[Pod]:
        """The pods of nodes that are about to go need another place, as if they waited already."""
        names = [node.metadata.name for nodes in self.nodes.values() for node in nodes if is_leaving(node)]
        driven_out = []
        for pod in (pod for name in names for pod in list_moving(self.state, name) if not pod.is_terminating):
            if pod.key in self.snapshot.pods:
                self.snapshot.forget(pod.key)
                driven_out.append(without_node(pod))
        return driven_out

    def _list_candidates(self) -> list[Candidate]:
        """The groups that may grow."""
        return [
            Candidate(group, self._new_node(group), min(MOST_NEW, group.max - self._size(group)))
            for _, group in sorted(self.growing.items())
            if group.max > self._size(group)
        ]

    def _note_refusals(self, helpless: list[Pod], candidates: list[Candidate], upcoming: int) -> list[Action]:
        """Say why nobody helps these pods, where that has not been said."""
        refusals = describe_refusals(self.snapshot, helpless, candidates, upcoming, len(self.growing))
        before = self.memory.refusals
        self.memory.refusals = {pod.metadata.uid: text for pod, text in refusals}
        news = [(pod, text) for pod, text in refusals if before.get(pod.metadata.uid) != text]
        return [note_about_pod(pod, "NotTriggerScaleUp", text) for pod, text in news]

    def _size(self, group: NodeGroup) -> int:
        return len(self.nodes[group.name]) + sum(request.group == group.name for request in self.requests)

    def _ask_for_nodes(self, option: Option) -> list[Action]:
        group, size = option.group, self._size(option.group)
        self.memory.last_scale_up, self.next_look = self.now, self.now + PERIOD
        present = [node.metadata.name for node in self.state.all(Node)]
        asked = [request.metadata.name for request in self.requests]
        names = self.memory.name_nodes(group.name, option.nodes, [*present, *asked])
        text = f"pod triggered scale-up: [{{{group.name} {size}->{size + option.nodes} (max: {group.max})}}]"
        return [
            *(Create(NODE_REQUESTS, _build_request(name, group, self.now)) for name in names),
            *(note_about_pod(pod, "TriggeredScaleUp", text) for pod in option.pods),
        ]

    # ---- down

    def _settle_removals(self) -> list[Action]:
        """Notice what was given up; take the taint back from nodes that a process before this one meant to remove."""
        actions: list[Action] = []
        for node in (node for nodes in self.nodes.values() for node in nodes):
            name, leaving = node.metadata.name, is_leaving(node)
            if leaving and name not in self.memory.removing:
                actions.append(untaint_node(node))
            elif not leaving and name in self.memory.removing:
                self.memory.removing.discard(name)
                self.memory.last_failure = self.now
                self.memory.keep(name, self.now + RECHECK, self._version())
        return actions

    def _version(self) -> StateVersion:
        return tuple(self.state.versions[resource.group_kind] for resource in _KINDS)

    def _scale_down(self) -> list[Action]:
        staying = [node for nodes in self.nodes.values() for node in nodes if not is_leaving(node)]
        candidates = find_underused(self.snapshot, filter(_may_go, staying))
        looked_at = [node for node in candidates if not self._is_kept(node.metadata.name)]
        upcoming_rows = range(self.real_rows, len(self.snapshot.rows))
        review = review_nodes(self.snapshot, self.state, looked_at, self.memory.unneeded_since, upcoming_rows)
        for name in review.kept:
            self.memory.keep(name, self.now + RECHECK, self._version())
        self.memory.set_unneeded([unneeded.node.metadata.name for unneeded in review.unneeded], self.now)
        due = self._list_due(review.unneeded)
        removals = [action for node in due for action in self._begin_removal(node)]
        return [*removals, *self._set_soft_taints([node for node in staying if node not in due])]

    def _set_soft_taints(self, staying: list[Node]) -> list[Action]:
        """Pods rather go to nodes that are needed: so those that nobody needs become empty, and stay so."""
        nodes = [node for node in staying if self._is_of_growing(node)]
        unneeded = self.memory.unneeded_since
        patches: list[Action] = [
            unmark_candidate(node) for node in nodes if is_candidate(node) and node.metadata.name not in unneeded
        ]
        patches += [
            mark_candidate(node, self.now)
            for node in nodes
            if not is_candidate(node) and node.metadata.name in unneeded
        ]
        if len(patches) > MOST_SOFT_TAINTS:
            self.next_look = min(self.next_look, self.now + PERIOD)
        return patches[:MOST_SOFT_TAINTS]

    def _is_of_growing(self, node: Node) -> bool:
        group = find_group(self.groups.values(), node.metadata.labels)
        return group is not None and group.name in self.growing

    def _is_kept(self, name: str) -> bool:
        """Whether this node was needed a short while ago. If something changed since, it is looked at again later."""
        kept = self.memory.kept.get(name)
        if kept is None or kept.until <= self.now:
            return False
        if kept.version != self._version():
            self.next_look = min(self.next_look, kept.until)
        return True

    def _list_due(self, unneeded: list[UnneededNode]) -> list[Node]:
        """The nodes to remove now: long enough unneeded, empty ones first, as many as the limits leave."""
        cooled_down = max(self.memory.last_scale_up + AFTER_ADD, self.memory.last_failure + AFTER_FAILURE)
        due: list[Node] = []
        drains = sum(bool(list_moving(self.state, name)) for name in self.memory.removing)
        left = {name: self._count_spare(self.groups[name]) for name in self.groups}
        for entry in sorted(unneeded, key=lambda entry: not entry.is_empty):
            group = find_group(self.groups.values(), entry.node.metadata.labels)
            if group is None or left[group.name] < 1:
                continue
            ripe = max(self._ripe_at(entry.node), cooled_down)
            if ripe > self.now:
                self.next_look = min(self.next_look, ripe)
                continue
            is_too_many = len(due) + len(self.memory.removing) >= MOST_AT_ONCE
            if is_too_many or (not entry.is_empty and drains >= MOST_DRAINS):
                continue  # it is looked at again when one of the others is gone
            left[group.name] -= 1
            drains += not entry.is_empty
            due.append(entry.node)
        return due

    def _count_spare(self, group: NodeGroup) -> int:
        """How many nodes of the group may go, besides those that do."""
        nodes = self.nodes[group.name]
        return len(nodes) - group.min - sum(is_leaving(node) for node in nodes)

    def _ripe_at(self, node: Node) -> float:
        wait = UNNEEDED_SECONDS if is_ready(node) else UNREADY_SECONDS
        return self.memory.unneeded_since[node.metadata.name] + wait

    def _begin_removal(self, node: Node) -> list[Action]:
        self.memory.removing.add(node.metadata.name)
        note = note_about(NODES, node, "ScaleDown", "marked the node as toBeDeleted/unschedulable")
        return [taint_node(node, self.now), note]


def _may_go(node: Node) -> bool:
    return node.metadata.annotations.get(SCALE_DOWN_DISABLED) != "true"


def _build_request(name: str, group: NodeGroup, now: float) -> dict[str, object]:
    return {"metadata": {"name": name}, "group": group.name, "requestedAt": now}
