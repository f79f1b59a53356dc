"""Claims and volumes in detail: who is bound to whom, what a made volume is like, what protects what."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.actors.actor_world import NAMESPACE
from embedded.actors.test_volumes import (
    CLAIMS,
    VOLUMES,
    a_storage_world,
    a_volume,
    claim,
    get,
    of_claim,
    use,
    volumes_of,
)
from wukong.api.core import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
)
from wukong.api.kinds import NODES, PODS
from wukong.api.meta import ObjectMeta
from wukong.api.resources import Key
from wukong.embedded.world.world import World
from wukong.ports import Document, PatchBody
from wukong.semantics.volume_claims import list_candidates

ZONE = "topology.kubernetes.io/zone"


def annotations_of(document: Document) -> Document:
    entries: Document = document["metadata"].get("annotations") or {}
    return entries


def keep_for(name: str, **fields: Any) -> Document:
    return {"claimRef": {"namespace": NAMESPACE, "name": name, **fields}}


# Binding -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("volume", "phase"),
    [
        ({}, "Bound"),
        ({"capacity": {"storage": "9Gi"}}, "Bound"),
        ({"capacity": {"storage": "1023Mi"}}, "Pending"),
        ({"storageClassName": "other"}, "Pending"),
        ({"accessModes": ["ReadOnlyMany"]}, "Pending"),
        ({"accessModes": ["ReadOnlyMany", "ReadWriteOnce"]}, "Bound"),
        ({"volumeMode": "Block"}, "Pending"),
    ],
)
def test_a_claim_that_names_a_volume_is_bound_to_it_only_if_it_suits(volume: Document, phase: str) -> None:
    """kube-controller-manager says VolumeMismatch otherwise, and the claim goes on waiting."""
    world = a_storage_world()
    world.server.create(VOLUMES, a_volume("mine", **volume))
    claim(world, volumeName="mine")
    world.run()
    assert get(world)["status"]["phase"] == phase
    assert [entry["status"]["phase"] for entry in volumes_of(world)] == ["Bound" if phase == "Bound" else "Available"]


def test_a_claim_that_names_a_volume_of_another_claim_waits() -> None:
    world = a_storage_world()
    world.server.create(VOLUMES, a_volume("mine", **keep_for("other")))
    claim(world, volumeName="mine")
    world.run()
    assert get(world)["status"]["phase"] == "Pending"


def test_a_claim_whose_volume_is_bound_to_another_is_lost() -> None:
    """kube-controller-manager says ClaimMisbound: two claims are bound to the same volume."""
    world = a_storage_world()
    world.server.create(VOLUMES, a_volume("mine"))
    claim(world, volumeName="mine")
    world.run()
    assert get(world)["status"]["phase"] == "Bound"
    taken = {"spec": keep_for("other", uid="somebody")}
    world.server.patch(VOLUMES, Key("", "mine"), PatchBody("merge", taken))
    world.server.patch(CLAIMS, Key(NAMESPACE, "data"), PatchBody("merge", {"metadata": {"labels": {"a": "b"}}}))
    world.run()
    status = get(world)["status"]
    assert (status["phase"], status.get("capacity"), status.get("accessModes")) == ("Lost", None, None)


def test_who_bound_what_is_marked_on_both_sides() -> None:
    by_controller, completed = "pv.kubernetes.io/bound-by-controller", "pv.kubernetes.io/bind-completed"
    world = a_storage_world()
    world.server.create(VOLUMES, a_volume("free"))
    claim(world)
    world.run()
    assert get(world)["spec"]["volumeName"] == "free"
    assert {name: annotations_of(get(world)).get(name) for name in (by_controller, completed)} == {
        by_controller: "yes",
        completed: "yes",
    }
    (volume,) = volumes_of(world)
    assert annotations_of(volume)[by_controller] == "yes"
    assert {name: volume["spec"]["claimRef"][name] for name in ("kind", "namespace", "name", "uid")} == {
        "kind": "PersistentVolumeClaim", "namespace": NAMESPACE, "name": "data", "uid": get(world)["metadata"]["uid"],
    }  # fmt: skip


def test_a_volume_that_is_kept_for_a_claim_is_not_the_controllers_choice() -> None:
    world = a_storage_world()
    world.server.create(VOLUMES, a_volume("kept", "5Gi", **keep_for("data")))
    world.server.create(VOLUMES, a_volume("free"))
    claim(world)
    world.run()
    assert get(world)["spec"]["volumeName"] == "kept"
    kept = next(entry for entry in volumes_of(world) if entry["metadata"]["name"] == "kept")
    assert "pv.kubernetes.io/bound-by-controller" not in annotations_of(kept)
    assert kept["spec"]["claimRef"]["uid"] == get(world)["metadata"]["uid"]


def test_of_volumes_that_suit_the_one_with_the_fewest_modes_is_taken_then_the_smallest_then_the_first() -> None:
    world = a_storage_world()
    both = ["ReadWriteOnce", "ReadOnlyMany"]
    for name, size, modes in (
        ("a", "1Gi", both),
        ("c", "2Gi", both[:1]),
        ("b", "2Gi", both[:1]),
        ("d", "3Gi", both[:1]),
    ):
        world.server.create(VOLUMES, a_volume(name, size, accessModes=modes))
    world.run()
    claim(world)
    world.run()
    assert get(world)["spec"]["volumeName"] == "b"


def test_a_volume_kept_for_a_claim_that_is_not_there_is_available() -> None:
    world = a_storage_world()
    world.server.create(VOLUMES, a_volume("kept", **keep_for("gone")))
    world.server.create(
        VOLUMES, a_volume("released", **keep_for("gone", uid="u"), persistentVolumeReclaimPolicy="Retain")
    )
    world.run()
    phases = {entry["metadata"]["name"]: entry["status"]["phase"] for entry in volumes_of(world)}
    assert phases == {"kept": "Available", "released": "Released"}


def test_a_class_without_a_provisioner_makes_no_volumes() -> None:
    world = a_storage_world(provisioner="kubernetes.io/no-provisioner")
    claim(world)
    world.run()
    assert (get(world)["status"]["phase"], volumes_of(world)) == ("Pending", [])
    assert annotations_of(get(world)) == {}


def test_a_plugin_that_became_a_driver_is_asked_by_its_new_name() -> None:
    world = a_storage_world(provisioner="kubernetes.io/aws-ebs")
    claim(world)
    world.run()
    (volume,) = volumes_of(world)
    assert volume["spec"]["csi"]["driver"] == "ebs.csi.aws.com"
    for name in ("volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner"):
        assert annotations_of(get(world))[name] == "ebs.csi.aws.com"


# Candidates --------------------------------------------------------------------------------------------------------


def candidates(volume: Document, **spec: Any) -> list[str]:
    wanted = {"access_modes": ["ReadWriteOnce"], "storage_class_name": "disks", **spec}
    asked = PersistentVolumeClaim(metadata=ObjectMeta(name="c"), spec=PersistentVolumeClaimSpec(**wanted))
    meta, status = volume.pop("metadata", {}), volume.pop("phase", "Available")
    offered = {"access_modes": ["ReadWriteOnce"], "storage_class_name": "disks", **volume}
    entry = PersistentVolume(metadata=ObjectMeta(name="v", **meta), spec=PersistentVolumeSpec(**offered))
    entry.status.phase = status
    kept, suitable = list_candidates(asked, [entry])
    assert kept is None
    return [found.metadata.name for found in suitable]


@pytest.mark.parametrize(
    ("volume", "claim_fields", "suits"),
    [
        ({}, {}, True),
        ({"phase": "Released"}, {}, False),
        ({"phase": ""}, {}, False),
        ({"storage_class_name": ""}, {}, False),
        ({"storage_class_name": ""}, {"storage_class_name": None}, True),
        ({"metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}}}, {}, False),
        ({"access_modes": []}, {}, False),
        ({"access_modes": ["ReadWriteOnce", "ReadWriteMany"]}, {}, True),
        ({"volume_mode": "Filesystem"}, {}, True),
        ({"volume_mode": "Block"}, {}, False),
        ({"volume_mode": "Block"}, {"volume_mode": "Block"}, True),
        ({"volume_attributes_class_name": "fast"}, {}, False),
        ({"volume_attributes_class_name": "fast"}, {"volume_attributes_class_name": "fast"}, True),
        ({"metadata": {"deletion_timestamp": "2026-01-01T00:00:00Z"}}, {}, False),
    ],
    ids=str,
)
def test_a_volume_suits_a_claim_of_its_class_and_modes(volume: Document, claim_fields: Document, suits: bool) -> None:
    assert candidates({**volume}, **claim_fields) == (["v"] if suits else [])


# Made volumes ------------------------------------------------------------------------------------------------------


def test_a_made_volume_is_what_its_claim_asks_for() -> None:
    world = a_storage_world(reclaimPolicy="Retain")
    claim(world, size="3Gi", volumeMode="Block")
    world.run()
    (volume,) = volumes_of(world)
    name = f"pvc-{get(world)['metadata']['uid']}"
    assert volume["metadata"]["name"] == name
    assert annotations_of(volume)["pv.kubernetes.io/provisioned-by"] == "disks.example.com"
    spec = {key: value for key, value in volume["spec"].items() if key != "claimRef"}
    assert spec == {
        "capacity": {"storage": "3Gi"}, "accessModes": ["ReadWriteOnce"], "volumeMode": "Block",
        "storageClassName": "disks", "persistentVolumeReclaimPolicy": "Retain",
        "csi": {"driver": "disks.example.com", "volumeHandle": name},
    }  # fmt: skip


def terms_of(world: World) -> list[list[tuple[str, str, list[str]]]]:
    (volume,) = volumes_of(world)
    terms = volume["spec"].get("nodeAffinity", {}).get("required", {}).get("nodeSelectorTerms", [])
    return [
        [(entry["key"], entry["operator"], entry["values"]) for entry in term["matchExpressions"]] for term in terms
    ]


def test_a_volume_that_is_made_at_once_is_where_its_class_allows() -> None:
    topology = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a", "b"]}]}]
    world = a_storage_world(allowedTopologies=topology)
    claim(world)
    world.run()
    assert terms_of(world) == [[(ZONE, "In", ["a", "b"])]]


@pytest.mark.parametrize("zone", ["east", ""])
def test_a_volume_that_waited_is_in_the_zone_of_its_pods_node_or_on_the_node(zone: str) -> None:
    world = a_storage_world(volumeBindingMode="WaitForFirstConsumer")
    for node in world.server.list(NODES).items:
        labels = {ZONE: zone or None, "kubernetes.io/hostname": node["metadata"]["name"]}
        patch = PatchBody("merge", {"metadata": {"labels": labels}})
        world.server.patch(NODES, Key("", node["metadata"]["name"]), patch)
    claim(world)
    use(world, "web", of_claim())
    world.run()
    pod = world.server.get(PODS, Key(NAMESPACE, "web"))
    place = (ZONE, "In", [zone]) if zone else ("kubernetes.io/hostname", "In", [pod["spec"]["nodeName"]])
    assert terms_of(world) == [[place]]


# Ephemeral volumes -------------------------------------------------------------------------------------------------


def test_the_claim_of_an_ephemeral_volume_has_the_labels_of_its_template_and_its_pod_for_an_owner() -> None:
    world = a_storage_world()
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "disks",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
    use(world, "web", {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}, of_claim("other"))
    world.run(seconds=5)
    (made,) = world.server.list(CLAIMS).items
    pod = world.server.get(PODS, Key(NAMESPACE, "web"))
    (owner,) = made["metadata"]["ownerReferences"]
    assert (made["metadata"]["name"], made["metadata"]["labels"]) == ("web-scratch", {"a": "b"})
    assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == (pod["metadata"]["uid"], True, True)


def test_a_claim_that_is_there_already_is_left_alone() -> None:
    world = a_storage_world()
    claim(world, "web-scratch")
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
    use(world, "web", {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}})
    world.run(seconds=30)
    (only,) = world.server.list(CLAIMS).items
    assert "ownerReferences" not in only["metadata"]
    assert world.server.get(PODS, Key(NAMESPACE, "web"))["status"]["phase"] == "Pending"
