"""Volumes of a pod: one source each, and what a source needs. Called by spec.py; pure.

Most sources only need some fields: REQUIRED. Returns also which volumes are valid, for mounts of others find nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from wukong.api.quantity import parse_quantity
from wukong.embedded.store.validation.claims import find_claim_problems
from wukong.embedded.store.validation.pods.problems import (
    duplicate,
    find_outside,
    find_unsupported,
    forbidden,
    invalid,
    required,
)
from wukong.embedded.store.validation.pods.syntax import (
    find_backstep_problems,
    find_local_path_problems,
    find_name_problems,
)
from wukong.ports import Document

# In the order in which a server looks at them: of two sources it refuses the later.
SOURCES = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi",
    "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc",
    "flexVolume", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk",
    "storageos", "projected", "scaleIO", "csi", "ephemeral", "image",
)  # fmt: skip
REQUIRED: dict[str, tuple[str, ...]] = {
    "hostPath": ("path",),
    "gitRepo": ("repository",),
    "awsElasticBlockStore": ("volumeID",),
    "secret": ("secretName",),
    "nfs": ("server", "path"),
    "iscsi": ("iqn",),  # and targetPortal, which snapshots leave out
    "glusterfs": ("endpoints", "path"),
    "persistentVolumeClaim": ("claimName",),
    "rbd": ("monitors", "image"),
    "cinder": ("volumeID",),
    "cephfs": ("monitors",),
    "quobyte": ("registry", "volume"),
    "flexVolume": ("driver",),
    "configMap": ("name",),
    "azureFile": ("secretName", "shareName"),
    "vsphereVolume": ("volumePath",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "azureDisk": ("diskURI",),  # and diskName, which snapshots leave out
    "csi": ("driver",),
    "storageos": ("volumeName",),
    "scaleIO": ("gateway", "system", "volumeName"),
    "image": ("reference",),
    "ephemeral": ("volumeClaimTemplate",),
}
# Sources of which a reduced snapshot keeps no more than that they are there (cluster/reduction.py), and what tells a
# whole one. Such a source passes, which a real server would refuse.
_EMPTIED: dict[str, tuple[str, ...]] = {
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "rbd": ("monitors", "image"),
    "iscsi": ("iqn", "targetPortal"),
    "csi": ("driver",),
    "ephemeral": ("volumeClaimTemplate",),
}
_HOST_PATH_TYPES = (
    *("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"),
)
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_LEAST_TOKEN_SECONDS = 600


def find_volume_problems(volumes: list[Document], path: str) -> tuple[list[str], dict[str, Document]]:
    """Return the problems, and the volumes that have none by their names."""
    problems: list[str] = []
    valid: dict[str, Document] = {}
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        here, name = f"{path}[{index}]", volume.get("name", "")
        own = list(_find_source_problems(volume, here))
        own += find_name_problems(name, f"{here}.name") if name else [required(f"{here}.name")]
        if name in seen:
            own.append(duplicate(f"{here}.name", name))
        if not own:
            seen.add(name)
            valid[name] = volume
        problems += own
    return problems, valid


def _find_source_problems(volume: Document, path: str) -> Iterator[str]:
    sources = [name for name in SOURCES if name in volume]
    for name in sources[1:]:
        yield forbidden(f"{path}.{'cephFS' if name == 'cephfs' else name}", "may not specify more than 1 volume type")
    for name in sources[:1]:
        source, here = volume[name], f"{path}.{name}"
        if name in _EMPTIED and not any(source.get(field) for field in _EMPTIED[name]):
            return  # the snapshot kept only that there is one: a real server has seen the rest
        yield from (required(f"{here}.{field}") for field in REQUIRED.get(name, ()) if not source.get(field))
        if name in _BY_SOURCE:
            yield from _BY_SOURCE[name](source, here)


def _find_empty_dir_problems(source: Document, path: str) -> Iterator[str]:
    if "sizeLimit" in source and parse_quantity(source["sizeLimit"]) < 0:
        yield forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def _find_host_path_problems(source: Document, path: str) -> Iterator[str]:
    if source.get("path"):
        yield from find_backstep_problems(source["path"], f"{path}.path")
        yield from find_unsupported(source.get("type"), _HOST_PATH_TYPES, f"{path}.type")


def _find_nfs_problems(source: Document, path: str) -> Iterator[str]:
    if source.get("path") and not source["path"].startswith("/"):
        yield invalid(f"{path}.path", source["path"], "must be an absolute path")


def _find_files_problems(source: Document, path: str) -> Iterator[str]:
    """Check the files of a ConfigMap or Secret: their mode, keys and paths."""
    yield from _find_mode_problems(source.get("defaultMode"), f"{path}.defaultMode")
    yield from _find_item_problems(source, path)


def _find_item_problems(source: Document, path: str) -> Iterator[str]:
    for index, item in enumerate(source.get("items") or ()):
        here = f"{path}.items[{index}]"
        yield from (required(f"{here}.{field}") for field in ("key", "path") if not item.get(field))
        yield from find_local_path_problems(item.get("path", ""), f"{here}.path", is_reserved=True)
        yield from _find_mode_problems(item.get("mode"), f"{here}.mode")


def _find_mode_problems(mode: int | None, path: str) -> Iterator[str]:
    if mode is not None and not 0 <= mode <= 0o777:
        yield invalid(path, mode, "must be a number between 0 and 0777 (octal), both inclusive")


def _find_downward_problems(source: Document, path: str) -> Iterator[str]:
    yield from _find_mode_problems(source.get("defaultMode"), f"{path}.defaultMode")
    for file in source.get("items") or ():
        yield from _find_downward_file_problems(file, path)


def _find_downward_file_problems(file: Document, path: str) -> Iterator[str]:
    if not file.get("path"):
        yield required(f"{path}.path")
    yield from find_local_path_problems(file.get("path", ""), f"{path}.path", is_reserved=True)
    if "fieldRef" not in file and "resourceFieldRef" not in file:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    elif "fieldRef" in file and "resourceFieldRef" in file:
        yield invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
    yield from _find_mode_problems(file.get("mode"), f"{path}.mode")


def _find_projected_problems(source: Document, path: str) -> Iterator[str]:
    yield from _find_mode_problems(source.get("defaultMode"), f"{path}.defaultMode")
    paths: set[str] = set()
    for index, projection in enumerate(source.get("sources") or ()):
        here = f"{path}.sources[{index}]"
        for name in ("secret", "configMap"):
            if name in projection:
                if not projection[name].get("name"):
                    yield required(f"{here}.{name}.name")
                yield from _find_item_problems(projection[name], f"{here}.{name}")
        for file in (projection.get("downwardAPI") or {}).get("items") or ():
            yield from _find_downward_file_problems(file, f"{here}.downwardAPI")
        yield from _find_token_problems(projection.get("serviceAccountToken"), here, path)
        for text in _paths_of(projection):
            if text in paths:
                yield invalid(path, text, "conflicting duplicate paths")
            paths.add(text)
        if len(projection) > 1:
            yield forbidden(here, "may not specify more than 1 volume type per source")


def _find_token_problems(token: Document | None, path: str, above: str) -> Iterator[str]:
    if token is None:
        return
    if token["expirationSeconds"] < _LEAST_TOKEN_SECONDS:
        place = f"{path}.serviceAccountToken.expirationSeconds"
        yield invalid(place, token["expirationSeconds"], "may not specify a duration less than 10 minutes")
    if not token.get("path"):
        yield required(f"{above}.path")


def _paths_of(projection: Document) -> Iterator[str]:
    for name in ("secret", "configMap", "downwardAPI"):
        for item in (projection.get(name) or {}).get("items") or ():
            if item.get("path"):
                yield item["path"]


def _find_flocker_problems(source: Document, path: str) -> Iterator[str]:
    names = [name for name in ("datasetName", "datasetUUID") if source.get(name)]
    if not names:
        yield required(path, "one of datasetName and datasetUUID is required")
    elif len(names) > 1:
        yield invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously")


def _find_fibre_channel_problems(source: Document, path: str) -> Iterator[str]:
    names = [name for name in ("targetWWNs", "wwids") if source.get(name)]
    if not names:
        yield required(f"{path}.targetWWNs", "must specify either targetWWNs or wwids, but not both")
    elif len(names) > 1:
        yield invalid(f"{path}.targetWWNs", source["targetWWNs"], "targetWWNs and wwids can not be specified")
    if source.get("targetWWNs"):
        if "lun" not in source:
            yield required(f"{path}.lun", "lun is required if targetWWNs is specified")
        else:
            yield from find_outside(source["lun"], 0, 255, f"{path}.lun")


def _find_disk_problems(source: Document, path: str) -> Iterator[str]:
    if not source.get("pdName"):
        yield required(f"{path.rpartition('.')[0]}.persistentDisk.pdName")


def _find_scale_io_problems(source: Document, path: str) -> Iterator[str]:
    if not (source.get("secretRef") or {}).get("name"):
        yield required(f"{path}.secretRef.name")


def _find_ephemeral_problems(source: Document, path: str) -> Iterator[str]:
    if "volumeClaimTemplate" in source:
        yield from find_claim_problems(source["volumeClaimTemplate"]["spec"], f"{path}.volumeClaimTemplate.spec")


def _find_image_problems(source: Document, path: str) -> Iterator[str]:
    yield from find_unsupported(source.get("pullPolicy"), _PULL_POLICIES, f"{path}.pullPolicy")


_BY_SOURCE: dict[str, Callable[[Document, str], Iterator[str]]] = {
    "emptyDir": _find_empty_dir_problems,
    "hostPath": _find_host_path_problems,
    "gcePersistentDisk": _find_disk_problems,
    "secret": _find_files_problems,
    "configMap": _find_files_problems,
    "nfs": _find_nfs_problems,
    "downwardAPI": _find_downward_problems,
    "projected": _find_projected_problems,
    "flocker": _find_flocker_problems,
    "fc": _find_fibre_channel_problems,
    "scaleIO": _find_scale_io_problems,
    "ephemeral": _find_ephemeral_problems,
    "image": _find_image_problems,
}
