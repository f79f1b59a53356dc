"""Karpenter's provisioner: asks for nodes of NodePools when pods wait.

    pods wait ─► a batch: until a second passes without another one, at most ten ─► packing.py ─► NodeRequests

A pod that still waits is looked at again after ten seconds, if anything has changed by then. Follows Karpenter 1.14
with its default flags. Nodes that nobody needs go as the cluster autoscaler lets them go (../autoscaler): Karpenter's
consolidation is not played, nor are expiry, drift, reserved capacity and the limits of its clouds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import ClassVar

from wukong.actions import DONE, Action, Create, Outcome
from wukong.api.kinds import DAEMON_SETS, NODE_REQUESTS, NODES, PODS
from wukong.api.node_groups import NodeGroup, NodeRequest, find_group
from wukong.api.resources import Key
from wukong.embedded.actors.autoscaler.memory import StateVersion, name_nodes
from wukong.embedded.actors.autoscaler.new_node import add_new_nodes, make_new_node
from wukong.embedded.actors.autoscaler.pod_rules import list_waiting
from wukong.embedded.actors.autoscaler.refusals import describe_refusals
from wukong.embedded.actors.autoscaler.scale_up import Candidate
from wukong.embedded.actors.events import note_about_pod
from wukong.embedded.actors.karpenter.offerings import NODES as NODE_COUNT
from wukong.embedded.actors.karpenter.offerings import Amounts, Offering, Pool, list_pools, read_amounts
from wukong.embedded.actors.karpenter.packing import Claim, Packing
from wukong.embedded.world.clock import Chance
from wukong.embedded.world.objects import Node, Pod
from wukong.engine.new_nodes import NewNode
from wukong.state import Change, State
from wukong.state.controller import NodeRight, Watch, no_keys

BATCH = Key("", "batch")
IDLE_SECONDS, LONGEST_SECONDS = 1.0, 10.0  # batch-idle-duration, batch-max-duration
AGAIN_SECONDS = 10.0  # after which a pod that still waits begins a batch again
_KINDS = (PODS, NODES, NODE_REQUESTS, DAEMON_SETS)


def _batch_key(_: Change, __: State) -> Iterable[Key]:
    return (BATCH,)


@dataclass
class Memory:
    """It may be lost: then all pods that wait are new."""

    looked_at: float = -inf
    begun_at: float = inf  # the batch; infinity: there is none
    counted_at: dict[str, float] = field(default_factory=dict)  # uid of a pod that waits → when it began a batch
    version: StateVersion = ()  # of the state when nodes were asked for last
    numbers: dict[str, int] = field(default_factory=dict)  # group → the highest number that a node of it had
    refusals: dict[str, str] = field(default_factory=dict)  # uid of a pod that nobody helps → why

    def copy(self) -> Memory:
        return replace(self, counted_at=dict(self.counted_at), numbers=dict(self.numbers), refusals=dict(self.refusals))


class NodeProvisioner:
    name = "karpenter"
    node_rights: ClassVar[frozenset[NodeRight]] = frozenset({NodeRight.REQUEST_OF_GROUP})
    watches = (*(Watch(resource, _batch_key) for resource in (PODS, NODES, NODE_REQUESTS)), Watch(DAEMON_SETS, no_keys))

    def __init__(self, groups: Sequence[NodeGroup], chance: Chance | None = None, *, is_idle: bool = False) -> None:
        """Of `groups` those count that are of a NodePool. One that `is_idle` leaves the nodes as they are."""
        self.node_groups = {group.name: group for group in groups if group.node_pool}
        self.is_idle, self._chance = is_idle, chance or Chance()
        self._memory = Memory()

    def copy_memory(self, source: NodeProvisioner, _: State) -> None:
        self._memory = source._memory.copy()

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        if self.is_idle:
            return DONE
        memory = self._memory
        if (wait := memory.looked_at + IDLE_SECONDS - now) > 1e-4:
            return Outcome(requeue_after=wait)
        memory.looked_at = now
        waiting = [pod for pod in list_waiting(state) if not pod.status.nominated_node_name]
        version = tuple(state.versions[resource.group_kind] for resource in _KINDS)
        if self._count_new(waiting, version, now) and now < memory.begun_at + LONGEST_SECONDS:
            memory.begun_at = min(memory.begun_at, now)
            return Outcome(requeue_after=IDLE_SECONDS)
        if memory.begun_at == inf:
            return self._wait_for_next(version, now)
        memory.begun_at, memory.version = inf, version
        return Outcome(tuple(_Round(self, state, now).run(waiting)))

    def _count_new(self, waiting: list[Pod], version: StateVersion, now: float) -> int:
        """How many pods begin a batch, or make it longer."""
        memory = self._memory
        before = memory.counted_at
        last = now - AGAIN_SECONDS + 1e-4 if memory.version != version else -inf
        new = {pod.metadata.uid for pod in waiting if before.get(pod.metadata.uid, -inf) <= last}
        new |= {pod.metadata.uid for pod in waiting if pod.metadata.uid not in before}
        uids = [pod.metadata.uid for pod in waiting]
        memory.counted_at = {uid: now if uid in new else before[uid] for uid in uids}
        return len(new)

    def _wait_for_next(self, version: StateVersion, now: float) -> Outcome:
        """Until the first pod that waits is looked at again, if there is a reason to."""
        counted = self._memory.counted_at.values()
        if not counted or version == self._memory.version:
            return DONE
        return Outcome(requeue_after=max(IDLE_SECONDS, min(counted) + AGAIN_SECONDS - now))


class _Round:
    """One batch."""

    def __init__(self, provisioner: NodeProvisioner, state: State, now: float) -> None:
        self.groups, self.memory = provisioner.node_groups, provisioner._memory
        self.chance, self.state, self.now = provisioner._chance, state, now
        self.snapshot = state.snapshot.fork()
        self.new_nodes: dict[str, NewNode] = {}
        self.requests = [
            request
            for request in state.all(NodeRequest)
            if request.group in self.groups and state.get(Node, Key("", request.metadata.name)) is None
        ]
        upcoming = [self._new_node(self.groups[request.group]) for request in self.requests]
        if upcoming:
            add_new_nodes(self.snapshot, upcoming)

    def run(self, waiting: list[Pod]) -> list[Action]:
        if not waiting:
            self.memory.refusals = {}
            return []
        pools = self._list_pools()
        packing = Packing(self.snapshot.fork(), pools)
        claims = packing.run(waiting)
        return [*self._ask_for_nodes(claims), *self._note_refusals(packing.helpless, pools)]

    def _new_node(self, group: NodeGroup) -> NewNode:
        if group.name not in self.new_nodes:
            self.new_nodes[group.name] = make_new_node(group, self.state, self.snapshot)
        return self.new_nodes[group.name]

    def _list_pools(self) -> list[Pool]:
        sizes = dict.fromkeys(self.groups, 0)
        used: dict[str, Amounts] = {group.node_pool: {NODE_COUNT: 0} for group in self.groups.values()}
        for node in self.state.all(Node):
            if (group := find_group(self.groups.values(), node.metadata.labels)) is not None:
                sizes[group.name] += 1
                _add(used[group.node_pool], read_amounts(node.status.capacity))
        for request in self.requests:
            group = self.groups[request.group]
            sizes[group.name] += 1
            _add(used[group.node_pool], read_amounts(group.template.capacity))
        offerings = [
            Offering(group, self._new_node(group), group.max - sizes[name])
            for name, group in sorted(self.groups.items())
        ]
        return list_pools(offerings, used)

    def _ask_for_nodes(self, claims: list[Claim]) -> list[Action]:
        actions: list[Action] = []
        asked = [request.metadata.name for request in self.requests]
        present = [node.metadata.name for node in self.state.all(Node)]
        for number, claim in enumerate(claims):
            cheapest = claim.list_cheapest()
            group = cheapest[int(self.chance.share("offering", self.now, number) * len(cheapest))].group
            (name,) = name_nodes(self.memory.numbers, group.name, 1, [*present, *asked])
            body = {"metadata": {"name": name}, "group": group.name, "requestedAt": self.now}
            actions.append(Create(NODE_REQUESTS, body))
            text = f"Pod should schedule on: nodeclaim/{name}"
            actions += [note_about_pod(pod, "Nominated", text) for pod in claim.pods]
        return actions

    def _note_refusals(self, helpless: list[Pod], pools: list[Pool]) -> list[Action]:
        """Say why nobody helps these pods, where that has not been said."""
        candidates = [
            Candidate(offering.group, offering.new_node, offering.left)
            for pool in pools
            for offering in pool.offerings
            if offering.left > 0 and pool.has_left(offering)
        ]
        refusals = describe_refusals(self.snapshot, helpless, candidates, len(self.requests), len(self.groups))
        before = self.memory.refusals
        self.memory.refusals = {pod.metadata.uid: text for pod, text in refusals}
        news = [(pod, text) for pod, text in refusals if before.get(pod.metadata.uid) != text]
        return [note_about_pod(pod, "NotTriggerScaleUp", text) for pod, text in news]


def _add(amounts: Amounts, more: Amounts) -> None:
    for resource, amount in (*more.items(), (NODE_COUNT, read_amounts({NODE_COUNT: 1})[NODE_COUNT])):
        amounts[resource] = amounts.get(resource, 0) + amount
