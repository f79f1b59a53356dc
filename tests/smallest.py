"""The smallest cluster around the embedded API server that the conformance suite needs.

A real cluster has controllers and kubelets, and some cases wait for them: pods bound to a node run and, once deleted,
go; budgets are counted; garbage is collected; namespaces are emptied. Here each is a few lines that look at everything
after every change. They run as a task of their own, so that, as in a real cluster, they act after a request is
answered, never within it. The embedded cluster's own actors are to take their place.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from wukong.actions import Action, Delete, Patch
from wukong.api.resources import RESOURCES
from wukong.embedded.store import Server, Store, garbage, namespaces
from wukong.embedded.store.database import Place, key_of
from wukong.embedded.store.deleting import Options
from wukong.embedded.store.documents import at, condition_of, is_leaving, meta_of
from wukong.embedded.store.evicting import covers
from wukong.errors import ClusterError
from wukong.ports import Document, PatchBody

START = 1_767_225_600.0  # 2026-01-01
PODS, NODES, BUDGETS = RESOURCES["Pod"], RESOURCES["Node"], RESOURCES["PodDisruptionBudget"]
CAPACITY = {"cpu": "8", "memory": "16Gi", "pods": "110"}


class Still:
    """A clock that moves only when told to."""

    def __init__(self, now: float = START) -> None:
        self.time = now

    def now(self) -> float:
        return self.time


@asynccontextmanager
async def a_small_cluster(*spaces: str, nodes: int = 3) -> AsyncIterator[Store]:
    """A Store with these namespaces, some nodes, and who it takes to make them live."""
    server = Server(Still())
    for name in spaces:
        server.create(RESOURCES["Namespace"], {"metadata": {"name": name}})
    for number in range(nodes):
        server.create(NODES, {"metadata": {"name": f"node-{number}"}, "status": {"capacity": CAPACITY}})
    settle(server)
    async with Store(server=server) as store:
        task = asyncio.create_task(live(server))
        try:
            yield store
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def live(server: Server) -> None:
    """For ever: after any change, everybody does what is due until nobody finds anything to do."""
    changed = asyncio.Event()
    server.database.listen(lambda name: changed.set())
    while True:
        settle(server)
        changed.clear()
        await changed.wait()


def settle(server: Server) -> None:
    """Until nothing changes any more."""
    version = -1
    while version != server.database.version:
        version = server.database.version
        for act in ACTORS:
            act(server)


def run_pods(server: Server) -> None:
    """The kubelets of all nodes."""
    nodes = {meta_of(node)["name"] for node in server.list(NODES).items}
    for pod in server.list(PODS).items:
        if at(pod, "spec.nodeName") not in nodes:
            continue
        if not is_leaving(pod) and at(pod, "status.phase") == "Pending":
            ready = [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady", "PodScheduled")]
            status = {"phase": "Running", "conditions": ready}
            server.patch(PODS, key_of(pod), PatchBody("strategic", {"status": status}, manager="kubelet"), "status")
        elif is_leaving(pod) and meta_of(pod).get("deletionGracePeriodSeconds"):
            server.delete(PODS, key_of(pod), Options(uid=meta_of(pod)["uid"], grace_seconds=0))


def welcome_nodes(server: Server) -> None:
    """The node lifecycle controller, on a good day: every node is ready."""
    for node in server.list(NODES).items:
        if condition_of(node, "Ready") is None:
            ready = [{"type": "Ready", "status": "True"}]
            server.patch(NODES, key_of(node), PatchBody("strategic", {"status": {"conditions": ready}}), "status")
            rest = [each for each in node["spec"]["taints"] if each["key"] != "node.kubernetes.io/not-ready"]
            server.patch(NODES, key_of(node), PatchBody("merge", {"spec": {"taints": rest}}))


def count_budgets(server: Server) -> None:
    """The disruption controller, for budgets that say minAvailable as a number."""
    for budget in server.list(BUDGETS).items:
        key, disrupted = key_of(budget), at(budget, "status.disruptedPods") or {}
        pods = [pod for pod in server.database.all("pods", key.namespace) if covers(budget, pod)]
        healthy = len([pod for pod in pods if is_healthy(pod) and meta_of(pod)["name"] not in disrupted])
        desired = at(budget, "spec.minAvailable") or 0
        status = {
            "expectedPods": len(pods),
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "disruptionsAllowed": max(0, healthy - desired),
            "observedGeneration": meta_of(budget)["generation"],
        }
        server.patch(BUDGETS, key, PatchBody("merge", {"status": status}, manager="controller"), "status")


def is_healthy(pod: Document) -> bool:
    ready = condition_of(pod, "Ready")
    return not is_leaving(pod) and ready is not None and ready["status"] == "True"


def collect_garbage(server: Server) -> None:
    places = [Place(kind.name, key_of(each)) for kind in server.kinds for each in server.database.all(kind.name)]
    for action in garbage.due(server.database, server.kinds, places):
        perform(server, action)


def empty_namespaces(server: Server) -> None:
    for name in namespaces.leaving(server.database):
        for action in namespaces.content_due(server.database, server.kinds, name):
            perform(server, action)
        if namespaces.is_empty(server.database, server.kinds, name):
            server.finalize(name)


def perform(server: Server, action: Action) -> None:
    """What is refused is looked at again after the next change."""
    with suppress(ClusterError):
        if isinstance(action, Delete):
            options = Options(action.uid, action.resource_version, action.grace_seconds, action.propagation)
            server.delete(action.resource, action.key, options)
        elif isinstance(action, Patch):
            server.patch(action.resource, action.key, action.patch, action.subresource)


ACTORS: tuple[Callable[[Server], None], ...] = (
    welcome_nodes,
    run_pods,
    count_budgets,
    collect_garbage,
    empty_namespaces,
)
