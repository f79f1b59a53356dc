"""Volume claims that a server takes or refuses, and changes of them."""

from __future__ import annotations

from typing import Any

from manifest_comparison.objects import Subject
from manifest_comparison.pod_fields import CLAIM
from wukong.ports import PatchBody

Json = dict[str, Any]
PVC = "PersistentVolumeClaim"
_SNAPSHOT = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "old"}
_POPULATOR = {"apiGroup": "example.com", "kind": "Backup", "name": "old"}

SPECS: list[tuple[str, Json]] = [
    ("plain", {}),
    ("class", {"storageClassName": "fast"}),
    ("no class", {"storageClassName": ""}),
    ("class name", {"storageClassName": "Fast_1"}),
    ("attributes class", {"volumeAttributesClassName": "gold"}),
    ("attributes class name", {"volumeAttributesClassName": "Gold!"}),
    ("no modes", {"accessModes": []}),
    ("unknown mode", {"accessModes": ["ReadSometimes"]}),
    ("modes", {"accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}),
    ("one pod", {"accessModes": ["ReadWriteOncePod"]}),
    ("one pod and more", {"accessModes": ["ReadWriteOncePod", "ReadWriteOnce"]}),
    ("one pod and unknown", {"accessModes": ["ReadWriteOncePod", "ReadSometimes"]}),
    ("no size", {"resources": {}}),
    ("size 0", {"resources": {"requests": {"storage": "0"}}}),
    ("size below 0", {"resources": {"requests": {"storage": "-1Gi"}}}),
    ("size in words", {"resources": {"requests": {"storage": "much"}}}),
    ("limit", {"resources": {"requests": {"storage": "1Gi"}, "limits": {"storage": "2Gi"}}}),
    ("block", {"volumeMode": "Block"}),
    ("unknown volume mode", {"volumeMode": "Tape"}),
    ("selector", {"selector": {"matchLabels": {"a": "b"}}}),
    ("selector key", {"selector": {"matchLabels": {"a b": "c"}}}),
    ("selector operator", {"selector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}),
    ("selector values", {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}),
    ("clone", {"dataSource": {"kind": PVC, "name": "old"}}),
    ("snapshot", {"dataSource": _SNAPSHOT}),
    ("populator as of old", {"dataSource": _POPULATOR}),
    ("populator", {"dataSourceRef": _POPULATOR}),
    ("source without name", {"dataSourceRef": {"kind": PVC, "name": ""}}),
    ("source without kind", {"dataSourceRef": {"name": "old", "kind": ""}}),
    ("source of the core group", {"dataSourceRef": {"kind": "Pod", "name": "old"}}),
    ("group of the source", {"dataSourceRef": {**_POPULATOR, "apiGroup": "Example!"}}),
    ("two sources", {"dataSource": _SNAPSHOT, "dataSourceRef": _POPULATOR}),
    ("twice the same source", {"dataSource": _SNAPSHOT, "dataSourceRef": _SNAPSHOT}),
    ("volume", {"volumeName": "pv-1"}),
]
CHANGES: list[tuple[str, PatchBody]] = [
    ("nothing", PatchBody("merge", {"spec": {"resources": {"requests": {"storage": "1Gi"}}}})),
    ("labels", PatchBody("merge", {"metadata": {"labels": {"a": "b"}}})),
    ("growth", PatchBody("merge", {"spec": {"resources": {"requests": {"storage": "900Gi"}}}})),
    ("shrinking", PatchBody("merge", {"spec": {"resources": {"requests": {"storage": "1"}}}})),
    ("modes", PatchBody("merge", {"spec": {"accessModes": ["ReadWriteMany"]}})),
    ("volume mode", PatchBody("merge", {"spec": {"volumeMode": "Block"}})),
    ("class", PatchBody("merge", {"spec": {"storageClassName": "other"}})),
    ("attributes class", PatchBody("merge", {"spec": {"volumeAttributesClassName": "silver"}})),
    (
        "class by annotation",
        PatchBody("merge", {"metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "x"}}}),
    ),
    ("source", PatchBody("merge", {"spec": {"dataSourceRef": {"kind": PVC, "name": "another"}}})),
    ("volume", PatchBody("merge", {"spec": {"volumeName": "pv-2"}})),
    ("volume again", PatchBody("merge", {"spec": {"volumeName": "pv-3"}})),
]


def list_claims() -> list[Subject]:
    subjects = []
    for number, (title, fields) in enumerate(SPECS):
        head = {"apiVersion": "v1", "kind": PVC, "metadata": {"name": f"claim-{number}"}}
        manifest = {**head, "spec": {**CLAIM, **fields}}
        subjects.append(Subject(f"claim: {title}", PVC, manifest, manifest))
    return subjects
