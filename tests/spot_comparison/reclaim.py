"""Plays S1 or S2 on a test bed: the layout, the notice, who moves the pods, the end of two machines, the result."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import Any

import msgspec

from live.accounts import audited
from spot_comparison.watcher import Loss, Watcher
from spot_comparison.workloads import (
    BUDGETS,
    DOOMED,
    FILLER,
    NAMESPACE,
    NEW,
    NEW_SECONDS,
    ON_DEMAND,
    REPLICAS,
    ROUNDS,
    SINGLE_ON,
    SPOT,
    a_budget,
    a_daemon_set,
    a_workload,
    list_fillers,
)
from testbed import nodes
from testbed.behaviour import SILENT
from testbed.client import ApiError, Client
from testbed.pytest_plugin import Bed
from wukong.placement.capacity import OWN_LABEL
from wukong.placement.leaving_nodes import NOTICE

Json = dict[str, Any]
NODES = "/api/v1/nodes"
NOTICE_SECONDS, WATCH_SECONDS = 120.0, 120.0  # the notice; how long at most until all is whole after the end
SET_UP_SECONDS = 240.0
ADMIN = "wukong-testbed-admin"  # as whom drains are done here


class Result(msgspec.Struct):
    mode: str
    losses: dict[str, Loss]
    lost: list[str]
    last_left: float
    whole_after: float  # seconds after the notice; 0 if that was not seen
    refused: int  # evictions answered 429

    @property
    def missing_seconds(self) -> float:
        return sum(loss.missing_seconds for loss in self.losses.values())

    def describe(self) -> str:
        rows = [f"{name} {loss.fewest}; {loss.short_seconds:.0f} s" for name, loss in self.losses.items()]
        head = f"{self.mode}: {len(self.lost)} lost, {self.refused} evictions refused, last pod left after "
        return f"{head}{self.last_left:.0f} s, missing {self.missing_seconds:.0f} replica-seconds: " + ", ".join(rows)


async def furnish(client: Client) -> None:
    for name in (*SPOT, *ON_DEMAND):
        labels = {OWN_LABEL: "spot" if name in SPOT else "on-demand"}
        await client.create(NODES, nodes.a_node(name, now=time.time(), labels=labels))
    await client.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    await client.wait_until(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default", lambda _: True)
    await client.create(f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets", a_daemon_set())
    for name in BUDGETS:
        await client.create(f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets", a_budget(name))


async def lay_out(client: Client, watcher: Watcher) -> None:
    """Pod by pod, with one node open at a time: the layout is forced, and the workloads are plain."""
    paths: dict[str, str] = {}
    for name in REPLICAS:
        path, body = a_workload(name)
        await client.create(path, body)
        paths[name] = f"{path}/{name}/scale"
    for count, node in enumerate(ROUNDS, start=1):
        await open_only(client, node)
        chosen = [name for name in REPLICAS if SINGLE_ON.get(name, node) == node]
        for name in chosen:
            await client.patch(paths[name], {"spec": {"replicas": 1 if name in SINGLE_ON else count}})
        await until(partial(_are_on, watcher, chosen, node))
    await open_only(client)
    await until(lambda: watcher.is_whole)


async def fill_up(client: Client) -> None:
    """No node but the doomed ones has room for another pod."""
    await client.create("/api/v1/namespaces", {"metadata": {"name": FILLER}})
    await client.wait_until(f"/api/v1/namespaces/{FILLER}/serviceaccounts/default", lambda _: True)
    path = f"/api/v1/namespaces/{FILLER}/pods"
    for pod in list_fillers():
        await client.create(path, pod)
        await client.wait_until(f"{path}/{pod['metadata']['name']}", lambda it: it["status"].get("phase") == "Running")


async def provide_nodes(client: Client, watcher: Watcher) -> None:
    """As an autoscaler does: nodes are asked for when a pod has found none, and come some time later."""
    while not any(is_unschedulable(pod) for pod in watcher.counted_pods()):
        await asyncio.sleep(0.1)
    await asyncio.sleep(NEW_SECONDS)
    for name in NEW:
        await client.create(NODES, nodes.a_node(name, now=time.time(), labels={OWN_LABEL: "on-demand"}))


def is_unschedulable(pod: Json) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any((it["type"], it["status"]) == ("PodScheduled", "False") for it in conditions)


def _are_on(watcher: Watcher, names: list[str], node: str) -> bool:
    return all(node in watcher.nodes_of(name) for name in names)


async def open_only(client: Client, *names: str) -> None:
    """Cordon all nodes but these; none named: open all. A scheduler hears of a node as late as of a pod."""
    for name in (*SPOT, *ON_DEMAND):
        is_open = not names or name in names
        await client.patch(f"{NODES}/{name}", {"spec": {"unschedulable": None if is_open else True}})


async def until(is_so: Callable[[], bool], seconds: float = SET_UP_SECONDS) -> None:
    async with asyncio.timeout(seconds):
        while not is_so():
            await asyncio.sleep(0.1)


async def give_notice(client: Client) -> None:
    body = {"metadata": {"annotations": {NOTICE: f"{NOTICE_SECONDS:.0f}s"}}}
    await asyncio.gather(*(client.patch(f"{NODES}/{name}", body) for name in DOOMED))


async def end_machines(client: Client) -> None:
    """Their kubelets fall silent, and the cloud removes the Nodes."""
    silent = {"metadata": {"annotations": {SILENT: "true"}}}
    await asyncio.gather(*(client.patch(f"{NODES}/{name}", silent) for name in DOOMED))
    await asyncio.gather(*(client.delete(f"{NODES}/{name}") for name in DOOMED))


async def drain(client: Client, watcher: Watcher) -> None:
    """As `kubectl drain --ignore-daemonsets` does it: cordon, evict all at once, try again every 5 s, until the end."""

    async def evict(pod: Json) -> None:
        meta = pod["metadata"]
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": meta["name"]}}
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{meta['name']}/eviction"
        while not watcher.dead:
            try:
                await client.create(path, body)
                return
            except ApiError as error:
                if error.status == 404:
                    return
                await asyncio.sleep(5.0)

    for name in DOOMED:
        await client.patch(f"{NODES}/{name}", {"spec": {"unschedulable": True}})
    leaving = [pod for pod in watcher.counted_pods() if pod["spec"].get("nodeName") in DOOMED]
    await asyncio.gather(*(evict(pod) for pod in leaving))


async def rest(client: Client, watcher: Watcher) -> None:
    """Nobody does anything: Wukong does, or nobody cares."""


Mover = Callable[[Client, Watcher], Coroutine[None, None, None]]


@contextlib.asynccontextmanager
async def watching(client: Client) -> AsyncIterator[Watcher]:
    watcher = Watcher(client)
    task = asyncio.create_task(watcher.look())
    try:
        yield watcher
        assert not task.done(), task
    finally:
        task.cancel()


async def play(
    bed: Bed,
    mode: str,
    move: Mover = rest,
    *,
    evictor: str = ADMIN,
    watch_seconds: float = WATCH_SECONDS,
    is_full: bool = False,
) -> Result:
    """S1 on a bed without nodes; S2 if it `is_full`. `evictor` is whose refused evictions are counted."""
    async with bed.client() as client, watching(client) as watcher:
        await furnish(client)
        await lay_out(client, watcher)
        if is_full:
            await fill_up(client)
        watcher.begin()
        await give_notice(client)
        tasks = [asyncio.create_task(move(client, watcher))]
        if is_full:
            tasks.append(asyncio.create_task(provide_nodes(client, watcher)))
        await asyncio.sleep(max(0.0, watcher.began + NOTICE_SECONDS - time.monotonic()))
        lost = watcher.kill()
        await end_machines(client)
        whole_after = 0.0
        with contextlib.suppress(TimeoutError):
            await until(lambda: watcher.is_whole, watch_seconds)
            whole_after = time.monotonic() - watcher.began
        watcher.count()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        refused = count_refused(bed, evictor)
        return Result(mode, watcher.losses, lost, watcher.last_left, whole_after, refused)


def count_refused(bed: Bed, evictor: str) -> int:
    return sum(
        entry["objectRef"].get("subresource") == "eviction" and entry.get("responseStatus", {}).get("code") == 429
        for entry in audited(bed, evictor)
    )
