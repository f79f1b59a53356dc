"""Tenants that come and go, with ever new names, leave nothing behind in the extender and the runtime around it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import numpy as np

from builders import a_pod
from policies import a_policy, a_rule, needs, spot, steady
from runtime.tiny import TinyCluster
from wukong.api.core import Namespace
from wukong.api.meta import Object, ObjectMeta
from wukong.controllers.policy.controller import Policy as PolicyController
from wukong.errors import Conflict, OutcomeUnknown
from wukong.placement.rules import BUILT_IN
from wukong.replies.extender.policy_cache import PolicyChanges
from wukong.replies.extender.verbs import Extender
from wukong.runtime.dispatch import Dispatch
from wukong.runtime.event_writer import EventWriter
from wukong.runtime.work_cycle import WorkCycle
from wukong.state import State

NODES = [*(spot(f"s{number}") for number in range(5)), *(steady(f"d{number}") for number in range(5))]
ROUNDS, TENANTS, POLICIES = 30, 4, 12


class Cluster:
    """An extender, the `policy` controller and a writer of Events on one mirror."""

    def __init__(self) -> None:
        self.state = State()
        for node in NODES:
            self.state.apply("ADDED", node)
        self.extender = Extender(self.state)
        self.dispatch = Dispatch([PolicyController(BUILT_IN)], self.state)
        self.cycle = WorkCycle(self.dispatch)
        self.writer = EventWriter(TinyCluster(), "us")
        self.now, self.version = 0.0, 0

    def put(self, subject: Object) -> None:
        self.version += 1
        subject.metadata.resource_version = str(self.version)
        self.dispatch.observe(self.state.apply("MODIFIED", subject), self.now)

    def remove(self, subject: Object) -> None:
        self.dispatch.observe(self.state.apply("DELETED", subject), self.now)

    async def play_round(self, number: int) -> None:
        objects = list(list_objects(number))
        for subject in objects:
            self.put(subject)
        fleet = self.extender.fleet(self.now)
        rows = np.arange(fleet.size, dtype=np.intp)
        for tenant in range(TENANTS):
            for index in range(10):
                pod = a_pod(f"pod-{number}-{index}", namespace=f"t-{number}-{tenant}", labels={"index": str(index)})
                for note in self.extender.filter(pod, fleet, rows, self.now).notes:
                    await self.writer.write(note, self.now)
                self.extender.prioritize(pod, fleet, rows, self.now)
        self.work()
        for subject in objects:
            self.remove(subject)
        for _ in range(20):
            self.now += 60.0
            self.dispatch.expire(self.now)
            self.work()

    def work(self) -> None:
        """The API server refuses a third of what the controller writes, and loses the answers to another third."""
        for item in self.dispatch.queue.take_due(self.now):
            work = self.cycle.take(item, self.now)
            if work.next_action is None or work.only_looks:
                if work.only_looks:
                    work.advance(None)
                self.cycle.finish(work, self.now)
            elif len(item.key.name) % 3 == 0:
                self.cycle.fail(work, Conflict("changed"), self.now, 0.0)
            elif len(item.key.name) % 3 == 1:
                self.cycle.fail(work, OutcomeUnknown("lost"), self.now, 0.0)
            else:
                work.advance(None)
                self.cycle.finish(work, self.now)

    def count_entries(self) -> dict[str, int]:
        policies, queue, pending = self.extender.policies, self.dispatch.queue, self.dispatch._pending_writes
        return {
            "matches": policies._policies.count_known(),
            "plans": len(policies._policies._by_key) + len(policies._policies._candidates),
            "namespaces": len(policies._policies._namespaces),
            "taken over": len(policies._taken_over) + len(policies._pending),
            "answers": self.extender.judge.count_kept(),
            "columns": len(self.extender.fleet(self.now).nodes._columns),
            "attempts": len(self.state.attempts),
            "queue": len(queue) + queue.in_flight + len(queue._failures) + len(self.cycle._doubts),
            "pending": len(pending._missing) + len(pending._by_object) + len(pending._overdue),
        }


def list_objects(number: int) -> Iterator[Object]:
    for tenant in range(TENANTS):
        space = f"t-{number}-{tenant}"
        yield Namespace(kind="Namespace", metadata=ObjectMeta(name=space, uid=space, labels={"round": str(number)}))
        for index in range(POLICIES):
            rule = a_rule(
                "label-match", "filter", matchExpressions=[{"key": f"k-{number}-{index}", "operator": "DoesNotExist"}]
            )
            yield a_policy(f"policy-{number}-{'x' * index}", namespace=space, rules=[rule], floors=[needs("cpu", 0)])


def test_what_is_kept_does_not_grow_with_tenants_that_are_gone() -> None:
    cluster = Cluster()

    async def play() -> list[dict[str, int]]:
        counts = []
        for number in range(ROUNDS):
            await cluster.play_round(number)
            cluster.extender.match(a_pod("probe", namespace="probe"))
            counts.append(cluster.count_entries())
        return counts

    counts = asyncio.run(play())
    for name, first in counts[2].items():
        assert counts[-1][name] <= max(first, 1), (name, first, counts[-1][name])
    assert len(cluster.writer) == TENANTS * 10 * ROUNDS  # bounded elsewhere: runtime/test_bounds.py
    assert len(cluster.state.index_of(PolicyChanges)._log) <= 1 << 14
    assert not any(cluster.state.objects[kind] for kind in cluster.state.objects if kind != "Node")


def test_an_event_about_five_hundred_equal_policies_is_short() -> None:
    cluster = Cluster()
    for number in range(500):
        cluster.put(a_policy(f"p{number:03}", namespace="shop"))
    fleet = cluster.extender.fleet(0.0)
    rows = np.arange(fleet.size, dtype=np.intp)
    result = cluster.extender.filter(a_pod(namespace="shop"), fleet, rows, 0.0)
    (note,) = [note for note in result.notes if note.reason == "PolicyAmbiguous"]
    assert note.text == (
        "PlacementPolicy shop/p000 holds, the first by name; just as specific: PlacementPolicy shop/p001, "
        "PlacementPolicy shop/p002, PlacementPolicy shop/p003 and 496 more."
    )
