"""Pods with claims: the scheduler has volumes bound on the node it chose, and waits for that before it binds a pod."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from builders import a_node, a_pod
from scheduler_world import World
from wukong.actions import Patch
from wukong.api.core import PersistentVolume, PersistentVolumeClaim, Pod, Volume, VolumeClaimSource
from wukong.api.resources import Key
from wukong.api.storage import CSINode, CSIStorageCapacity, StorageClass
from wukong.controllers.scheduler import volume_waits
from wukong.controllers.scheduler.queueing_hints import may_help
from wukong.engine.volume_use import Promise
from wukong.state import Change

SELECTED = "volume.kubernetes.io/selected-node"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
CLAIM_KEY = Key("default", "data")


def a_class(provisioner: str = "disks.example.com", mode: str = "WaitForFirstConsumer", **more: Any) -> StorageClass:
    spec = {"metadata": {"name": "zonal"}, "provisioner": provisioner, "volumeBindingMode": mode, **more}
    return msgspec.convert(spec, StorageClass)


def a_claim(annotations: dict[str, str] | None = None, **spec: Any) -> PersistentVolumeClaim:
    meta = {"name": "data", "namespace": "default", "annotations": annotations or {}}
    usual = {"storageClassName": "zonal", "resources": {"requests": {"storage": "1Gi"}}}
    return msgspec.convert({"metadata": meta, "spec": {**usual, **spec}}, PersistentVolumeClaim)


def a_volume(name: str = "disk", zone: str = "", phase: str = "Available", **spec: Any) -> PersistentVolume:
    if zone:
        term = {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    usual = {"storageClassName": "zonal", "capacity": {"storage": "1Gi"}}
    document = {"metadata": {"name": name}, "spec": {**usual, **spec}, "status": {"phase": phase}}
    return msgspec.convert(document, PersistentVolume)


def a_pod_with_claim(name: str = "web", claim: str = "data", **more: Any) -> Pod:
    pod = a_pod(name, **more)
    pod.spec.volumes = [Volume(name="data", persistent_volume_claim=VolumeClaimSource(claim_name=claim))]
    return pod


def patches(world: World) -> list[tuple[str, Any]]:
    return [(action.key.name, action.patch.body) for action in world.done if isinstance(action, Patch)]


def provision(world: World, zone: str) -> None:
    """What the volume controller and a provisioner do."""
    claim = world.state.get(PersistentVolumeClaim, CLAIM_KEY)
    assert claim is not None
    world.put(a_volume("made", zone, phase="Bound", claimRef={"namespace": "default", "name": "data"}))
    annotations = {**claim.metadata.annotations, **BOUND}
    meta = msgspec.structs.replace(claim.metadata, annotations=annotations)
    spec = msgspec.structs.replace(claim.spec, volume_name="made")
    world.put(msgspec.structs.replace(claim, metadata=meta, spec=spec))


def test_a_claim_gets_its_pods_node_and_the_pod_is_bound_at_the_next_second_once_it_is_bound() -> None:
    world = World()
    world.put(a_node("a", zone="a"), a_class(), a_claim(), a_pod_with_claim())
    assert world.settle(0.4).binds() == []
    assert [(name, body["metadata"]["annotations"]) for name, body in patches(world)] == [("data", {SELECTED: "a"})]
    provision(world, "a")
    assert world.settle(0.5).binds() == []
    assert world.settle(0.2).binds() == [("web", "a")]


def test_who_looks_late_finds_out_all_the_same() -> None:
    """On a real clock nobody looks exactly when a second is over."""
    wait = volume_waits.start_wait(a_pod_with_claim(), Promise("a", {}, (CLAIM_KEY,)), now=100.0)
    world = World()
    world.put(a_node("a", zone="a"), a_class(), a_claim({SELECTED: "a"}))
    provision(world, "a")
    assert volume_waits.look(wait, world.state, now=100.4) is None
    assert wait.due == 101.0
    assert volume_waits.look(wait, world.state, now=101.0003) == ""


def test_a_pod_that_waits_for_its_volume_takes_its_room() -> None:
    world = World()
    world.put(a_node("a", zone="a", cpu="1"), a_class(), a_claim(), a_pod_with_claim(cpu="800m"))
    world.settle()
    world.put(a_pod("late", cpu="500m"))
    assert world.settle().binds() == []
    assert "Insufficient cpu" in world.message("late")


def test_the_smallest_volume_that_is_there_is_bound_to_the_claim() -> None:
    world = World()
    volumes = [a_volume("large", capacity={"storage": "9Gi"}), a_volume("small"), a_volume("far", zone="b")]
    world.put(a_node("a", zone="a"), a_class("kubernetes.io/no-provisioner"), a_claim(), *volumes)
    world.put(a_pod_with_claim())
    world.settle()
    ((name, body),) = patches(world)
    assert (name, body["spec"]["claimRef"]["name"]) == ("small", "data")
    assert body["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}


def test_where_provisioning_fails_another_node_is_looked_for() -> None:
    world = World()
    world.put(a_node("a", zone="a"), a_class(), a_claim(), a_pod_with_claim())
    world.settle(0.1)
    world.put(a_claim())  # the provisioner took the node off
    world.settle(1.0)
    assert world.message("web") == 'binding volumes: provisioning failed for PVC "data"'
    world.settle(2.0)
    assert len(patches(world)) >= 3  # the node, what went wrong, the node again
    provision(world, "a")
    assert world.settle(2.0).binds() == [("web", "a")]


def test_after_ten_minutes_it_is_given_up() -> None:
    world = World()
    world.put(a_node("a", zone="a"), a_class(), a_claim(), a_pod_with_claim())
    world.settle(599.0)
    assert world.message("web") == ""
    world.settle(1.5)
    assert world.message("web") == "binding volumes: context deadline exceeded"


def test_what_could_not_be_written_is_written_again() -> None:
    world = World()
    world.fails = [Patch]
    world.put(a_node("a", zone="a"), a_class(), a_claim(), a_pod_with_claim())
    world.settle(5.0)
    assert [name for name, _ in patches(world)] == ["data"]
    provision(world, "a")
    assert world.settle(2.0).binds() == [("web", "a")]


def test_a_pod_that_goes_while_it_waits_takes_no_room_any_more() -> None:
    world = World()
    world.put(a_node("a", zone="a", cpu="1"), a_class(), a_claim(), a_pod_with_claim(cpu="800m"))
    world.settle()
    world.end("Pod", "web", "default")
    world.put(a_pod("late", cpu="500m"))
    assert world.settle(2.0).binds() == [("late", "a")]


def test_a_second_pod_with_the_claim_follows_the_first() -> None:
    world = World()
    world.put(a_node("a", zone="a"), a_node("b", zone="b"), a_class(), a_claim())
    world.put(a_pod_with_claim("first", node_selector={"topology.kubernetes.io/zone": "b"}), a_pod_with_claim("second"))
    world.settle(0.5)
    provision(world, "b")
    assert world.settle(2.0).binds() == [("first", "b"), ("second", "b")]


PODS_CLAIM = a_pod_with_claim()
ROOM: dict[str, Any] = {"storageClassName": "zonal", "nodeTopology": {}}
TINY, LARGE = {**ROOM, "capacity": "1Mi"}, {**ROOM, "capacity": "1Ti"}


@pytest.mark.parametrize(
    ("plugin", "old", "new", "helps"),
    [
        ("VolumeBinding", None, a_claim(), True),
        ("VolumeBinding", a_claim(), a_claim(BOUND), True),
        ("VolumeRestrictions", None, a_claim(), True),
        ("VolumeRestrictions", a_claim(), a_claim(BOUND), False),
        ("VolumeZone", a_claim(), a_claim(BOUND), True),
        ("NodeVolumeLimits", None, a_claim(), True),
        ("NodeResourcesFit", None, a_claim(), False),
        ("VolumeBinding", a_volume(), a_volume(zone="a"), True),
        ("VolumeZone", None, a_volume(), True),
        ("VolumeZone", a_volume(), a_volume(zone="a"), False),
        ("VolumeBinding", a_class(), a_class(), False),
        ("VolumeBinding", None, a_class(), True),
        ("VolumeZone", None, a_class(mode="Immediate"), False),
        ("VolumeZone", None, a_class(), True),
        ("VolumeBinding", a_class(), a_class(allowedTopologies=[{"matchLabelExpressions": []}]), True),
        ("NodeVolumeLimits", None, CSINode(), True),
        ("NodeVolumeLimits", CSINode(), CSINode(), False),
        ("VolumeBinding", msgspec.convert(TINY, CSIStorageCapacity), msgspec.convert(LARGE, CSIStorageCapacity), True),
        ("VolumeBinding", msgspec.convert(LARGE, CSIStorageCapacity), msgspec.convert(TINY, CSIStorageCapacity), False),
    ],
)
def test_what_wakes_a_pod_that_a_volume_plugin_refused(plugin: str, old: Any, new: Any, helps: bool) -> None:
    change = Change("ADDED" if old is None else "MODIFIED", "", Key("", ""), old, new)
    assert may_help(PODS_CLAIM, frozenset({plugin}), change, World().state) is helps


def test_claims_of_others_wake_nobody() -> None:
    pod = a_pod_with_claim(claim="other")
    change = Change("ADDED", "", CLAIM_KEY, None, a_claim())
    assert not may_help(pod, frozenset({"VolumeBinding", "VolumeZone"}), change, World().state)
