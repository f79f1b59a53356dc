"""The scheduler controller under load on a real API server: many pods at once, cut short and started anew meanwhile."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

from live.own_scheduler import scheduling
from live.twins import is_refused
from testbed import nodes
from testbed.client import Client, Listed, as_json
from testbed.pytest_plugin import Bed, HollowNodes

PODS, NODES, CPUS = 60, 5, 4
SIZES = (500, 1000, 250)  # milli, in turn; together they want nearly twice what there is
DEADLINE_SECONDS = 120.0


async def test_a_burst_of_pods_is_placed_once_each_though_the_scheduler_is_cut_short(
    bed: Bed, namespace: str, hollow_nodes: HollowNodes
) -> None:
    names = await hollow_nodes(NODES, capacity={"cpu": str(CPUS)})
    scheduler = f"ours-{namespace[-8:]}"
    async with bed.client() as client:
        async with asyncio.TaskGroup() as group:
            for number in range(PODS):
                group.create_task(client.create(path(namespace), a_pod(number, namespace, scheduler)))
        async with scheduling(bed, scheduler, grace_seconds=0.0):
            await until(client, namespace, lambda pods: sum("nodeName" in pod["spec"] for pod in pods) >= 5)
        async with scheduling(bed, scheduler):
            found = await until(client, namespace, lambda pods: is_at_rest(pods, names))
    taken = taken_on(found)
    assert set(taken) <= {*names, ""}
    assert all(taken[name] <= CPUS * 1000 for name in names), taken
    assert {pod["status"]["phase"] for pod in found if "nodeName" in pod["spec"]} <= {"Pending", "Running"}


async def until(client: Client, namespace: str, is_so: Callable[[list[Any]], bool]) -> list[Any]:
    """The pods of the namespace once they are so."""
    pods: dict[str, Any] = {}
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            async for change in client.follow(path(namespace)):
                for raw in change.items if isinstance(change, Listed) else [change.object]:
                    pod = as_json(raw)
                    pods[pod["metadata"]["name"]] = pod
                if len(pods) == PODS and is_so([*pods.values()]):
                    break
    except TimeoutError:
        raise AssertionError(f"not so within {DEADLINE_SECONDS:.0f} s: {dict(taken_on([*pods.values()]))}") from None
    return [*pods.values()]


def is_at_rest(pods: list[Any], names: list[str]) -> bool:
    """Every pod has a node, or has been told that none has room, and none has."""
    taken = taken_on(pods)
    most = max(CPUS * 1000 - taken[name] for name in names)
    waiting = [pod for pod in pods if "nodeName" not in pod["spec"]]
    return all(is_refused(pod) and milli(pod) > most for pod in waiting)


def taken_on(pods: list[Any]) -> Counter[str]:
    taken: Counter[str] = Counter()
    for pod in pods:
        taken[pod["spec"].get("nodeName", "")] += milli(pod)
    return taken


def path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def a_pod(number: int, namespace: str, scheduler: str) -> Any:
    requests = {"cpu": f"{SIZES[number % len(SIZES)]}m"}
    container = {"name": "main", "image": "web", "resources": {"requests": requests}}
    spec = {"containers": [container], "schedulerName": scheduler, **nodes.on_reserved(namespace)}
    return {"metadata": {"name": f"pod-{number:02d}"}, "spec": {**spec, "terminationGracePeriodSeconds": 0}}


def milli(pod: Any) -> int:
    text = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000
