"""What `wukong snapshot` keeps of objects, and that nothing private is among it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from wukong.api.kinds import KINDS
from wukong.api.vm import Wukong
from wukong.cluster.reduction import reduce_document
from wukong.placement.vm import VmSettings, build_virtual_machine, find_change_effects
from wukong.ports import Document

SECRET = "s3cr3t-of-the-house"
BEHAVIOUR = {
    "sim.novasphere.dev/ready-seconds": "2",
    "testbed.wukong/stop-seconds": "1",
}  # the new prefix, the former one
TEMPLATE: Document = {
    "metadata": {
        "labels": {"app": "web"},
        "annotations": {"owner.example.com/phone": SECRET, **BEHAVIOUR},
    },
    "spec": {
        "restartPolicy": "Always",
        "serviceAccountName": SECRET,
        "imagePullSecrets": [{"name": SECRET}],
        "volumes": [{"name": "keys", "secret": {"secretName": SECRET}}],
        "containers": [
            {
                "name": "main",
                "image": "web:1",
                "args": [SECRET],
                "command": [SECRET],
                "env": [{"name": SECRET, "value": SECRET}],
                "envFrom": [{"secretRef": {"name": SECRET}}],
                "livenessProbe": {"exec": {"command": [SECRET]}},
                "resources": {"requests": {"cpu": "1"}},
            }
        ],
    },
}
META: Document = {
    "name": "web",
    "namespace": "shop",
    "uid": "u",
    "generation": 3,
    "resourceVersion": "17",
    "annotations": {
        "kubectl.kubernetes.io/last-applied-configuration": SECRET,
        "deployment.kubernetes.io/revision": "4",
    },
    "managedFields": [{"manager": SECRET}],
    "ownerReferences": [{"kind": "Deployment", "name": "web", "uid": "d", "controller": True}],
}


def document(kind: str, **more: Any) -> Document:
    version = KINDS.resource_named(kind).api_version
    return {"apiVersion": version, "kind": kind, "metadata": META, **more}


STATUS = {"observedGeneration": 3, "replicas": 2, "conditions": [{"type": "Progressing", "status": "True"}]}
WORKLOADS = ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"]


@pytest.mark.parametrize("kind", WORKLOADS)
def test_of_a_workload_its_wish_and_its_status_stay_and_nothing_private(kind: str) -> None:
    reduced = reduce_document(
        document(kind, spec={"template": TEMPLATE, "selector": {"matchLabels": {"app": "web"}}}, status=STATUS)
    )
    assert SECRET not in str(reduced)
    assert reduced["status"] == STATUS
    assert reduced["metadata"]["annotations"] == {"deployment.kubernetes.io/revision": "4"}
    assert (reduced["metadata"]["generation"], reduced["metadata"]["uid"]) == (3, "u")
    assert "resourceVersion" not in reduced["metadata"]
    template = reduced["spec"]["template"]
    assert template["metadata"] == {"labels": {"app": "web"}, "annotations": BEHAVIOUR}
    assert template["spec"]["containers"] == [
        {"name": "main", "image": "web:1", "resources": {"requests": {"cpu": "1"}}}
    ]


@pytest.mark.parametrize("kind", [*WORKLOADS, "ControllerRevision", "Pod"])
def test_of_metadata_it_stays_what_controllers_read(kind: str) -> None:
    time = "2026-03-01T00:00:00Z"
    more: Document = {"labels": {"app": "web"}, "creationTimestamp": time, "deletionTimestamp": time}
    more |= {"finalizers": ["a"], "deletionGracePeriodSeconds": 30}
    meta = {**META, **more}
    spec = TEMPLATE["spec"] if kind == "Pod" else {"template": TEMPLATE}
    reduced = reduce_document({**document(kind, spec=spec, data={"spec": spec}), "metadata": meta})
    kept = ("name", "namespace", "uid", "generation", "ownerReferences", *more)
    assert {name: reduced["metadata"].get(name) for name in kept} == {name: meta[name] for name in kept}
    assert reduced["metadata"].keys() - kept == {"annotations"}


def test_the_marks_of_tools_that_keep_an_object_stay() -> None:
    marks = {"argocd.argoproj.io/tracking-id": "shop:apps/web", "meta.helm.sh/release-name": "shop"}
    meta = {"name": "web", "annotations": {**marks, "owner.example.com/phone": SECRET}}
    reduced = reduce_document({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {}})
    assert reduced["metadata"]["annotations"] == marks


def test_a_revision_keeps_its_template_like_the_workload_it_is_of() -> None:
    whole = reduce_document(document("StatefulSet", spec={"template": TEMPLATE}))["spec"]["template"]
    patch = {"spec": {"template": {**TEMPLATE, "$patch": "replace"}}}
    reduced = reduce_document(document("ControllerRevision", data=patch, revision=7))
    assert (reduced["data"]["spec"]["template"], reduced["revision"]) == (whole, 7)
    assert SECRET not in str(reduced)


def test_of_a_pod_it_stays_whether_it_is_ready_and_what_it_waits_for() -> None:
    waiting = {"name": "main", "ready": False, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": SECRET}}}
    status = {
        "phase": "Running",
        "startTime": "2026-03-01T00:00:00Z",
        "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-03-01T00:00:00Z"}],
        "containerStatuses": [{**waiting, "image": SECRET, "containerID": SECRET}],
    }
    reduced = reduce_document(document("Pod", spec={**TEMPLATE["spec"], "nodeName": "a"}, status=status))
    assert SECRET not in str(reduced)
    (container,) = reduced["status"]["containerStatuses"]
    assert container == {"name": "main", "ready": False, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    assert reduced["status"]["conditions"] == status["conditions"]
    assert reduced["spec"]["restartPolicy"] == "Always"


def test_of_a_node_the_times_of_its_taints_stay_and_no_messages() -> None:
    taint = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": "2026-03-01T00:00:00Z"}
    ready = {"type": "Ready", "status": "Unknown", "message": SECRET}
    reduced = reduce_document(document("Node", spec={"taints": [taint]}, status={"conditions": [ready]}))
    assert reduced["spec"]["taints"] == [taint]
    assert reduced["status"]["conditions"] == [{"type": "Ready", "status": "Unknown"}]


VOLUMES: list[Document] = [
    {
        "name": "a",
        "csi": {"driver": SECRET, "nodePublishSecretRef": {"name": SECRET}, "volumeAttributes": {"k": SECRET}},
    },
    {"name": "b", "ephemeral": {"volumeClaimTemplate": {"metadata": {"annotations": {"k": SECRET}}, "spec": {}}}},
    {"name": "c", "rbd": {"monitors": ["10.0.0.1"], "image": "disk", "secretRef": {"name": SECRET}, "user": SECRET}},
    {"name": "d", "iscsi": {"targetPortal": SECRET, "iqn": "iqn.2026-01.com.example:a", "secretRef": {"name": SECRET}}},
    {"name": "e", "awsElasticBlockStore": {"volumeID": "vol-1", "fsType": SECRET}},
    {"name": "f", "gcePersistentDisk": {"pdName": "disk-1", "fsType": SECRET}},
    {"name": "g", "azureDisk": {"diskName": SECRET}},
    {"name": "h", "persistentVolumeClaim": {"claimName": "data"}},
    {"name": "i", "image": {"reference": "web:1"}},
    {"name": "j", "projected": {"sources": [{"secret": {"name": SECRET}}]}},
]


@pytest.mark.parametrize("kind", [*WORKLOADS, "Pod", "ControllerRevision"])
def test_of_volumes_their_kind_stays_with_claims_images_and_disks(kind: str) -> None:
    """Which disk it is decides who else may have it; nothing else of a disk is kept."""
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "volumes": VOLUMES}}
    if kind == "Pod":
        reduced = reduce_document(document(kind, spec=template["spec"]))["spec"]
    elif kind == "ControllerRevision":
        reduced = reduce_document(document(kind, data={"spec": {"template": template}}))["data"]["spec"]["template"][
            "spec"
        ]
    else:
        reduced = reduce_document(document(kind, spec={"template": template}))["spec"]["template"]["spec"]
    assert SECRET not in str(reduced)
    kinds = {volume["name"]: sorted(volume.keys() - {"name"}) for volume in reduced["volumes"]}
    assert {name: kinds.get(name) for name in "abcdefhi"} == {
        "a": ["csi"],
        "b": ["ephemeral"],
        "c": ["rbd"],
        "d": ["iscsi"],
        "e": ["awsElasticBlockStore"],
        "f": ["gcePersistentDisk"],
        "h": ["persistentVolumeClaim"],
        "i": ["image"],
    }
    assert {"name": "h", "persistentVolumeClaim": {"claimName": "data"}} in reduced["volumes"]
    assert {"name": "i", "image": {"reference": "web:1"}} in reduced["volumes"]


# Virtual machines -------------------------------------------------------------------------------------------------

PROBE: Document = {
    "exec": {"command": ["login", SECRET]},
    "httpGet": {"port": 80, "httpHeaders": [{"name": "Authorization", "value": SECRET}]},
    "periodSeconds": 5,
}
WUKONG_SPEC: Document = {
    "cpu": 2,
    "labels": {"app": "web"},
    "disks": [
        {"name": "root", "containerDisk": {"image": "fedora"}},
        {"name": "init", "cloudInit": {"userData": f"password: {SECRET}", "networkData": SECRET}},
    ],
    "readinessProbe": PROBE,
    "vmTemplate": {
        "metadata": {"annotations": {"owner.example.com/phone": SECRET}},
        "spec": {
            "template": {
                "metadata": {"annotations": {"owner.example.com/phone": SECRET}},
                "spec": {
                    "accessCredentials": [{"sshPublicKey": {"source": {"secret": {"secretName": SECRET}}}}],
                    "volumes": [
                        {"name": "keys", "secret": {"secretName": SECRET}},
                        {"name": "more", "cloudInitConfigDrive": {"secretRef": {"name": SECRET}}},
                        {"name": "text", "cloudInitConfigDrive": {"userDataBase64": SECRET}},
                    ],
                    "domain": {"firmware": {"kernelBoot": {"kernelArgs": SECRET}}},
                },
            }
        },
    },
}


def a_machine() -> Document:
    """What is built of that Wukong."""
    wukong = msgspec.convert({"metadata": META, "spec": WUKONG_SPEC}, Wukong)
    return build_virtual_machine(wukong, "web", VmSettings())


@pytest.mark.parametrize(
    "original",
    [
        document("Wukong", spec=WUKONG_SPEC),
        document("VirtualMachine", spec=a_machine()["spec"]),
        document("VirtualMachineInstance", spec=a_machine()["spec"]["template"]["spec"]),
    ],
    ids=["Wukong", "VirtualMachine", "VirtualMachineInstance"],
)
def test_what_guests_are_told_is_hidden(original: Document) -> None:
    reduced = reduce_document(original)
    assert SECRET not in str(reduced)
    assert "accessCredentials" not in str(reduced), "whose keys are put where is nobody's business"
    assert "fedora" in str(reduced)
    assert "periodSeconds" in str(reduced)


def test_what_is_built_of_a_hidden_wukong_is_the_hidden_machine() -> None:
    """So a snapshot that is played finds nothing to mend."""
    hidden = msgspec.convert(reduce_document(document("Wukong", spec=WUKONG_SPEC)), Wukong)
    machine = reduce_document({**a_machine(), "metadata": META})
    assert find_change_effects(machine["spec"], build_virtual_machine(hidden, "web", VmSettings())["spec"]) == []
