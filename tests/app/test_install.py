"""What is installed for the extender, document by document."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from app.installations import FOLDER, NAMES, build_text
from wukong.app.component import Component, NoOptions
from wukong.app.components import COMPONENTS
from wukong.app.components.extender.install import (
    ExtenderInstallation,
    SecondScheduler,
    check_installation,
    extender,
    scheduler,
)
from wukong.app.components.extender.install.settings import EXTENDER
from wukong.app.components.extender.options import ExtenderOptions, address_of, tls_of
from wukong.app.components.usage.component import METRICS_API
from wukong.app.install import rbac
from wukong.app.install.certificates import Certificates, issue
from wukong.app.install.text import as_yaml
from wukong.app.install.workload import avoid_spot_nodes
from wukong.app.permissions import Permission
from wukong.cli.verbs.run import command as run
from wukong.cli.verbs.run import read_options
from wukong.errors import InputError
from wukong.placement.capacity import SPOT_LABELS, is_spot

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
LOAD = COMPONENTS["load"]
Documents = list[dict[str, Any]]


def settings(**given: Any) -> ExtenderInstallation:
    return ExtenderInstallation(**{"image": "wukong:test", "components": (LOAD,), **given})


def certificates(of: ExtenderInstallation, days: int = 365) -> Certificates:
    return issue(EXTENDER, of.hosts, NOW, days)


def installed(**given: Any) -> Documents:
    asked = settings(**given)
    return extender.build_documents(asked, None if asked.is_plain else certificates(asked))


def second_scheduler(**given: Any) -> Documents:
    second = SecondScheduler(image="kube-scheduler:test")
    asked = settings(second=second, **given)
    return scheduler.build_documents(asked, second, None if asked.is_plain else certificates(asked))


def the(documents: Documents, kind: str, name: str = "") -> dict[str, Any]:
    (found,) = [
        entry for entry in documents if entry["kind"] == kind and (not name or entry["metadata"]["name"] == name)
    ]
    return found


def pod_of(documents: Documents) -> dict[str, Any]:
    spec: dict[str, Any] = the(documents, "Deployment")["spec"]["template"]["spec"]
    return spec


def certificate(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


# The workload -----------------------------------------------------------------------------------------------------


def test_the_command_line_asks_for_mutual_tls() -> None:
    (container,) = pod_of(installed(prometheus="http://p:9090", critical_priority=1000))["containers"]
    assert container["args"] == [
        "run",
        "--components=load",
        "--extender=:8443",
        "--extender-cert=/etc/wukong/extender/tls.crt",
        "--extender-key=/etc/wukong/extender/tls.key",
        "--extender-client-ca=/etc/wukong/extender/client-ca.crt",
        "--probes=:8080",
        "--lease=wukong-system/wukong",
        "--log-format=json",
        "--prometheus=http://p:9090",
        "--critical-priority=1000",
    ]


@pytest.mark.parametrize("is_plain", [True, False])
def test_wukong_run_understands_the_command_line(is_plain: bool) -> None:
    chosen = (COMPONENTS["extender"], COMPONENTS["policy"])
    asked = {"is_plain": is_plain, "components": chosen, "prometheus": "http://p:9090", "critical_priority": 1000}
    (container,) = pod_of(installed(**asked))["containers"]
    verb, *words = container["args"]
    context = run.make_context(verb, words)
    config = read_options(context, None)
    assert config.components == chosen
    read = config.options["extender"]
    assert isinstance(read, ExtenderOptions)
    assert (tls_of(read) is None) == is_plain
    assert address_of(read) == ("", 8880 if is_plain else 8443)
    assert read.critical_priority == 1000


def test_plain_http_has_no_keys_and_the_port_of_the_seeds() -> None:
    documents = installed(is_plain=True)
    (container,) = pod_of(documents)["containers"]
    assert "--extender-plain-http" in container["args"]
    assert not any("cert" in word or "key" in word for word in container["args"])
    assert "volumes" not in pod_of(documents)
    assert "Secret" not in {entry["kind"] for entry in documents}
    (port,) = the(documents, "Service")["spec"]["ports"]
    assert port["port"] == 8080
    ports = [entry["containerPort"] for entry in container["ports"]]
    assert len(ports) == len(set(ports))


@pytest.mark.parametrize(("label", "value"), [(label, value) for label, them in SPOT_LABELS.items() for value in them])
def test_every_word_for_spot_keeps_the_pods_away(label: str, value: str) -> None:
    assert is_spot({label: value})
    (term,) = avoid_spot_nodes()["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    refused = {(entry["key"], word) for entry in term["matchExpressions"] for word in entry["values"]}
    assert (label, value) in refused
    assert {entry["operator"] for entry in term["matchExpressions"]} == {"NotIn"}


@pytest.mark.parametrize("is_plain", [True, False])
@pytest.mark.parametrize("build", [installed, second_scheduler], ids=["extender", "second scheduler"])
def test_the_pods_meet_the_restricted_standard_and_cannot_write_their_own_files(
    build: Callable[..., Documents], is_plain: bool
) -> None:
    """What https://kubernetes.io/docs/concepts/security/pod-security-standards calls restricted."""
    spec = pod_of(build(is_plain=is_plain))
    security = spec["securityContext"]
    assert security["runAsNonRoot"] is True
    assert security["runAsUser"] == security["runAsGroup"] == security["fsGroup"] == 65532
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
    assert all({"secret", "configMap"} & volume.keys() for volume in spec.get("volumes", []))
    for container in spec["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert not any("hostPort" in port for port in container.get("ports", []))


@pytest.mark.parametrize("build", [installed, second_scheduler], ids=["extender", "second scheduler"])
def test_an_update_never_takes_a_pod_away_before_another_is_there(build: Callable[..., Documents]) -> None:
    documents = build()
    deployment = the(documents, "Deployment")["spec"]
    assert deployment["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    component = deployment["selector"]["matchLabels"]
    assert component == deployment["template"]["metadata"]["labels"]
    budget = the(documents, "PodDisruptionBudget")["spec"]
    assert (budget["maxUnavailable"], budget["unhealthyPodEvictionPolicy"]) == (1, "AlwaysAllow")
    assert budget["selector"] == deployment["selector"]
    pod = pod_of(documents)
    assert pod["priorityClassName"] == "system-cluster-critical"
    spread = [(entry["topologyKey"], entry["whenUnsatisfiable"]) for entry in pod["topologySpreadConstraints"]]
    assert spread == [
        ("kubernetes.io/hostname", "DoNotSchedule"),
        ("topology.kubernetes.io/zone", "ScheduleAnyway"),
    ]
    for entry in pod["topologySpreadConstraints"]:
        assert (entry["maxSkew"], entry["nodeTaintsPolicy"]) == (1, "Honor")
        assert (entry["labelSelector"]["matchLabels"], entry["matchLabelKeys"]) == (component, ["pod-template-hash"])


def test_the_pods_do_not_ask_for_a_scheduler_that_asks_them() -> None:
    second = SecondScheduler(image="kube-scheduler:test")
    asked = settings(second=second)
    documents = [*installed(), *scheduler.build_documents(asked, second, certificates(asked))]
    for entry in documents:
        if entry["kind"] == "Deployment":
            assert "schedulerName" not in entry["spec"]["template"]["spec"]


def test_two_replicas_never_share_a_node_and_one_may_be_evicted_at_a_time() -> None:
    documents = installed()
    assert the(documents, "Deployment")["spec"]["replicas"] == 2
    spread = {
        entry["topologyKey"]: entry["whenUnsatisfiable"] for entry in pod_of(documents)["topologySpreadConstraints"]
    }
    assert spread == {"kubernetes.io/hostname": "DoNotSchedule", "topology.kubernetes.io/zone": "ScheduleAnyway"}
    assert the(documents, "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    chosen = the(documents, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert the(documents, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == chosen
    assert the(documents, "Service")["spec"]["selector"] == chosen


def test_the_service_can_have_a_fixed_address() -> None:
    assert the(installed(cluster_ip="10.96.0.50"), "Service")["spec"]["clusterIP"] == "10.96.0.50"
    assert "clusterIP" not in the(installed(), "Service")["spec"]


def test_the_pods_are_restricted() -> None:
    pod = pod_of(installed())
    (container,) = pod["containers"]
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "fsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    (keys,) = pod["volumes"]
    assert keys["secret"]["defaultMode"] == 0o440


@pytest.mark.parametrize("is_plain", [True, False])
@pytest.mark.parametrize("second", [None, SecondScheduler(image="kube-scheduler:test")])
def test_only_the_two_ports_can_be_reached(is_plain: bool, second: SecondScheduler | None) -> None:
    documents = installed(is_plain=is_plain, second=second)
    policy = the(documents, "NetworkPolicy")["spec"]
    assert policy["podSelector"]["matchLabels"] == the(documents, "Service")["spec"]["selector"]
    assert policy["policyTypes"] == ["Ingress"]
    asked, probed = policy["ingress"]
    assert [port["port"] for rule in (asked, probed) for port in rule["ports"]] == [8880 if is_plain else 8443, 8080]
    (container,) = pod_of(documents)["containers"]
    assert [port["containerPort"] for port in container["ports"]] == [8880 if is_plain else 8443, 8080]
    assert "from" not in probed
    assert ("from" in asked) == (second is not None)
    if second:
        theirs = scheduler.build_documents(settings(is_plain=True, second=second), second, None)
        (caller,) = asked["from"]
        assert (
            the(theirs, "Deployment")["spec"]["template"]["metadata"]["labels"] == caller["podSelector"]["matchLabels"]
        )
        (ingress,) = the(theirs, "NetworkPolicy")["spec"]["ingress"]
        assert ingress == {"ports": [{"port": 10259, "protocol": "TCP"}]}


def test_the_pods_know_who_they_are() -> None:
    (container,) = pod_of(installed())["containers"]
    env = {entry["name"]: entry["valueFrom"]["fieldRef"]["fieldPath"] for entry in container["env"]}
    assert env == {"POD_NAME": "metadata.name", "POD_NAMESPACE": "metadata.namespace"}


# Rights -----------------------------------------------------------------------------------------------------------


def test_rights_are_the_union_of_what_components_ask_for_each_where_it_asks() -> None:
    lease = Permission("coordination.k8s.io", "leases", ("get",), in_own_namespace=True)

    def needing(name: str, *verbs: str) -> Component[NoOptions]:
        needed = (lease, Permission("", "nodes", verbs))
        return Component(name=name, help="", options=NoOptions, permissions_of=lambda _: needed)

    one, two = needing("one", "list", "watch"), needing("two", "watch", "patch")
    documents = installed(components=(one, two), prometheus="http://p:9090")
    assert the(documents, "ClusterRole")["rules"] == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch", "patch"]}
    ]
    assert the(documents, "Role")["rules"] == [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]}
    ]


def test_no_lease_but_the_own_one_may_be_read_or_written() -> None:
    documents = installed(components=(COMPONENTS["extender"], COMPONENTS["policy"]))
    lease = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    assert the(documents, "Role")["rules"] == [
        {**lease, "verbs": ["create"]},
        {**lease, "verbs": ["get", "patch"], "resourceNames": ["wukong"]},
    ]
    (container,) = pod_of(documents)["containers"]
    assert "--lease=wukong-system/wukong" in container["args"]
    assert not any(rule["resources"] == ["leases"] for rule in the(documents, "ClusterRole")["rules"])


def test_usage_is_asked_of_the_cluster_only_without_prometheus() -> None:
    assert METRICS_API.build_rule() in the(installed(), "ClusterRole")["rules"]
    assert METRICS_API.build_rule() not in the(installed(prometheus="http://p:9090"), "ClusterRole")["rules"]


def test_no_rules_make_no_roles() -> None:
    assert rbac.build_roles(settings(), "x", "x", []) == []


# Certificates -----------------------------------------------------------------------------------------------------


def test_the_server_is_good_for_its_names_and_addresses_and_the_client_for_nothing_but_asking() -> None:
    made = certificates(settings(cluster_ip="10.96.0.50", address="extender.example.com:443"))
    server, client = certificate(made.server.certificate), certificate(made.client.certificate)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [
        "wukong-extender",
        "wukong-extender.wukong-system",
        "wukong-extender.wukong-system.svc",
        "wukong-extender.wukong-system.svc.cluster.local",
        "extender.example.com",
    ]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["10.96.0.50"]
    usages = [list(one.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) for one in (server, client)]
    assert usages == [[ExtendedKeyUsageOID.SERVER_AUTH], [ExtendedKeyUsageOID.CLIENT_AUTH]]
    for one in (server, client):
        one.verify_directly_issued_by(certificate(made.authority))


def test_certificates_last_as_long_as_asked_and_start_before_a_slow_clock() -> None:
    made = certificates(settings(), days=30)
    for pem in (made.authority, made.server.certificate, made.client.certificate):
        assert certificate(pem).not_valid_after_utc == NOW + timedelta(days=30) == made.expire
        assert certificate(pem).not_valid_before_utc < NOW


def test_the_key_of_the_authority_is_nowhere() -> None:
    asked = settings()
    made = certificates(asked)
    text = as_yaml(extender.build_documents(asked, made))
    assert base64.b64encode(made.server.key).decode() in text
    assert made.server.key != made.client.key
    public = certificate(made.authority).public_key()
    for key in (made.server, made.client):
        assert certificate(key.certificate).public_key() != public


# The scheduler's configuration ------------------------------------------------------------------------------------


def test_the_scheduler_verifies_the_extender_and_shows_its_certificate() -> None:
    asked = settings(cluster_ip="10.96.0.50", weight=7)
    made = certificates(asked)
    config = scheduler.build_configuration(asked, made)
    (found,) = config["extenders"]
    tls = found.pop("tlsConfig")
    assert found == {
        "urlPrefix": "https://10.96.0.50:8443",
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "preemptVerb": "preempt",
        "weight": 7,
        "nodeCacheCapable": True,
        "ignorable": True,
        "httpTimeout": "3s",
        "enableHTTPS": True,
    }
    assert {name: base64.b64decode(data) for name, data in tls.items()} == {
        "caData": made.authority,
        "certData": made.client.certificate,
        "keyData": made.client.key,
    }
    assert config["percentageOfNodesToScore"] == 100
    assert config["clientConnection"] == {"kubeconfig": "/etc/kubernetes/scheduler.conf"}
    ssl.create_default_context(cadata=made.authority.decode())


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({}, "https://wukong-extender.wukong-system.svc:8443"),
        ({"namespace": "place"}, "https://wukong-extender.place.svc:8443"),
        ({"cluster_ip": "fd00::5"}, "https://[fd00::5]:8443"),
        ({"cluster_ip": "10.96.0.50", "address": "10.0.0.5:9443"}, "https://10.0.0.5:9443"),
        ({"address": "[fd00::5]:9443"}, "https://[fd00::5]:9443"),
        ({"is_plain": True}, "http://wukong-extender.wukong-system.svc:8080"),
    ],
)
def test_where_the_scheduler_asks_is_what_the_certificate_is_good_for(given: dict[str, Any], url: str) -> None:
    asked = settings(**given)
    assert asked.url == url
    assert asked.url.split("//")[1].rpartition(":")[0].strip("[]") in asked.hosts


def test_the_configuration_says_why() -> None:
    text = scheduler.format_configuration(scheduler.build_configuration(settings(is_plain=True), None))
    assert "# percentageOfNodesToScore: 100" in text
    assert yaml.safe_load(text)["extenders"][0]["enableHTTPS"] is False


def test_the_stored_configuration_is_a_secret_where_it_holds_a_key() -> None:
    asked = settings()
    assert scheduler.store_configuration(asked, certificates(asked))["kind"] == "Secret"
    assert scheduler.store_configuration(settings(is_plain=True), None)["kind"] == "ConfigMap"


def test_the_second_scheduler_has_a_name_and_a_lease_of_its_own_and_no_key_in_its_config_map() -> None:
    second = SecondScheduler(image="kube-scheduler:test", name="placer")
    asked = settings(second=second)
    documents = scheduler.build_documents(asked, second, certificates(asked))
    text = the(documents, "ConfigMap")["data"]["scheduler-config.yaml"]
    config = yaml.safe_load(text)
    assert config["profiles"] == [{"schedulerName": "placer"}]
    assert config["leaderElection"]["resourceName"] == "wukong-scheduler"
    assert config["leaderElection"]["resourceNamespace"] == "wukong-system"
    assert config["percentageOfNodesToScore"] == 100
    assert "Data" not in text
    assert "PRIVATE" not in text


def test_new_certificates_restart_the_second_scheduler_but_not_the_extender() -> None:
    second = SecondScheduler(image="kube-scheduler:test")
    asked = settings(second=second)
    runs = [certificates(asked), certificates(asked)]
    schedulers = [the(scheduler.build_documents(asked, second, made), "Deployment") for made in runs]
    extenders = [the(extender.build_documents(asked, made), "Deployment") for made in runs]
    assert all(one != other for one, other in pairwise(schedulers))
    assert all(one == other for one, other in pairwise(extenders))


# Wrong settings ---------------------------------------------------------------------------------------------------


def test_every_wrong_setting_is_named_at_once() -> None:
    with pytest.raises(InputError) as caught:
        check_installation(settings(namespace="kube-system", cluster_ip="10.96.0.500", address="nowhere"))
    assert [problem.split(":")[0] for problem in caught.value.problems] == [
        "--cluster-ip",
        "--address",
        "--namespace",
        "--components",
    ]


# Everything that is printed ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_an_installation_is_as_it_was_kept(name: str) -> None:
    kept = (FOLDER / f"{name}.yaml").read_text("utf-8")
    assert build_text(name) == kept, "If that is meant: PYTHONPATH=src:tests python -m app.installations"
