"""Whose pods a story counts where two groups have a kind of one name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from wukong.api.apps import Workload
from wukong.api.kind_table import Kind
from wukong.api.kinds import DEPLOYMENTS, KINDS, PODS
from wukong.api.resources import Key, Resource
from wukong.embedded.scenario.record.recorder import Recorder
from wukong.embedded.world import objects
from wukong.embedded.world.clock import VirtualClock
from wukong.ports import Document
from wukong.runtime.dispatch import Item
from wukong.state import Change, State

FLEETS = Resource(kind="Deployment", group="fleet.example.com", version="v1", plural="deployments")


class Deployment(Workload):
    """Of fleet.example.com: it makes its pods itself."""


ENTRY = Kind(resource=FLEETS, struct=Deployment, origin="foreign", loads=True, is_workload=True)


@pytest.fixture(autouse=True)
def foreign_kind() -> Iterator[None]:
    KINDS.add(ENTRY)
    try:
        yield
    finally:
        KINDS.remove(ENTRY)


class Cluster:
    def __init__(self) -> None:
        self.state, self.clock = State(), VirtualClock()

    def listen(self, hear: Callable[[Change], None]) -> None:
        self.hear = hear

    def failing_keys(self, controller: str) -> list[Key]:
        return []

    def attempt(self, item: Item) -> None:
        return None

    def add(self, resource: Resource, document: Document) -> None:
        subject = objects.read(resource.group_kind, {"apiVersion": resource.api_version, **document})
        for change in self.state.apply("ADDED", subject, resource.group_kind):
            self.hear(change)


def a_workload(uid: str, replicas: int) -> Document:
    return {"metadata": {"name": "web", "namespace": "default", "uid": uid}, "spec": {"replicas": replicas}}


def a_pod(name: str) -> Document:
    owner = {"apiVersion": FLEETS.api_version, "kind": "Deployment", "name": "web", "uid": "fleet", "controller": True}
    meta = {"name": name, "namespace": "default", "uid": name, "ownerReferences": [owner]}
    return {"metadata": meta, "spec": {"nodeName": "n1", "containers": []}}


def test_workloads_of_two_groups_with_one_kind_and_name_are_told_apart() -> None:
    cluster = Cluster()
    recorder = Recorder(cluster)
    cluster.add(DEPLOYMENTS, a_workload("own", 3))
    cluster.add(FLEETS, a_workload("fleet", 2))
    for name in ("a", "b"):
        cluster.add(PODS, a_pod(name))
    recorder.finish(recorder.cluster.clock.now())
    assert {name: summary.replicas for name, summary in recorder.workloads.items()} == {
        "default/web": 3,
        "default/web.deployment": 2,
    }
    assert recorder.workloads["default/web.deployment"].per_node == {"n1": 2}
    assert recorder.workloads["default/web"].per_node == {}


def test_a_deployment_of_another_group_may_make_its_pods_itself() -> None:
    cluster = Cluster()
    recorder = Recorder(cluster)
    cluster.add(FLEETS, a_workload("fleet", 2))
    for name in ("a", "b"):
        cluster.add(PODS, a_pod(name))
    cluster.clock.move_to(cluster.clock.now() + 1.0)
    recorder.finish(recorder.cluster.clock.now())
    assert recorder.workloads["default/web"].max_pods == 2
