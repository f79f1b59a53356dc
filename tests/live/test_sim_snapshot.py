"""A snapshot of a real cluster stays at rest when it is loaded, and foretells what a change to it really does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from testbed import nodes
from testbed.pytest_plugin import Bed, HollowNodes
from wukong.api.resources import RESOURCES, Key, Resource
from wukong.cli.sim_run import command as sim_run
from wukong.cli.snapshot import encode
from wukong.cluster.capture import capture_documents
from wukong.cluster.credentials import load
from wukong.cluster.kube import Kube
from wukong.embedded.objects import read
from wukong.embedded.scenario.workloads import counted
from wukong.ports import Document, PatchBody, Selection

SECONDS = 60.0
PODS = RESOURCES["Pod"]


def a_workload(kind: str, whom: str, image: str, *, apart: bool = False, stop: str = "0.1", **spec: Any) -> Document:
    pod = {"containers": [{"name": "main", "image": image}], **nodes.on_reserved(whom)}
    if apart:
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
        pod["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    meta = {"labels": {"app": "web"}, "annotations": {"testbed.wukong/stop-seconds": stop}}
    sizes = {} if kind == "DaemonSet" else {"replicas": 3}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web", "namespace": whom},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": meta, "spec": pod},
            **sizes,
            **spec,
        },
    }


class Case(NamedTuple):
    kind: str
    settings: dict[str, Any]
    completes: bool = True


CASES = {
    "a rollout": Case("Deployment", {"stop": "3"}),  # all pods at once, those that stop included, are seen
    "a rollout without surge": Case(
        "Deployment", {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}, "apart": True, "stop": "1"}
    ),
    "a deadlock": Case("Deployment", {"apart": True, "progressDeadlineSeconds": 5}, completes=False),
    "a stateful set": Case("StatefulSet", {"serviceName": "web", "podManagementPolicy": "Parallel"}),
    "a daemon set": Case("DaemonSet", {}),
}


class Seen:
    """The fewest available by the workload's own status, and the most pods at once, those that stop included."""

    def __init__(self, available: int, pods: list[Document]) -> None:
        self.min_available, self.pods = available, {each["metadata"]["name"] for each in pods}
        self.max_pods, self.is_stuck = len(self.pods), False

    def see_pod(self, event: str, pod: Document) -> None:
        (self.pods.discard if event == "DELETED" else self.pods.add)(pod["metadata"]["name"])
        self.max_pods = max(self.max_pods, len(self.pods))

    def see_workload(self, found: Document) -> None:
        self.min_available = min(self.min_available, counted(read(found["kind"], found)).available)
        conditions = found["status"].get("conditions") or []
        self.is_stuck = self.is_stuck or any(each.get("reason") == "ProgressDeadlineExceeded" for each in conditions)


def is_complete(found: Document) -> bool:
    status = found.get("status") or {}
    return counted(read(found["kind"], found)).is_complete and not status.get("terminatingReplicas")


async def what_happens(
    cluster: Kube, resource: Resource, change: Document, is_over: Callable[[Document], bool]
) -> Seen:
    namespace = change["metadata"]["namespace"]
    key, selection = Key(namespace, "web"), Selection(namespace)
    before = {**await cluster.get(resource, key, dict), "kind": resource.kind}
    pods = await cluster.list(PODS, dict, selection)
    seen = Seen(counted(read(resource.kind, before)).available, pods.items)
    page = await cluster.list(resource, dict, selection)
    over = asyncio.Event()

    async def pods_seen() -> None:
        stream = cluster.watch(PODS, dict, selection, resource_version=pods.resource_version)
        async with aclosing(stream):
            async for event in stream:
                if event.type != "BOOKMARK":
                    seen.see_pod(event.type, event.object)

    async def workload_seen() -> None:
        stream = cluster.watch(resource, dict, selection, resource_version=page.resource_version)
        async with aclosing(stream):
            async for event in stream:
                if event.type == "MODIFIED":
                    found = {**event.object, "kind": resource.kind}
                    seen.see_workload(found)
                    if is_over(found) or seen.is_stuck:
                        over.set()

    tasks = [asyncio.create_task(pods_seen()), asyncio.create_task(workload_seen())]
    try:
        await cluster.patch(resource, key, PatchBody("apply", change, manager="kubectl", force=True))
        async with asyncio.timeout(SECONDS):
            await over.wait()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return seen


def foretold(tmp_path: Path, documents: list[Document], change: Document) -> Any:
    (tmp_path / "cluster.json").write_bytes(encode(documents))
    (tmp_path / "change.json").write_text(json.dumps(change), "utf-8")
    words = ["-s", str(tmp_path / "cluster.json"), "-f", str(tmp_path / "change.json"), "-o", "json"]
    return json.loads(CliRunner().invoke(sim_run, words, catch_exceptions=False, standalone_mode=False).stdout)


def concerns(document: Document, namespace: str, own: list[str]) -> bool:
    """The bed is shared: our nodes, what is in our namespace, and what belongs to all."""
    meta = document["metadata"]
    if document["kind"] in ("Node", "Namespace"):
        return meta["name"] in (namespace, *own)
    return bool(meta.get("namespace", namespace) == namespace)


@pytest.mark.parametrize("title", CASES)
async def test_a_real_cluster_does_what_its_snapshot_foretold(
    bed: Bed, namespace: str, hollow_nodes: HollowNodes, tmp_path: Path, title: str
) -> None:
    case = CASES[title]
    own = await hollow_nodes(3)
    resource = RESOURCES[case.kind]
    before, change = (a_workload(case.kind, namespace, image, **case.settings) for image in ("web:1", "web:2"))
    async with Kube(load(str(bed.kubeconfig))) as cluster, bed.client() as client:
        key = Key(namespace, "web")
        await cluster.patch(resource, key, PatchBody("apply", before, manager="kubectl", force=True))
        path = resource.path(namespace, "web")
        await client.wait_until(path, lambda it: is_complete({**it, "kind": case.kind}), SECONDS)
        documents = [each async for each in capture_documents(cluster) if concerns(each, namespace, own)]
        real = await what_happens(cluster, resource, change, is_complete)
    story = foretold(tmp_path, documents, change)
    fate = story["workloads"][f"{namespace}/web"]
    assert story["before"]["changes"] == 0
    assert (story["settled"], not real.is_stuck) == (case.completes, case.completes)
    assert (fate["minAvailable"], fate["maxPods"]) == (real.min_available, real.max_pods)
    if not case.completes:
        assert "didn't match pod anti-affinity rules" in " ".join(story["stuck"])
    same = foretold(tmp_path, documents, before)
    assert (same["settled"], len(same["timeline"])) == (True, 1)  # the apply itself, and nothing that came of it
