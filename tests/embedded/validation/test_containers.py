"""Containers that the API server refuses, by the place of what is wrong, and those just within bounds."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.validation.problem_tables import CONTAINER, of_container, of_pod
from wukong.ports import Document

EMPTY: Document = {"name": "v", "emptyDir": {}}
CLAIM: Document = {"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}


def a_mount(**fields: Any) -> list[str]:
    return of_container([EMPTY], volumeMounts=[{"name": "v", "mountPath": "/v", **fields}])


def a_port(**fields: Any) -> list[str]:
    return of_container(ports=[{"containerPort": 80, "protocol": "TCP", **fields}])


def a_variable(**source: Any) -> list[str]:
    return of_container(env=[{"name": "A", "valueFrom": source}])


def a_device(*devices: Document, **fields: Any) -> list[str]:
    return of_container([EMPTY, CLAIM], volumeDevices=list(devices), **fields)


@pytest.mark.parametrize(
    "fields",
    [
        *({"imagePullPolicy": policy} for policy in ("Always", "IfNotPresent", "Never")),
        *({"terminationMessagePolicy": policy} for policy in ("File", "FallbackToLogsOnError")),
        *({"restartPolicy": policy} for policy in ("Always", "Never", "OnFailure")),
        *({"ports": [{"containerPort": number, "hostPort": number}]} for number in (1, 65535)),
        *({"ports": [{"containerPort": 80, "protocol": protocol}]} for protocol in ("SCTP", "TCP", "UDP")),
        {"ports": [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "b"}]},
        {"ports": [{"containerPort": 1, "name": "a" * 15}]},
        {"ports": [{"containerPort": 1, "hostPort": 7, "protocol": protocol} for protocol in ("TCP", "UDP")]},
        {"ports": [{"containerPort": 1, "hostPort": 7, "hostIP": address} for address in ("10.0.0.1", "10.0.0.2")]},
        {"ports": [{"containerPort": 1}, {"containerPort": 1}]},
        {"env": [{"name": "a.b-c d"}]},
        {"envFrom": [{"configMapRef": {"name": "a"}}, {"secretRef": {"name": "a"}, "prefix": "P_"}]},
        {"restartPolicy": "Never", "restartPolicyRules": [{"action": "Restart"}]},
        {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"},
                          {"resourceName": "memory", "restartPolicy": "RestartContainer"}]},
    ],
)  # fmt: skip
def test_a_container_within_bounds_is_stored(fields: Document) -> None:
    assert of_container(**fields) == []


def test_a_container_needs_a_name_and_an_image() -> None:
    assert of_pod(containers=[]) == ["containers: Required value"]
    assert of_pod(containers=[{}]) == ["containers[0].name: Required value", "containers[0].image: Required value"]
    assert of_container(name="A") == ["name: Invalid value"]
    assert of_container(image=" app:1") == ["image: Invalid value"]
    assert of_container(imagePullPolicy="Often") == ["imagePullPolicy: Unsupported value"]
    assert of_container(terminationMessagePolicy="No") == ["terminationMessagePolicy: Unsupported value"]


def test_names_of_containers_are_unique_among_those_of_init_containers_too() -> None:
    other = {**CONTAINER, "name": "other"}
    assert of_pod(containers=[CONTAINER, other], initContainers=[{**CONTAINER, "name": "first"}]) == []
    assert of_pod(containers=[CONTAINER, CONTAINER]) == ["containers[1].name: Duplicate value"]
    assert of_pod(initContainers=[CONTAINER]) == ["initContainers[0].name: Duplicate value"]


def test_a_host_port_is_taken_once_among_containers_and_once_within_an_init_container() -> None:
    ports = [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
    both = [{**CONTAINER, "ports": ports}, {**CONTAINER, "name": "other", "ports": ports}]
    assert of_pod(containers=both) == ["containers[1].ports[0].hostPort: Duplicate value"]
    assert of_pod(containers=both[:1], initContainers=[{**both[1]}]) == []
    twice = [{**CONTAINER, "name": "first", "ports": [*ports, *ports]}]
    assert of_pod(initContainers=twice) == ["initContainers[0].ports[1].hostPort: Duplicate value"]


def test_a_port_has_a_number_a_protocol_and_a_name_of_its_own() -> None:
    assert a_port(containerPort=None) == ["ports[0].containerPort: Required value"]
    assert a_port(containerPort=65536) == ["ports[0].containerPort: Invalid value"]
    assert a_port(containerPort=-1) == ["ports[0].containerPort: Invalid value"]
    assert a_port(hostPort=65536) == ["ports[0].hostPort: Invalid value"]
    assert a_port(protocol="HTTP") == ["ports[0].protocol: Unsupported value"]
    for name in ("a" * 16, "A", "1", "-a", "a-", "a--b", "a_b"):
        assert a_port(name=name) == ["ports[0].name: Invalid value"], name
    for name in ("http", "1a", "a-1"):
        assert a_port(name=name) == [], name
    two = [{"containerPort": 1, "name": "http"}, {"containerPort": 2, "name": "http"}]
    assert of_container(ports=two) == ["ports[1].name: Duplicate value"]


def test_a_variable_comes_from_one_source_that_names_what_it_reads() -> None:
    here = "env[0].valueFrom"
    assert of_container(env=[{}]) == ["env[0].name: Required value"]
    assert of_container(env=[{"name": "A=B"}]) == ["env[0].name: Invalid value"]
    assert a_variable() == [f"{here}: Invalid value"]
    for name in ("configMapKeyRef", "secretKeyRef"):
        assert a_variable(**{name: {"name": "a", "key": "b"}}) == []
        places = [f"{here}.{name}.name: Required value", f"{here}.{name}.key: Required value"]
        assert a_variable(**{name: {}}) == places
    assert a_variable(resourceFieldRef={"resource": "limits.cpu"}) == []
    assert a_variable(resourceFieldRef={}) == [f"{here}.resourceFieldRef.resource: Required value"]
    assert a_variable(fieldRef={}) == [f"{here}.fieldRef.fieldPath: Required value"]
    both = {"fieldRef": {"fieldPath": "metadata.name"}, "resourceFieldRef": {"resource": "limits.cpu"}}
    assert a_variable(**both) == [f"{here}: Invalid value"]
    source = {"fieldRef": {"fieldPath": "metadata.name"}}
    assert of_container(env=[{"name": "A", "value": "", "valueFrom": source}]) == []
    assert of_container(env=[{"name": "A", "value": "a", "valueFrom": source}]) == [f"{here}: Invalid value"]


def test_a_variable_from_a_file_names_a_volume_of_the_pod() -> None:
    here = "env[0].valueFrom.fileKeyRef"
    whole = {"key": "k", "volumeName": "v", "path": "p"}
    of_file = {"env": [{"name": "A", "valueFrom": {"fileKeyRef": whole}}]}
    assert of_container([EMPTY], **of_file) == []
    assert of_container(**of_file) == [f"{here}.volumeName: Not found"]
    assert a_variable(fileKeyRef={}) == [f"{here}.{field}: Required value" for field in ("key", "volumeName", "path")]


def test_a_variable_reads_only_the_fields_of_a_pod_that_the_api_server_lists() -> None:
    fields = [
        *("metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels['a']", "metadata.annotations['a']"),
        *("spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP"),
        "status.podIPs",
    ]
    assert [field for field in fields if a_variable(fieldRef={"fieldPath": field})] == []
    for field in ("spec.hostname", "metadata.labels", "metadata.labels['a'", "metadata.labelsx['a']"):
        assert a_variable(fieldRef={"fieldPath": field}) == ["env[0].valueFrom.fieldRef.fieldPath: Invalid value"]


def test_a_source_of_variables_is_one_map_or_one_secret_by_its_name() -> None:
    for name in ("configMapRef", "secretRef"):
        assert of_container(envFrom=[{name: {}}]) == [f"envFrom[0].{name}.name: Required value"]
    assert of_container(envFrom=[{}]) == ["envFrom: Invalid value"]
    assert of_container(envFrom=[{"configMapRef": {"name": "a"}, "secretRef": {"name": "a"}}]) == [
        "envFrom: Invalid value"
    ]
    assert of_container(envFrom=[{"secretRef": {"name": "a"}, "prefix": "="}]) == ["envFrom[0].prefix: Invalid value"]


def test_a_mount_is_of_a_volume_of_the_pod_at_a_path_of_its_own() -> None:
    assert a_mount() == []
    assert a_mount(name="gone") == ["volumeMounts[0].name: Not found"]
    assert a_mount(name="") == ["volumeMounts[0].name: Required value", "volumeMounts[0].name: Not found"]
    assert a_mount(mountPath="") == ["volumeMounts[0].mountPath: Required value"]
    twice = [{"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/v"}]
    assert of_container([EMPTY], volumeMounts=twice) == ["volumeMounts[1].mountPath: Invalid value"]


def test_what_a_mount_shows_lies_within_its_volume() -> None:
    for field in ("subPath", "subPathExpr"):
        assert a_mount(**{field: "a/..b/c"}) == []
        assert a_mount(**{field: "a/../b"}) == [f"volumeMounts.{field}: Invalid value"]
        assert a_mount(**{field: "/a"}) == [f"volumeMounts.{field}: Invalid value"]
    assert a_mount(subPath="a", subPathExpr="b") == ["volumeMounts[0].subPathExpr: Invalid value"]


def test_only_a_privileged_container_propagates_mounts_to_its_host() -> None:
    for mode in ("HostToContainer", "None"):
        assert a_mount(mountPropagation=mode) == []
    assert a_mount(mountPropagation="Often") == ["volumeMounts.mountPropagation: Unsupported value"]
    assert a_mount(mountPropagation="Bidirectional") == ["volumeMounts.mountPropagation: Forbidden"]
    mounts = [{"name": "v", "mountPath": "/v", "mountPropagation": "Bidirectional"}]
    assert of_container([EMPTY], volumeMounts=mounts, securityContext={"privileged": True}) == []


def test_a_mount_is_recursively_read_only_if_it_is_read_only_and_not_propagated() -> None:
    place = "volumeMounts.recursiveReadOnly: Forbidden"
    assert a_mount(recursiveReadOnly="Disabled") == []
    assert a_mount(recursiveReadOnly="Never") == ["volumeMounts.recursiveReadOnly: Unsupported value"]
    for mode in ("Enabled", "IfPossible"):
        assert a_mount(recursiveReadOnly=mode, readOnly=True) == []
        assert a_mount(recursiveReadOnly=mode, readOnly=True, mountPropagation="None") == []
        assert a_mount(recursiveReadOnly=mode) == [place]
        assert a_mount(recursiveReadOnly=mode, readOnly=True, mountPropagation="HostToContainer") == [place]


def test_a_block_device_is_of_a_claim_with_a_name_and_a_path_of_its_own() -> None:
    disk = {"name": "disk", "devicePath": "/dev/a"}
    here = "volumeDevices[0]"
    ephemeral = {"name": "v", "ephemeral": {}}
    assert a_device(disk) == []
    assert of_container([ephemeral], volumeDevices=[{"name": "v", "devicePath": "/d"}]) == []
    assert a_device({**disk, "name": "v"}) == [f"{here}.name: Invalid value"]
    assert a_device({**disk, "name": "gone"}) == [f"{here}.name: Not found"]
    assert a_device({"devicePath": "/d"}) == [f"{here}.name: Required value", f"{here}.name: Not found"]
    assert a_device({"name": "disk"}) == [f"{here}.devicePath: Required value"]
    assert a_device({"name": "disk", "devicePath": "/dev/../a"}) == [f"{here}.devicePath: Invalid value"]
    assert a_device(disk, {**disk, "devicePath": "/dev/b"}) == ["volumeDevices[1].name: Invalid value"]
    more = {"name": "more", "persistentVolumeClaim": {"claimName": "more"}}
    two = [disk, {"name": "more", "devicePath": "/dev/a"}]
    assert of_container([CLAIM, more], volumeDevices=two) == ["volumeDevices[1].devicePath: Invalid value"]


def test_a_volume_is_mounted_or_a_device_but_not_both() -> None:
    disk = {"name": "disk", "devicePath": "/dev/a"}
    assert a_device(disk, volumeMounts=[{"name": "disk", "mountPath": "/v"}]) == [
        "volumeMounts[0].name: Invalid value",
        "volumeDevices[0].name: Invalid value",
    ]
    assert a_device(disk, volumeMounts=[{"name": "v", "mountPath": "/dev/a"}]) == [
        "volumeMounts[0].mountPath: Invalid value",
        "volumeDevices[0].devicePath: Invalid value",
    ]


def test_block_devices_need_the_users_of_the_host() -> None:
    with_device = {**CONTAINER, "volumeDevices": [{"name": "disk", "devicePath": "/d"}]}
    assert of_pod(containers=[with_device], volumes=[CLAIM], hostUsers=True) == []
    assert of_pod(containers=[with_device], volumes=[CLAIM], hostUsers=False) == [
        "containers[0].volumeDevices: Forbidden"
    ]


def test_rules_of_restarts_refine_a_policy() -> None:
    assert of_container(restartPolicy="Maybe") == ["restartPolicy: Unsupported value"]
    assert of_container(restartPolicyRules=[{"action": "Restart"}]) == ["restartPolicy: Required value"]
    whole_pod = [{"action": "RestartAllContainers"}]  # of a feature that is off
    assert of_container(restartPolicy="Never", restartPolicyRules=whole_pod) == [
        "restartPolicyRules[0].action: Unsupported value"
    ]
    rules = [{"action": "Restart"}, {"action": "Stop"}]
    assert of_container(restartPolicy="Never", restartPolicyRules=rules) == [
        "restartPolicyRules[1].action: Unsupported value"
    ]


def test_a_resize_policy_names_cpu_or_memory_once() -> None:
    def policies(*entries: Document, **pod: Any) -> list[str]:
        return of_pod(containers=[{**CONTAINER, "resizePolicy": list(entries)}], **pod)

    cpu, here = {"resourceName": "cpu", "restartPolicy": "NotRequired"}, "containers[0].resizePolicy"
    restart = {**cpu, "restartPolicy": "RestartContainer"}
    assert policies(cpu, cpu) == [f"{here}[1]: Duplicate value"]
    assert policies({"resourceName": "cpu"}) == [f"{here}: Required value"]
    assert policies({"restartPolicy": "NotRequired"}) == [f"{here}: Required value"]
    assert policies({**cpu, "resourceName": "pods"}) == [f"{here}: Unsupported value"]
    assert policies({**cpu, "restartPolicy": "Maybe"}) == [f"{here}: Unsupported value"]
    assert policies(cpu, restartPolicy="Never") == []
    assert policies(restart, restartPolicy="Never") == [f"{here}: Invalid value"]
    assert policies(restart, restartPolicy="OnFailure") == []


def test_only_an_init_container_that_always_restarts_has_probes_and_hooks() -> None:
    probe = {"tcpSocket": {"port": 80}, "successThreshold": 1}
    hook = {"preStop": {"exec": {"command": ["stop"]}}}
    fields = {"livenessProbe": probe, "readinessProbe": probe, "startupProbe": probe, "lifecycle": hook}
    first = {**CONTAINER, "name": "first", **fields}
    assert of_pod(initContainers=[{**first, "restartPolicy": "Always"}]) == []
    assert of_pod(initContainers=[first]) == [
        f"initContainers[0].{name}: Forbidden"
        for name in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
    ]
    bad = {**CONTAINER, "name": "first", "restartPolicy": "Always", "livenessProbe": {"successThreshold": 1}}
    assert of_pod(initContainers=[bad]) == ["initContainers[0].livenessProbe: Required value"]


@pytest.mark.parametrize("name", ["livenessProbe", "readinessProbe", "startupProbe"])
def test_a_probe_has_one_handler_and_no_negative_number(name: str) -> None:
    def probe(**fields: Any) -> list[str]:
        return of_container(**{name: {"tcpSocket": {"port": 80}, "successThreshold": 1, **fields}})

    assert probe() == []
    for field in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "failureThreshold"):
        assert probe(**{field: 0}) == []
        assert probe(**{field: -1}) == [f"{name}.{field}: Invalid value"]
    is_readiness = name == "readinessProbe"
    assert probe(successThreshold=2) == ([] if is_readiness else [f"{name}.successThreshold: Invalid value"])
    place = f"{name}.terminationGracePeriodSeconds: Invalid value"
    assert probe(terminationGracePeriodSeconds=1) == ([place] if is_readiness else [])
    assert probe(terminationGracePeriodSeconds=0) == [place] * (1 + is_readiness)
    assert probe(exec={"command": ["a"]}) == [f"{name}.tcpSocket: Forbidden"]


@pytest.mark.parametrize("place", ["livenessProbe", "lifecycle.preStop", "lifecycle.postStart"])
def test_a_handler_says_what_it_does(place: str) -> None:
    def handler(**action: Any) -> list[str]:
        outer, _, inner = place.partition(".")
        value = {inner: action} if inner else {"successThreshold": 1, **action}
        return of_container(**{outer: value})

    assert handler() == [f"{place}: Required value"]
    assert handler(exec={}) == [f"{place}.exec.command: Required value"]
    for number, wanted in ((1, []), (65535, []), (0, ["Invalid value"]), (65536, ["Invalid value"])):
        assert handler(tcpSocket={"port": number}) == [f"{place}.tcpSocket.port: {reason}" for reason in wanted]
        assert handler(httpGet={"port": number}) == [f"{place}.httpGet.port: {reason}" for reason in wanted]
        assert handler(grpc={"port": number}) == [f"{place}.grpc: {reason}" for reason in wanted]
    assert handler(tcpSocket={"port": "http"}) == []
    assert handler(httpGet={"port": "Http"}) == [f"{place}.httpGet.port: Invalid value"]
    for scheme in ("HTTP", "HTTPS"):
        assert handler(httpGet={"port": 80, "scheme": scheme}) == []
    assert handler(httpGet={"port": 80, "scheme": "FTP"}) == [f"{place}.httpGet.scheme: Unsupported value"]


def test_a_container_sleeps_no_longer_than_its_pod_has_to_end() -> None:
    def sleep(seconds: int, **pod: Any) -> list[str]:
        return of_pod(containers=[{**CONTAINER, "lifecycle": {"preStop": {"sleep": {"seconds": seconds}}}}], **pod)

    place = "containers[0].lifecycle.preStop.sleep.seconds: Invalid value"
    assert [sleep(seconds) for seconds in (0, 30, -1, 31)] == [[], [], [place], [place]]
    assert sleep(31, terminationGracePeriodSeconds=31) == []
    assert sleep(31, terminationGracePeriodSeconds=None) == []
