"""Plays a case on a cluster: brings the machines to their nodes, lets the happening happen, waits for the end.

Cluster          what both clusters can do: embedded_cluster.py on virtual time, real_cluster.py beside KubeVirt
play(case, …)    the story
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from testbed.client import Json
from vm_comparison.story import Observer, Story, machine_of
from vm_comparison.story_case import ZONE, Case, build_vm

DRAIN_SECONDS = 5.0  # kubectl drain asks again after so long
DRAIN_ROUNDS = 4
QUIET_SECONDS = 8.0  # longer than KubeVirt waits between looks at who may migrate
START_SECONDS, END_SECONDS = 180.0, 90.0
LATEST_SECONDS = 240.0  # until a real cluster, whose machine may be busy, ends as the other one did


class Cluster(Protocol):
    observer: Observer

    async def add_node(self, name: str, labels: dict[str, str]) -> None: ...
    async def set_cordon(self, node: str, is_cordoned: bool) -> None: ...
    async def add_taint(self, node: str, key: str) -> None: ...
    async def create_vm(self, vm: Json) -> None: ...
    async def create_migration(self, machine: str) -> str:
        """Returns what the API server answers, nothing if it was created."""
        ...

    async def evict(self, pod: Json) -> str:
        """Returns what the API server answers, nothing if the pod was evicted."""
        ...

    async def wait(self, seconds: float, until: Callable[[], bool] | None = None) -> bool:
        """Let time pass until the predicate holds. Whether it does."""
        ...


async def play(case: Case, cluster: Cluster, expected: Sequence[Story] = ()) -> Story:
    """`expected` is what the other cluster told: this one is given time to end so, and to rest."""
    await _begin(case, cluster)
    await _happen(case, cluster)
    observer = cluster.observer
    if not expected:
        await cluster.wait(END_SECONDS)
    else:
        await cluster.wait(LATEST_SECONDS, lambda: observer.tell() in expected)
        await cluster.wait(QUIET_SECONDS)
    return observer.tell()


async def _begin(case: Case, cluster: Cluster) -> None:
    nodes = [f"n{index}" for index in range(len(case.zones))]
    for node, zone in zip(nodes, case.zones, strict=True):
        await cluster.add_node(node, {ZONE: zone})
        await cluster.set_cordon(node, True)
    for machine in case.machines:
        await cluster.set_cordon(nodes[machine.node], False)
        await cluster.create_vm(build_vm(machine))
        is_running = await cluster.wait(
            START_SECONDS,
            lambda name=machine.name: cluster.observer.is_running(name),  # type: ignore[misc]
        )
        assert is_running, f"{machine.name} did not start: {cluster.observer.instances.get(machine.name)}"
        await cluster.set_cordon(nodes[machine.node], True)
    for node in nodes:
        await cluster.set_cordon(node, False)


async def _happen(case: Case, cluster: Cluster) -> None:
    observer = cluster.observer
    if case.happening == "migrate":
        name = case.machines[case.target].name
        observer.answers[name] = await cluster.create_migration(name)
    elif case.happening == "taint":
        await cluster.add_taint(f"n{case.target}", "kubevirt.io/drain")
    elif case.happening == "evict":
        name = case.machines[case.target].name
        pod = next(pod for pod in observer.pods_on(observer.node_of(name)) if machine_of(pod) == name)
        observer.answers[name] = await cluster.evict(pod)
    else:
        await _drain(f"n{case.target}", cluster)


async def _drain(node: str, cluster: Cluster) -> None:
    """As `kubectl drain --timeout` does: cordon, then evict again and again what is still there."""
    observer = cluster.observer
    await cluster.set_cordon(node, True)
    for _ in range(DRAIN_ROUNDS):
        for pod in observer.pods_on(node):
            if "deletionTimestamp" not in pod["metadata"]:
                answer = await cluster.evict(pod)
                observer.answers.setdefault(machine_of(pod), answer)
        if await cluster.wait(DRAIN_SECONDS, lambda: not observer.pods_on(node)):
            return
