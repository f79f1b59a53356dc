"""Claims are bound, volumes are made and let go, ephemeral ones go with their pods; pods wait for all that."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.actors.actor_world import NAMESPACE, add_node, list_pods
from wukong.api.kinds import (
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
)
from wukong.api.resources import Key
from wukong.controllers.scheduler.controller import Scheduler
from wukong.embedded.actors import make_actors
from wukong.embedded.store import Server
from wukong.embedded.world.clock import VirtualClock
from wukong.embedded.world.world import World
from wukong.ports import Document, PatchBody

CLAIMS, VOLUMES = PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
SELECTED = "volume.kubernetes.io/selected-node"
WANTED = {
    "accessModes": ["ReadWriteOnce"],
    "storageClassName": "disks",
    "resources": {"requests": {"storage": "1Gi"}},
}
DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}


def a_world() -> World:
    """Two nodes, every actor, and the scheduler, which waits for claims."""
    clock = VirtualClock()
    server = Server(clock)
    world = World(
        [*make_actors(server), Scheduler(["default-scheduler"], name="scheduler")], server=server, clock=clock
    )
    server.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    for name in ("n0", "n1"):
        add_node(world, name)
    world.run()
    return world


def a_storage_world(**storage_class: Any) -> World:
    world = a_world()
    body = {"metadata": {"name": "disks"}, "provisioner": "disks.example.com", **storage_class}
    world.server.create(STORAGE_CLASSES, body)
    return world


def claim(world: World, name: str = "data", size: str = "1Gi", **spec: Any) -> None:
    usual = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "disks",
        "resources": {"requests": {"storage": size}},
    }
    world.server.create(CLAIMS, {"metadata": {"name": name}, "spec": {**usual, **spec}}, NAMESPACE)


def a_volume(name: str, size: str = "1Gi", **spec: Any) -> Document:
    usual = {"accessModes": ["ReadWriteOnce"], "storageClassName": "disks", "capacity": {"storage": size}}
    return {"metadata": {"name": name}, "spec": {**usual, "hostPath": {"path": "/x"}, **spec}}


def use(world: World, name: str, *volumes: Document, **more: Any) -> None:
    spec = {"containers": [{"name": "main", "image": "web"}], "volumes": [*volumes], **more}
    world.server.create(PODS, {"metadata": {"name": name}, "spec": spec}, NAMESPACE)


def of_claim(name: str = "data") -> Document:
    return {"name": "data", "persistentVolumeClaim": {"claimName": name}}


def create_stateful_set(world: World, replicas: int) -> None:
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "db", "image": "db"}]}}
    spec = {
        "replicas": replicas,
        "serviceName": "db",
        "selector": {"matchLabels": {"app": "db"}},
        "template": template,
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": WANTED}],
    }
    world.server.create(STATEFUL_SETS, {"metadata": {"name": "db"}, "spec": spec}, NAMESPACE)


def get(world: World, name: str = "data") -> Document:
    return world.server.get(CLAIMS, Key(NAMESPACE, name))


def volumes_of(world: World) -> list[Document]:
    return world.server.list(VOLUMES).items


def test_a_claim_that_binds_at_once_gets_a_volume_made_and_its_pod_waits_for_that() -> None:
    world = a_storage_world()
    use(world, "web", of_claim())
    world.run(seconds=30)
    assert "not found" in str(list_pods(world)[0]["status"])
    claim(world)
    world.run()
    assert get(world)["status"]["phase"] == "Bound"
    assert get(world)["metadata"]["annotations"]["volume.kubernetes.io/storage-provisioner"] == "disks.example.com"
    (volume,) = volumes_of(world)
    assert (volume["status"]["phase"], volume["spec"]["persistentVolumeReclaimPolicy"]) == ("Bound", "Delete")
    assert list_pods(world)[0]["status"]["phase"] == "Running"


def test_a_claim_that_waits_is_bound_where_its_first_pod_goes() -> None:
    world = a_storage_world(volumeBindingMode="WaitForFirstConsumer")
    claim(world)
    world.run()
    assert (get(world)["status"]["phase"], volumes_of(world)) == ("Pending", [])
    use(world, "web", of_claim())
    world.run()
    node = list_pods(world)[0]["spec"]["nodeName"]
    assert get(world)["metadata"]["annotations"][SELECTED] == node
    (term,) = volumes_of(world)[0]["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["operator"] == "In"
    assert list_pods(world)[0]["status"]["phase"] == "Running"


def test_the_smallest_volume_that_suits_is_taken_before_one_is_made() -> None:
    world = a_storage_world()
    for name, size in (("large", "9Gi"), ("fits", "2Gi"), ("small", "1Gi")):
        world.server.create(VOLUMES, a_volume(name, size))
    world.run()
    assert [volume["status"]["phase"] for volume in volumes_of(world)] == ["Available"] * 3
    claim(world, size="1500Mi")
    world.run()
    assert get(world)["spec"]["volumeName"] == "fits"
    assert get(world)["status"] == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}}


@pytest.mark.parametrize(("policy", "left"), [("Delete", []), ("Retain", ["Released"])])
def test_a_volume_whose_claim_goes_is_deleted_or_released(policy: str, left: list[str]) -> None:
    world = a_storage_world(reclaimPolicy=policy)
    claim(world)
    world.run()
    world.server.delete(CLAIMS, Key(NAMESPACE, "data"))
    world.run()
    assert [volume["status"]["phase"] for volume in volumes_of(world)] == left


def test_a_volume_that_is_bound_stays_and_a_claim_whose_volume_goes_all_the_same_is_lost() -> None:
    world = a_storage_world()
    claim(world)
    world.run()
    key = Key("", volumes_of(world)[0]["metadata"]["name"])
    world.server.delete(VOLUMES, key)
    world.run()
    assert (get(world)["status"]["phase"], volumes_of(world)[0]["status"]["phase"]) == ("Bound", "Bound")
    world.server.patch(VOLUMES, key, PatchBody("merge", {"metadata": {"finalizers": None}}))
    world.run()
    assert get(world)["status"]["phase"] == "Lost"


@pytest.mark.parametrize("is_scheduled", [True, False])
def test_a_claim_stays_while_a_pod_that_has_a_node_uses_it(is_scheduled: bool) -> None:
    world = a_storage_world(volumeBindingMode="Immediate" if is_scheduled else "WaitForFirstConsumer")
    claim(world)
    use(world, "web", of_claim(), **({} if is_scheduled else {"nodeSelector": {"there-is": "none"}}))
    world.run(seconds=30)
    world.server.delete(CLAIMS, Key(NAMESPACE, "data"))
    world.run(seconds=30)
    assert len(world.server.list(CLAIMS).items) == is_scheduled
    world.server.delete(PODS, Key(NAMESPACE, "web"))
    world.run(seconds=30)
    assert (world.server.list(CLAIMS).items, volumes_of(world)) == ([], [])


def test_a_claim_without_its_finalizer_gets_it_beside_those_of_others() -> None:
    world = a_storage_world()
    claim(world)
    others = {"metadata": {"finalizers": ["example.com/backup"]}}
    world.server.patch(CLAIMS, Key(NAMESPACE, "data"), PatchBody("merge", others))
    world.run()
    assert get(world)["metadata"]["finalizers"] == ["example.com/backup", "kubernetes.io/pvc-protection"]


def test_a_stateful_sets_pod_waits_for_the_end_of_a_claim_that_is_being_deleted() -> None:
    world = a_storage_world()
    create_stateful_set(world, replicas=1)
    world.run()
    world.server.delete(CLAIMS, Key(NAMESPACE, "data-db-0"))
    first = world.server.get(CLAIMS, Key(NAMESPACE, "data-db-0"))["metadata"]["uid"]
    world.run(seconds=30)
    world.server.delete(PODS, Key(NAMESPACE, "db-0"))
    world.run(seconds=60)
    second = world.server.get(CLAIMS, Key(NAMESPACE, "data-db-0"))["metadata"]
    assert (second["uid"] != first, second.get("deletionTimestamp")) == (True, None)
    assert [pod["status"]["phase"] for pod in list_pods(world)] == ["Running"]


def test_the_claim_of_an_ephemeral_volume_is_its_pods_and_goes_with_it() -> None:
    world = a_storage_world(volumeBindingMode="WaitForFirstConsumer")
    spec = WANTED
    use(world, "web", {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}})
    world.run()
    assert list_pods(world)[0]["status"]["phase"] == "Running"
    assert get(world, "web-scratch")["metadata"]["ownerReferences"][0]["name"] == "web"
    world.server.delete(PODS, Key(NAMESPACE, "web"))
    world.run()
    assert world.server.list(CLAIMS).items == []
    assert volumes_of(world) == []


def test_a_claim_that_names_no_class_gets_the_default_one() -> None:
    world = a_world()
    body = {"metadata": {"name": "usual", "annotations": DEFAULT}, "provisioner": "disks.example.com"}
    world.server.create(STORAGE_CLASSES, body)
    claim(world, storageClassName=None)
    claim(world, "none", storageClassName="")
    assert get(world)["spec"]["storageClassName"] == "usual"
    assert get(world, "none")["spec"]["storageClassName"] == ""


def test_a_stateful_set_gets_a_volume_for_each_pod() -> None:
    world = a_storage_world(volumeBindingMode="WaitForFirstConsumer")
    create_stateful_set(world, replicas=3)
    world.run()
    assert [pod["status"]["phase"] for pod in list_pods(world)] == ["Running"] * 3
    assert sorted(volume["spec"]["claimRef"]["name"] for volume in volumes_of(world)) == [
        *(f"data-db-{number}" for number in range(3)),
    ]
