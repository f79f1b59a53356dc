"""What the API server fills in where a document says nothing, kind by kind; what it says stays.

The values are those of Kubernetes' own defaults.go (pkg/apis/core/v1, apps/v1, scheduling/v1). tests/conformance
compares them with a real API server; here they are held by themselves.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from wukong.api.field_types import type_of
from wukong.api.kinds import KINDS
from wukong.embedded.store.stored_form import store_form_of
from wukong.ports import Document

POD_SPEC: Document = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "securityContext": {},
}
CONTAINER: Document = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "IfNotPresent",
}
PROBE: Document = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


def filled(kind: str, **fields: Any) -> Document:
    type_ = type_of(KINDS.resource_named(kind))
    assert type_ is not None
    document = store_form_of(type_, copy.deepcopy(fields))
    assert store_form_of(type_, copy.deepcopy(document)) == document, "what is filled in stays as it is"
    return document


def filled_spec(kind: str, **spec: Any) -> Document:
    """The spec with its defaults, without the template and what else is there in every object of the kind."""
    document: Document = filled(kind, spec=spec)["spec"]
    return {name: value for name, value in document.items() if name not in {"template", "serviceName"} - spec.keys()}


def filled_container(**fields: Any) -> Document:
    container: Document = filled_spec("Pod", containers=[{"name": "main", **fields}])["containers"][0]
    return {name: value for name, value in container.items() if name != "name"}


# ---- workloads


def test_a_deployment_rolls_a_quarter_at_a_time_and_has_ten_minutes() -> None:
    assert filled_spec("Deployment") == {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
    }


def test_a_daemon_set_replaces_one_pod_at_a_time() -> None:
    assert filled_spec("DaemonSet") == {
        "revisionHistoryLimit": 10,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
    }


def test_a_stateful_set_keeps_its_claims_and_its_order() -> None:
    assert filled_spec("StatefulSet") == {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "podManagementPolicy": "OrderedReady",
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
    }


@pytest.mark.parametrize(
    ("kind", "field", "strategy", "expected"),
    [
        ("Deployment", "strategy", {"type": "Recreate"}, {"type": "Recreate"}),
        ("DaemonSet", "updateStrategy", {"type": "OnDelete"}, {"type": "OnDelete"}),
        ("StatefulSet", "updateStrategy", {"type": "OnDelete"}, {"type": "OnDelete"}),
        ("StatefulSet", "updateStrategy", {"type": "RollingUpdate"}, {"type": "RollingUpdate"}),
        (
            "StatefulSet",
            "updateStrategy",
            {"type": "RollingUpdate", "rollingUpdate": {}},
            {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        ),
        (
            "Deployment",
            "strategy",
            {"rollingUpdate": {"maxSurge": 0}},
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": 0}},
        ),
    ],
)
def test_only_a_rolling_update_has_its_parameters_filled_in(
    kind: str, field: str, strategy: Document, expected: Document
) -> None:
    assert filled_spec(kind, **{field: strategy})[field] == expected


def test_what_a_workload_says_stays() -> None:
    said: dict[str, Document] = {
        "Deployment": {"replicas": 0, "revisionHistoryLimit": 0, "progressDeadlineSeconds": 5},
        "DaemonSet": {"revisionHistoryLimit": 3},
        "StatefulSet": {
            "replicas": 7,
            "revisionHistoryLimit": 2,
            "podManagementPolicy": "Parallel",
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Delete"},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 4}},
        },
        "ReplicaSet": {"replicas": 0},
        "ReplicationController": {"replicas": 4},
    }
    for kind, spec in said.items():
        assert spec.items() <= filled_spec(kind, **spec).items()


@pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController"])
def test_a_set_of_pods_has_one(kind: str) -> None:
    assert filled_spec(kind) == {"replicas": 1}


def test_a_replication_controller_selects_the_labels_of_its_pods() -> None:
    template = {"metadata": {"labels": {"app": "web"}}}
    document = filled("ReplicationController", metadata={}, spec={"template": template})
    assert (document["spec"]["selector"], document["metadata"]["labels"]) == ({"app": "web"}, {"app": "web"})
    spec = {"template": template, "selector": {"a": "b"}}
    document = filled("ReplicationController", metadata={"labels": {"c": "d"}}, spec=spec)
    assert (document["spec"]["selector"], document["metadata"]["labels"]) == ({"a": "b"}, {"c": "d"})


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController"])
def test_the_template_of_a_workload_gets_the_defaults_of_a_pod(kind: str) -> None:
    containers = [{"name": "main", "image": "web:1"}]
    document = filled(kind, metadata={}, spec={"template": {"spec": {"containers": containers}}})
    template = document["spec"]["template"]
    assert template == {"metadata": {}, "spec": {**POD_SPEC, "containers": [{**containers[0], **CONTAINER}]}}


def test_a_job_runs_once_and_is_tried_six_times_again() -> None:
    assert filled_spec("Job") == {
        "completions": 1,
        "parallelism": 1,
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "suspend": False,
        "manualSelector": False,
        "podReplacementPolicy": "TerminatingOrFailed",
    }


# ---- pods


def test_a_pod_gets_what_its_template_would_and_the_links_of_services() -> None:
    assert filled_spec("Pod") == {**POD_SPEC, "enableServiceLinks": True}
    said = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "dnsPolicy": "Default",
        "schedulerName": "ours",
        "securityContext": {"runAsUser": 1},
        "enableServiceLinks": False,
    }
    assert filled_spec("Pod", **said) == said


@pytest.mark.parametrize("field", ["serviceAccountName", "serviceAccount"])
def test_both_names_of_an_account_are_filled_in(field: str) -> None:
    spec = filled_spec("Pod", **{field: "builder"})
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("builder", "builder")
    assert "serviceAccountName" not in filled_spec("Pod")


def test_the_name_of_an_account_wins_over_its_old_name() -> None:
    spec = filled_spec("Pod", serviceAccountName="new", serviceAccount="old")
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("new", "new")


@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_every_container_is_filled_in(field: str) -> None:
    spec = filled_spec("Pod", **{field: [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]})
    expected = [{"name": "a", "image": "a:1", **CONTAINER}, {"name": "b", "image": "b:1", **CONTAINER}]
    assert spec[field] == expected


def test_what_a_container_says_stays() -> None:
    said = {
        "resources": {"limits": {"cpu": "1"}},
        "terminationMessagePath": "/tmp/log",
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "imagePullPolicy": "Never",
    }
    assert filled_container(**said) == said


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("web", "Always"),
        ("web:latest", "Always"),
        ("web:1", "IfNotPresent"),
        ("host:5000/web", "Always"),
        ("host:5000/web:1", "IfNotPresent"),
        ("host:5000/web:latest", "Always"),
        ("web@sha256:abc", "IfNotPresent"),
        ("web:latest@sha256:abc", "IfNotPresent"),
    ],
)
def test_an_image_without_a_tag_is_pulled_always(image: str, expected: str) -> None:
    assert filled_container(image=image)["imagePullPolicy"] == expected


def test_ports_are_of_tcp() -> None:
    ports = filled_container(ports=[{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}])["ports"]
    assert [port["protocol"] for port in ports] == ["TCP", "UDP"]


@pytest.mark.parametrize("name", ["livenessProbe", "readinessProbe", "startupProbe"])
def test_probes_are_filled_in(name: str) -> None:
    assert filled_container(**{name: {}})[name] == PROBE
    said = {"timeoutSeconds": 2, "periodSeconds": 3, "successThreshold": 4, "failureThreshold": 5}
    assert filled_container(**{name: said})[name] == said
    got = filled_container(**{name: {"httpGet": {"port": 80}}})[name]
    assert got["httpGet"] == {"port": 80, "path": "/", "scheme": "HTTP"}
    http = {"port": 80, "path": "/live", "scheme": "HTTPS"}
    assert filled_container(**{name: {"httpGet": http}})[name]["httpGet"] == http


def test_fields_that_a_variable_is_read_from_are_of_v1() -> None:
    env = [
        {"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "b", "valueFrom": {"fieldRef": {"apiVersion": "v2", "fieldPath": "metadata.name"}}},
        {"name": "c", "valueFrom": {"secretKeyRef": {"key": "k"}}},
        {"name": "d", "value": "e"},
    ]
    filled_env = filled_container(env=env)["env"]
    assert [entry.get("valueFrom", {}).get("fieldRef", {}).get("apiVersion") for entry in filled_env] == [
        "v1",
        "v2",
        None,
        None,
    ]
    assert filled_env[2:] == env[2:]


def test_a_volume_without_a_source_is_an_empty_directory() -> None:
    volumes = [{"name": "a"}, {"name": "b", "hostPath": {"path": "/", "type": ""}}]
    assert filled_spec("Pod", volumes=volumes)["volumes"] == [{"name": "a", "emptyDir": {}}, volumes[1]]


@pytest.mark.parametrize("source", ["configMap", "secret", "projected", "downwardAPI"])
def test_files_of_an_object_are_readable_by_all(source: str) -> None:
    volumes = [{"name": "a", source: {}}, {"name": "b", source: {"defaultMode": 0o400}}]
    modes = [volume[source]["defaultMode"] for volume in filled_spec("Pod", volumes=volumes)["volumes"]]
    assert modes == [0o644, 0o400]


# ---- other kinds


def test_a_service_is_inside_the_cluster_and_keeps_no_affinity() -> None:
    assert filled_spec("Service", ports=[{"port": 80}, {"port": 53, "protocol": "UDP", "targetPort": "dns"}]) == {
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "internalTrafficPolicy": "Cluster",
        "ports": [
            {"port": 80, "protocol": "TCP", "targetPort": 80},
            {"port": 53, "protocol": "UDP", "targetPort": "dns"},
        ],
    }
    said = {
        "type": "NodePort",
        "sessionAffinity": "ClientIP",
        "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}},
        "internalTrafficPolicy": "Local",
        "externalTrafficPolicy": "Local",
    }
    assert filled_spec("Service", **said) == said
    assert filled("Service")["spec"]["type"] == "ClusterIP"


@pytest.mark.parametrize(
    ("kind", "document", "expected"),
    [
        ("PriorityClass", {}, {"preemptionPolicy": "PreemptLowerPriority", "value": 0}),
        ("PriorityClass", {"preemptionPolicy": "Never", "value": 7}, {"preemptionPolicy": "Never", "value": 7}),
        ("Secret", {}, {"type": "Opaque"}),
        ("Secret", {"type": "kubernetes.io/tls"}, {"type": "kubernetes.io/tls"}),
        ("PersistentVolumeClaim", {}, {"spec": {"volumeMode": "Filesystem", "resources": {}}}),
        (
            "PersistentVolumeClaim",
            {"spec": {"volumeMode": "Block", "storageClassName": ""}},
            {"spec": {"volumeMode": "Block", "storageClassName": "", "resources": {}}},
        ),
        (
            "PersistentVolume",
            {},
            {"spec": {"volumeMode": "Filesystem", "persistentVolumeReclaimPolicy": "Retain"}},
        ),
        (
            "PersistentVolume",
            {"spec": {"volumeMode": "Block", "persistentVolumeReclaimPolicy": "Delete"}},
            {"spec": {"volumeMode": "Block", "persistentVolumeReclaimPolicy": "Delete"}},
        ),
        (
            "Namespace",
            {"metadata": {"name": "shop", "labels": {"a": "b"}}},
            {"metadata": {"name": "shop", "labels": {"a": "b", "kubernetes.io/metadata.name": "shop"}}},
        ),
    ],
)
def test_other_kinds_are_filled_in(kind: str, document: Document, expected: Document) -> None:
    assert expected.items() <= filled(kind, **document).items()


@pytest.mark.parametrize("allocatable", [{}, {"allocatable": {"cpu": "3"}}])
def test_a_node_offers_all_it_has_unless_it_says_less(allocatable: Document) -> None:
    status = filled("Node", status={"capacity": {"cpu": "4"}, **allocatable})["status"]
    assert status["allocatable"] == (allocatable.get("allocatable") or {"cpu": "4"})
    assert "allocatable" not in filled("Node")["status"]
