"""Volumes that the API server refuses, source by source, by the place of what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.validation.problem_tables import CONTAINER, of_pod
from wukong.ports import Document

CLAIM: Document = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
# What a source needs, as a whole one: a server names each field that is missing.
WHOLE: dict[str, Document] = {
    "hostPath": {"path": "/a"},
    "gitRepo": {"repository": "r"},
    "secret": {"secretName": "s"},
    "nfs": {"server": "s", "path": "/a"},
    "glusterfs": {"endpoints": "e", "path": "p"},
    "persistentVolumeClaim": {"claimName": "c"},
    "cinder": {"volumeID": "v"},
    "cephfs": {"monitors": ["m"]},
    "quobyte": {"registry": "r", "volume": "v"},
    "flexVolume": {"driver": "d"},
    "configMap": {"name": "c"},
    "azureFile": {"secretName": "s", "shareName": "s"},
    "vsphereVolume": {"volumePath": "v"},
    "photonPersistentDisk": {"pdID": "p"},
    "portworxVolume": {"volumeID": "v"},
    "azureDisk": {"diskURI": "d"},
    "storageos": {"volumeName": "v"},
    "image": {"reference": "r"},
}


def a_volume(**sources: Any) -> list[str]:
    """What is wrong with a volume of these sources, below it."""
    found = of_pod(volumes=[{"name": "v", **sources}])
    return [place.removeprefix("volumes[0].") for place in found]


def token(**fields: Any) -> list[str]:
    entry = {"path": "t", "expirationSeconds": 3600, **fields}
    return a_volume(projected={"sources": [{"serviceAccountToken": entry}]})


def test_a_volume_has_a_name_of_its_own() -> None:
    assert of_pod(volumes=[{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}]) == []
    assert of_pod(volumes=[{"emptyDir": {}}]) == ["volumes[0].name: Required value"]
    assert of_pod(volumes=[{"name": "A", "emptyDir": {}}]) == ["volumes[0].name: Invalid value"]
    assert of_pod(volumes=[{"name": "a", "emptyDir": {}}] * 2) == ["volumes[1].name: Duplicate value"]


def test_a_volume_with_a_problem_cannot_be_mounted() -> None:
    mounting = {**CONTAINER, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    volume = {"name": "v", "hostPath": {}}
    assert of_pod(volumes=[volume], containers=[mounting]) == [
        "volumes[0].hostPath.path: Required value",
        "containers[0].volumeMounts[0].name: Not found",
    ]


def test_of_two_sources_the_later_is_refused() -> None:
    assert a_volume(emptyDir={}, secret={"secretName": "s"}) == ["secret: Forbidden"]
    assert a_volume(image={"reference": "r"}, nfs={"server": "s", "path": "/a"}) == ["image: Forbidden"]
    assert a_volume(emptyDir={}, cephfs={"monitors": ["m"]}) == ["cephFS: Forbidden"]


@pytest.mark.parametrize("name", list(WHOLE))
def test_a_source_says_where_it_is(name: str) -> None:
    assert a_volume(**{name: WHOLE[name]}) == []
    assert a_volume(**{name: {}}) == [f"{name}.{field}: Required value" for field in WHOLE[name]]


def test_a_source_that_is_half_there_lacks_the_rest() -> None:
    assert a_volume(rbd={"image": "i"}) == ["rbd.monitors: Required value"]
    assert a_volume(rbd={"monitors": ["m"]}) == ["rbd.image: Required value"]
    assert a_volume(rbd={"monitors": ["m"], "image": "i"}) == []
    assert a_volume(iscsi={"targetPortal": "t"}) == ["iscsi.iqn: Required value"]
    assert a_volume(gcePersistentDisk={"pdName": "p"}) == []
    scale_io = {"gateway": "g", "system": "s", "volumeName": "v"}
    assert a_volume(scaleIO={**scale_io, "secretRef": {"name": "s"}}) == []
    assert a_volume(scaleIO=scale_io) == ["scaleIO.secretRef.name: Required value"]
    assert a_volume(scaleIO={"secretRef": {"name": "s"}}) == [f"scaleIO.{field}: Required value" for field in scale_io]


@pytest.mark.parametrize("name", ["gcePersistentDisk", "awsElasticBlockStore", "rbd", "iscsi", "csi", "ephemeral"])
def test_a_source_of_which_a_snapshot_kept_only_that_it_is_there_passes(name: str) -> None:
    assert a_volume(**{name: {}}) == []


def test_a_host_path_stays_where_it_is_and_is_of_a_known_type() -> None:
    types = ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"]
    assert [name for name in types if a_volume(hostPath={"path": "/a", "type": name})] == []
    assert a_volume(hostPath={"path": "/a", "type": "Folder"}) == ["hostPath.type: Unsupported value"]
    assert a_volume(hostPath={"path": "/a/../b"}) == ["hostPath.path: Invalid value"]
    assert a_volume(hostPath={"type": "Folder"}) == ["hostPath.path: Required value"]


def test_an_nfs_path_is_absolute() -> None:
    assert a_volume(nfs={"server": "s", "path": "a"}) == ["nfs.path: Invalid value"]


def test_an_empty_dir_has_no_negative_limit() -> None:
    assert [a_volume(emptyDir={"sizeLimit": size}) for size in ("0", "1Gi")] == [[], []]
    assert a_volume(emptyDir={"sizeLimit": "-1"}) == ["emptyDir.sizeLimit: Forbidden"]


@pytest.mark.parametrize(("name", "reference"), [("configMap", {"name": "a"}), ("secret", {"secretName": "a"})])
def test_files_have_a_mode_of_nine_bits_and_stay_below_their_folder(name: str, reference: Document) -> None:
    def files(**fields: Any) -> list[str]:
        return a_volume(**{name: {**reference, **fields}})

    for mode, is_valid in ((0, True), (0o777, True), (-1, False), (0o1000, False)):
        assert files(defaultMode=mode) == ([] if is_valid else [f"{name}.defaultMode: Invalid value"])
        item = {"key": "k", "path": "p", "mode": mode}
        assert files(items=[item]) == ([] if is_valid else [f"{name}.items[0].mode: Invalid value"])
    assert files(items=[{}]) == [f"{name}.items[0].{field}: Required value" for field in ("key", "path")]
    for path in ("/a", "a/../b", "..", "..a"):
        assert files(items=[{"key": "k", "path": path}]) == [f"{name}.items[0].path: Invalid value"], path
    assert files(items=[{"key": "k", "path": "a/..b"}]) == []


def test_a_file_of_the_downward_api_comes_from_one_field() -> None:
    def file(**fields: Any) -> list[str]:
        return a_volume(downwardAPI={"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}, **fields}]})

    resource = {"containerName": "main", "resource": "limits.cpu"}
    assert file() == []
    assert file(path="") == ["downwardAPI.path: Required value"]
    assert file(path="/a") == file(path="..a") == ["downwardAPI.path: Invalid value"]
    assert file(resourceFieldRef=resource) == ["downwardAPI: Invalid value"]
    assert a_volume(downwardAPI={"items": [{"path": "p"}]}) == ["downwardAPI: Required value"]
    assert a_volume(downwardAPI={"items": [{"path": "p", "resourceFieldRef": resource}]}) == []
    assert file(mode=0o1000) == ["downwardAPI.mode: Invalid value"]
    assert a_volume(downwardAPI={"defaultMode": 0o1000}) == ["downwardAPI.defaultMode: Invalid value"]


def test_each_projected_source_is_one_thing_and_writes_paths_of_its_own() -> None:
    def projected(*sources: Document, **fields: Any) -> list[str]:
        return a_volume(projected={"sources": list(sources), **fields})

    def reading(name: str, path: str) -> Document:
        return {name: {"name": "a", "items": [{"key": "k", "path": path}]}}

    downward = {"downwardAPI": {"items": [{"path": "b", "fieldRef": {"fieldPath": "metadata.name"}}]}}
    assert projected(reading("secret", "a"), reading("configMap", "c"), downward) == []
    assert projected(defaultMode=0o1000) == ["projected.defaultMode: Invalid value"]
    for name in ("secret", "configMap"):
        assert projected({name: {}}) == [f"projected.sources[0].{name}.name: Required value"]
        assert projected(reading(name, "/a")) == [f"projected.sources[0].{name}.items[0].path: Invalid value"]
        assert projected(reading(name, "b"), downward) == ["projected: Invalid value"]
    assert projected(reading("secret", "a"), reading("secret", "a")) == ["projected: Invalid value"]
    assert projected({"downwardAPI": {"items": [{"path": "b"}]}}) == [
        "projected.sources[0].downwardAPI: Required value"
    ]
    assert projected({**reading("secret", "a"), **reading("configMap", "b")}) == ["projected.sources[0]: Forbidden"]


def test_a_projected_token_lives_ten_minutes_or_longer() -> None:
    assert [token(expirationSeconds=seconds) for seconds in (600, 3600)] == [[], []]
    place = "projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value"
    assert token(expirationSeconds=599) == [place]
    assert token(path="") == ["projected.path: Required value"]


def test_sources_of_two_names_take_one() -> None:
    assert a_volume(flocker={"datasetName": "a"}) == a_volume(flocker={"datasetUUID": "a"}) == []
    assert a_volume(flocker={}) == ["flocker: Required value"]
    assert a_volume(flocker={"datasetName": "a", "datasetUUID": "a"}) == ["flocker: Invalid value"]
    wide = {"targetWWNs": ["w"], "lun": 0}
    assert a_volume(fc=wide) == a_volume(fc={"wwids": ["w"]}) == []
    assert a_volume(fc={}) == ["fc.targetWWNs: Required value"]
    assert a_volume(fc={**wide, "wwids": ["w"]}) == ["fc.targetWWNs: Invalid value"]
    assert a_volume(fc={"targetWWNs": ["w"]}) == ["fc.lun: Required value"]
    for lun, is_valid in ((0, True), (255, True), (-1, False), (256, False)):
        assert a_volume(fc={**wide, "lun": lun}) == ([] if is_valid else ["fc.lun: Invalid value"])


def test_an_ephemeral_volume_has_the_template_of_a_claim() -> None:
    assert a_volume(ephemeral={"volumeClaimTemplate": {"spec": CLAIM}}) == []
    without = {**CLAIM, "accessModes": []}
    place = "ephemeral.volumeClaimTemplate.spec.accessModes: Required value"
    assert a_volume(ephemeral={"volumeClaimTemplate": {"spec": without}}) == [place]


def test_an_image_is_pulled_by_one_of_three_policies() -> None:
    for policy in ("Always", "IfNotPresent", "Never"):
        assert a_volume(image={"reference": "r", "pullPolicy": policy}) == []
    assert a_volume(image={"reference": "r", "pullPolicy": "Often"}) == ["image.pullPolicy: Unsupported value"]
