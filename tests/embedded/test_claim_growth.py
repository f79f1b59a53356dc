"""How the size of a bound claim may change; that all else is judged as by a real server, tests/live compares."""

from __future__ import annotations

import pytest

from small_cluster import ManualClock
from wukong.api.kinds import NAMESPACES, PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES
from wukong.api.resources import Key
from wukong.embedded.store import Server
from wukong.errors import ClusterError
from wukong.ports import PatchBody

KEY = Key("shop", "data")


def a_bound_claim(storage_class: str) -> Server:
    """Of 2Gi, of which there are 2Gi; classes `elastic` and `stiff`."""
    server = Server(ManualClock())
    server.create(NAMESPACES, {"metadata": {"name": "shop"}})
    for name, allows in (("elastic", True), ("stiff", False)):
        body = {"metadata": {"name": name}, "provisioner": "disks.example.com", "allowVolumeExpansion": allows}
        server.create(STORAGE_CLASSES, body)
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
    claim = {"metadata": {"name": "data"}, "spec": {**spec, "storageClassName": storage_class, "volumeName": "pv-1"}}
    server.create(PERSISTENT_VOLUME_CLAIMS, claim, "shop")
    status = {"status": {"phase": "Bound", "capacity": {"storage": "2Gi"}}}
    server.patch(PERSISTENT_VOLUME_CLAIMS, KEY, PatchBody("merge", status), "status")
    return server


@pytest.mark.parametrize(
    ("storage_class", "size", "refusal"),
    [
        ("elastic", "3Gi", ""),
        ("stiff", "2Gi", ""),
        ("stiff", "3Gi", "the storageclass that provisions the pvc must support resize"),
        ("nowhere", "3Gi", "the storageclass that provisions the pvc must support resize"),
        ("elastic", "1Gi", "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"),
    ],
)
def test_a_bound_claim_grows_where_its_class_allows_and_never_shrinks(
    storage_class: str, size: str, refusal: str
) -> None:
    server = a_bound_claim(storage_class)
    patch = PatchBody("merge", {"spec": {"resources": {"requests": {"storage": size}}}})
    if not refusal:
        server.patch(PERSISTENT_VOLUME_CLAIMS, KEY, patch)
        assert server.get(PERSISTENT_VOLUME_CLAIMS, KEY)["spec"]["resources"]["requests"]["storage"] == size
        return
    with pytest.raises(ClusterError) as caught:
        server.patch(PERSISTENT_VOLUME_CLAIMS, KEY, patch)
    assert refusal in str(caught.value)
