"""A kind is one entry of one table: with nothing else it is mirrored, captured, loaded, patched and reconciled.

The kind is the hardest there is: a Deployment of somebody else's group, beside Kubernetes' own.
"""

from __future__ import annotations

import json
from collections import Counter as Tally
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import field

from wukong.actions import DONE, Outcome, Patch
from wukong.api import apps
from wukong.api.decode import decode_objects
from wukong.api.kind_table import Kind, SnapshotFields
from wukong.api.kinds import DEPLOYMENTS, KINDS, PODS
from wukong.api.meta import Base, Object
from wukong.api.objects import Objects
from wukong.api.resources import Key, Resource
from wukong.app.sim_live.plan import make_plan
from wukong.app.snapshots import load, play_on
from wukong.cluster.capture import capture, capture_documents
from wukong.cluster.snapshot_documents import read_documents
from wukong.embedded.scenario import Scenario, read_scenario
from wukong.embedded.store import Server, Store
from wukong.embedded.world.clock import VirtualClock
from wukong.embedded.world.world import World
from wukong.errors import ClusterError, InputError
from wukong.ports import Document, PatchBody
from wukong.state import State
from wukong.state.controller import Watch

FLEETS = Resource(kind="Deployment", group="fleet.example.com", version="v1alpha1", plural="deployments")
KEY = Key("default", "web")


class FleetSpec(Base):
    regions: list[str] = []
    paused: bool = False


class Deployment(Object):
    """Of fleet.example.com: it has the name of Kubernetes' own kind, and nothing else of it."""

    spec: FleetSpec = field(default_factory=FleetSpec)


ENTRY = Kind(
    resource=FLEETS,
    struct=Deployment,
    origin="foreign",
    decides=True,
    loads=True,
    snapshot=SnapshotFields(("spec.stages", "status")),
    has_generation=True,
    merge_keys={"spec.stages": ("name",)},
)


@pytest.fixture(autouse=True)
def new_kind() -> Iterator[None]:
    KINDS.add(ENTRY)
    try:
        yield
    finally:
        KINDS.remove(ENTRY)


class Pauses:
    """Writes into the status of a fleet's Deployment whether it is paused."""

    name = "pauses"
    watches = (Watch(FLEETS),)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        fleet = state.get(Deployment, key)
        if fleet is None:
            return DONE
        status = {"isPaused": fleet.spec.paused}
        if getattr(fleet, "document", {}).get("status") == status:
            return DONE
        return Outcome((Patch(FLEETS, key, PatchBody("merge", {"status": status}), subresource="status"),))


class Versions:
    """Watches Kubernetes' own Deployments and changes nothing."""

    name = "versions"
    watches = (Watch(DEPLOYMENTS), Watch(PODS))

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        return DONE


def a_fleet(**spec: Any) -> Document:
    stages = [{"name": "first", "share": 10}, {"name": "last", "share": 100}]
    return {
        "apiVersion": FLEETS.api_version,
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"regions": ["eu"], "stages": stages, **spec},
    }


def a_deployment() -> Document:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def a_world() -> World:
    clock = VirtualClock()
    server = Server(clock)
    server.create(DEPLOYMENTS, a_deployment(), "default")
    server.create(FLEETS, a_fleet(), "default")
    world = World([Pauses(), Versions()], server=server, clock=clock)
    world.run(seconds=60)
    return world


async def a_snapshot(world: World, file: Path) -> Path:
    documents = [document async for document in capture_documents(Store(server=world.server))]
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": documents}))
    return file


def test_it_is_mirrored_beside_its_namesake_and_reconciled() -> None:
    world = a_world()
    fleet, own = world.state.get(Deployment, KEY), world.state.get(apps.Deployment, KEY)
    assert fleet is not None
    assert own is not None
    assert (fleet.spec.regions, own.spec.replicas) == (["eu"], 0)
    assert len(world.state.all(Deployment)) == len(world.state.all(apps.Deployment)) == 1
    assert world.server.get(FLEETS, KEY)["status"] == {"isPaused": False}
    assert "isPaused" not in str(world.server.get(DEPLOYMENTS, KEY))


def test_it_is_patched_and_its_controller_hears_of_it() -> None:
    world = a_world()
    world.server.patch(FLEETS, KEY, PatchBody("merge", {"spec": {"paused": True}}))
    world.run(seconds=60)
    assert world.server.get(FLEETS, KEY)["status"] == {"isPaused": True}
    assert world.server.get(FLEETS, KEY)["metadata"]["generation"] == 2


def test_its_lists_are_merged_by_the_keys_its_entry_names() -> None:
    world = a_world()
    mine = {**a_fleet(), "spec": {"stages": [{"name": "last", "share": 90}]}}
    world.server.patch(FLEETS, KEY, PatchBody("apply", mine, manager="me", force=True))
    stages = world.server.get(FLEETS, KEY)["spec"]["stages"]
    assert stages == [{"name": "first", "share": 10}, {"name": "last", "share": 90}]


def test_none_of_its_namesakes_rules_apply_to_it() -> None:
    """Kubernetes fills in a Deployment's defaults and refuses one without a selector."""
    world = a_world()
    assert set(world.server.get(FLEETS, KEY)["spec"]) == {"regions", "stages"}
    with pytest.raises(ClusterError):
        world.server.patch(FLEETS, KEY, PatchBody("strategic", {"spec": {"paused": True}}))


async def test_it_is_captured_typed_and_as_a_document(tmp_path: Path) -> None:
    world = a_world()
    objects = await capture(Store(server=world.server))
    assert [subject.key for subject in objects.of(FLEETS.group_kind)] == ["default/web"]
    assert [deployment.key for deployment in objects.deployments] == ["default/web"]
    skipped: Tally[str] = Tally()
    documents = read_documents(str(await a_snapshot(world, tmp_path / "snapshot.json")), skipped).items
    (kept,) = [document for document in documents if document["apiVersion"] == FLEETS.api_version]
    assert kept["spec"] == {"regions": ["eu"], "stages": a_fleet()["spec"]["stages"]}
    assert kept["status"] == {"isPaused": False}


async def test_it_is_loaded_into_an_embedded_cluster_and_changed_there(tmp_path: Path) -> None:
    file = await a_snapshot(a_world(), tmp_path / "snapshot.json")
    start = load(read_documents(str(file), Tally()).items)
    assert FLEETS in [resource for resource, _ in start.objects]
    story = play_on(start, Scenario(manifests=[a_fleet(paused=True)]))
    assert story.settled
    assert any("applies Deployment default/web" in event.text for event in story.events), story.events
    patches = [line for line in story.trace if '"by":"scenario"' in line]
    assert len(patches) == 1, story.trace
    assert FLEETS.group in patches[0]


async def test_a_run_on_a_real_cluster_looks_for_it_by_its_group() -> None:
    server = Server(VirtualClock())
    cluster = Store(server=server)
    server.create(DEPLOYMENTS, a_deployment(), "default")
    plan = await make_plan(cluster, Scenario(manifests=[a_fleet()]), makes_nodes=False)
    assert plan.covers("Deployment", "default/web")
    server.create(FLEETS, a_fleet(), "default")
    with pytest.raises(InputError, match="Deployment default/web exists already"):
        await make_plan(cluster, Scenario(manifests=[a_fleet()]), makes_nodes=False)


async def test_a_run_on_a_real_cluster_leaves_what_is_called_like_it_alone() -> None:
    server = Server(VirtualClock())
    server.create(DEPLOYMENTS, a_deployment(), "default")
    text = {"manifests": [a_fleet()], "timeline": [{"at": "1s", "delete": {"kind": "Deployment", "name": "web"}}]}
    with pytest.raises(InputError, match="Deployment web is not of the scenario's making"):
        await make_plan(Store(server=server), read_scenario(json.dumps(text)), makes_nodes=False)


def test_it_is_read_from_files_by_its_group() -> None:
    objects = Objects()
    for subject in decode_objects(json.dumps({"kind": "List", "items": [a_fleet(), a_deployment()]}).encode()):
        objects.add(subject)
    assert [type(subject) for subject in objects.everything()] == [apps.Deployment, Deployment]
    wrong = {**a_fleet(), "apiVersion": "policy/v1"}
    with pytest.raises(InputError, match=r"expected apps/v1 or fleet.example.com/v1alpha1 for kind Deployment"):
        list(decode_objects(json.dumps(wrong).encode()))


def test_a_group_and_kind_is_in_the_table_once() -> None:
    with pytest.raises(ValueError, match=r"has Deployment.fleet.example.com already"):
        KINDS.add(ENTRY)


def test_a_struct_that_was_asked_for_before_its_entry_is_found_by_it() -> None:
    KINDS.remove(ENTRY)
    try:
        assert KINDS.group_kind_of(Deployment) == "Deployment"
    finally:
        KINDS.add(ENTRY)
    assert KINDS.group_kind_of(Deployment) == "Deployment.fleet.example.com"


def test_a_kind_that_may_be_called_like_another_has_its_group_in_its_title() -> None:
    unlisted = Resource(kind="Deployment", group="other.example.com", plural="deployments")
    titles = [KINDS.title_of(resource) for resource in (DEPLOYMENTS, FLEETS, unlisted)]
    assert titles == ["Deployment", "Deployment.fleet.example.com", "Deployment.other.example.com"]
