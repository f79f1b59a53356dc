"""What is read with the help of an earlier version, or of a pod made alike, is as if it had been read alone."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from embedded.random_patches import a_patch, a_pod, a_workload, an_apply
from embedded.store_fixtures import DEPLOYMENTS, NAMESPACE, PODS, a_server, key
from wukong.api.resources import Key
from wukong.embedded.store import Server
from wukong.embedded.store.database import Change
from wukong.embedded.store.deletion import DeleteOptions
from wukong.embedded.world import objects
from wukong.embedded.world.object_reader import ObjectReader
from wukong.errors import ClusterError
from wukong.ports import Document, PatchBody

KINDS = {"pods": "Pod", "deployments.apps": "Deployment.apps"}
RESOURCES = {"Pod": PODS, "Deployment": DEPLOYMENTS}
STATUSES: list[Document] = [
    {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    {"conditions": [{"type": "Ready", "status": "False"}, {"type": "Odd", "status": "True", "reason": None}]},
    {"phase": None, "replicas": 3},
]


class Follower:
    """Reads every version of every object with the one before, and compares."""

    def __init__(self, server: Server) -> None:
        self.reader, self.latest, self.shared = ObjectReader(), dict[tuple[str, Key], Any](), 0
        server.database.follow(self.follow)

    def follow(self, name: str, change: Change) -> None:
        if name not in KINDS:
            return
        before = self.latest.get((name, change.key))
        subject: Any = self.reader.read(KINDS[name], change.document, None, before)
        assert subject == objects.read(KINDS[name], change.document)
        assert subject.document is change.document
        self.shared += before is not None and subject.spec is before.spec
        self.latest[name, change.key] = subject


@pytest.mark.parametrize("kind", RESOURCES)
@pytest.mark.parametrize("seed", range(6))
def test_an_object_read_with_its_earlier_version_is_as_read_alone(kind: str, seed: int) -> None:
    random, server = Random(seed), a_server(definitions=[])
    follower = Follower(server)
    for name in ("first", "second"):
        body = a_pod(name) if kind == "Pod" else a_workload(random, name)
        document = server.create(RESOURCES[kind], body, NAMESPACE)
        for step in range(15):
            if kind == "Pod" and step == 5:
                server.bind(key(name), "n1")
            patch, subresource = a_write(random, kind, name, document)
            try:
                document = server.patch(RESOURCES[kind], key(name), patch, subresource)
            except ClusterError:
                continue
        server.delete(RESOURCES[kind], key(name))
        if kind == "Pod":
            server.delete(PODS, key(name), DeleteOptions(grace_seconds=0))
    assert follower.shared > 0


def a_write(random: Random, kind: str, name: str, document: Document) -> tuple[PatchBody, str]:
    if random.random() < 0.5:
        return PatchBody("strategic", {"status": random.choice(STATUSES)}), "status"
    return (an_apply(random, kind, name) if random.random() < 0.3 else a_patch(random, kind, document)), ""


def test_pods_made_alike_share_their_spec_until_they_are_bound() -> None:
    server = a_server()
    follower = Follower(server)
    for name in ("first", "second"):
        server.create(PODS, {**a_pod("web"), "metadata": {"name": name}}, NAMESPACE)
    first, second = (follower.latest["pods", key(name)] for name in ("first", "second"))
    assert first.spec is second.spec
    server.bind(key("first"), "n1")
    assert follower.latest["pods", key("first")].spec.node_name == "n1"
    assert (first.spec.node_name, second.spec.node_name) == ("", "")


def test_a_name_created_again_is_read_as_a_whole() -> None:
    server = a_server()
    follower = Follower(server)
    for image in ("registry.example/a:1", "registry.example/b:1"):
        body = a_pod("web")
        body["spec"]["containers"][0]["image"] = image
        server.create(PODS, body, NAMESPACE)
        assert follower.latest["pods", key("web")].spec.containers[0].image == image
        server.delete(PODS, key("web"))


def test_labels_that_went_when_the_deletion_mark_came_are_gone() -> None:
    known = {"name": "a", "uid": "u", "resourceVersion": "1", "labels": {"app": "web"}}
    before = ObjectReader().read("Pod", {"metadata": known, "spec": {}})
    meta = {"name": "a", "uid": "u", "resourceVersion": "2", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    after = ObjectReader().read("Pod", {"metadata": meta, "spec": before.document["spec"]}, None, before)  # type: ignore[attr-defined]
    assert after.metadata.labels == {}
