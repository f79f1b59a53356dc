"""What a hollow kubelet makes of news that cross: no API server, only the order in which it hears of things."""

import asyncio
from typing import cast

import msgspec

from testbed import nodes
from testbed.behaviour import Behaviour
from testbed.client import Client, Json
from testbed.kubelet import Kubelets
from testbed.objects import Node, Pod


class SlowAnswers:
    """Stores what is patched, but the news of a deletion overtake the answer to the patch."""

    def __init__(self) -> None:
        self.kubelets: Kubelets | None = None
        self.deleted: list[str] = []

    async def patch(self, path: str, body: Json, kind: str = "merge") -> Json:
        assert self.kubelets is not None
        self.kubelets.pod_changed(a_pod(version=3, deletionTimestamp="2026-01-01T00:00:00Z"))
        answer: Json = msgspec.to_builtins(a_pod(version=2))
        return answer | {"status": body["status"]}

    async def delete(self, path: str, *, grace_seconds: int | None = None, uid: str | None = None) -> None:
        self.deleted.append(path)


def a_pod(version: int, **meta: str) -> Pod:
    metadata = {"name": "web", "namespace": "default", "uid": "1", "resourceVersion": str(version), **meta}
    spec = {"nodeName": "node-0", "containers": [{"name": "main", "image": "web"}]}
    return msgspec.convert({"metadata": metadata, "spec": spec}, Pod)


async def test_a_deletion_that_overtakes_the_answer_to_a_patch_is_not_forgotten() -> None:
    server = SlowAnswers()
    at_once = Behaviour(pull_seconds=0, start_seconds=0, ready_seconds=0, stop_seconds=0)
    kubelets = server.kubelets = Kubelets(cast(Client, server), at_once)
    kubelets.nodes["node-0"] = msgspec.convert(nodes.a_node("node-0", now=0), Node)
    kubelets.pod_changed(a_pod(version=1))
    while kubelets.tasks:
        await asyncio.gather(*kubelets.tasks)
    assert server.deleted == ["/api/v1/namespaces/default/pods/web"]
