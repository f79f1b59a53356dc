"""What a change of one policy costs among ten thousand, and what growing tenants leave behind in memory.

`python -m bench --policies` runs it. The ratio is of one change among many to one change of a single policy.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from typing import Any, cast

import msgspec
import numpy as np

from bench.extender import requests
from wukong.actions import Note
from wukong.api.core import Namespace, Pod
from wukong.api.decode import decode_objects
from wukong.api.meta import Object, ObjectMeta
from wukong.api.placement import PlacementPolicy
from wukong.api.policy_status import Condition, PlacementPolicyStatus
from wukong.api.resources import Resource
from wukong.ports import Cluster, Document
from wukong.replies.extender.verbs import Extender
from wukong.runtime.event_writer import EventWriter
from wukong.state import State

COUNTS = (1, 100, 10_000)
CHANGES = 200
ROUNDS, POLICIES, PODS = 20, 500, 2_000


def main(say: Callable[[str], None]) -> None:
    print("microseconds until the next answer, the rest of it left out: a policy, a status, a namespace has changed")
    baseline: dict[str, float] = {}
    for count in COUNTS:
        say(f"{count:,} policies")
        cluster = Tenants()
        for number in range(count):
            cluster.put(a_policy(f"p{number}", number))
        cluster.ask("shop")
        figures = {
            "policy": cluster.time(lambda turn: a_policy("p0", turn + 100_000)),
            "status": cluster.time(lambda turn: a_policy("p0", 100_000 + CHANGES - 1, generation=turn)),
            "namespace": cluster.time(lambda turn: a_namespace("elsewhere", turn)),
        }
        baseline = baseline or figures
        columns = "".join(
            f"{name:>12}{figure:8.0f} ({figure / baseline[name]:.2f}×)" for name, figure in figures.items()
        )
        print(f"{count:>8,} policies{columns}")
    say("growing tenants")
    cluster = Tenants()
    for number in range(ROUNDS):
        cluster.play_round(number)
        if number in (1, ROUNDS // 2, ROUNDS - 1):
            print(
                f"{number + 1:>3} rounds of {POLICIES} equal policies and {PODS:,} pods: {resident_megabytes():.0f} MB"
            )


class Tenants:
    def __init__(self) -> None:
        self.state, self.version = State(), 0
        nodes = requests.compact({"kind": "NodeList", "items": [requests.a_node(number) for number in range(100)]})
        self.state.replace("Node", decode_objects(nodes))
        self.extender = Extender(self.state)
        self.writer = EventWriter(cast(Cluster, NobodyStores()), "bench")

    def put(self, subject: Object) -> None:
        self.version += 1
        subject.metadata.resource_version = str(self.version)
        self.state.apply("MODIFIED", subject)

    def ask(self, namespace: str, name: str = "web") -> tuple[Note, ...]:
        fleet = self.extender.fleet(0.0)
        pod = Pod(kind="Pod", metadata=ObjectMeta(name=name, namespace=namespace, labels={"app": "web", "pod": name}))
        return self.extender.filter(pod, fleet, np.arange(fleet.size, dtype=np.intp), 0.0).notes

    def time(self, build: Callable[[int], Object]) -> float:
        """Microseconds, the median."""
        seconds = []
        for turn in range(CHANGES):
            self.put(build(turn))
            began = time.perf_counter()
            self.ask("probe")
            seconds.append(time.perf_counter() - began)
        return statistics.median(seconds) * 1e6

    async def _write_events(self, namespace: str, number: int) -> None:
        for index in range(PODS):
            for note in self.ask(namespace, f"pod-{number}-{index}"):
                await self.writer.write(note, 0.0)

    def play_round(self, number: int) -> None:
        namespace = f"tenant-{number}"
        policies = [a_policy(f"p{index}", 0, namespace) for index in range(POLICIES)]
        for policy in policies:
            self.put(policy)
        asyncio.run(self._write_events(namespace, number))
        for policy in policies:
            self.state.apply("DELETED", policy)


class NobodyStores:
    """A cluster that takes Events and keeps nothing."""

    async def create(self, resource: Resource, body: Document, namespace: str = "") -> Document:
        return body


def a_policy(name: str, number: int, namespace: str = "shop", generation: int = 1) -> PlacementPolicy:
    rules = [{"name": "label-match", "type": "score", "config": {"matchLabels": {"disk": f"ssd-{number}"}}}]
    spec: dict[str, Any] = {
        "selector": {"matchLabels": {"app": "web"}},
        "scheduling": {"schedulingPolicy": {"rules": rules}},
    }
    document = {"kind": "PlacementPolicy", "metadata": {"name": name, "namespace": namespace}, "spec": spec}
    policy = msgspec.convert(document, PlacementPolicy)
    policy.status = PlacementPolicyStatus(
        conditions=[Condition(type="Accepted", status="True", message=str(generation))]
    )
    return policy


def a_namespace(name: str, number: int) -> Namespace:
    return Namespace(kind="Namespace", metadata=ObjectMeta(name=name, labels={"number": str(number)}))


def resident_megabytes() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6
