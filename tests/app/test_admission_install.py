"""What is installed for the component admission, document by document, and its options."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from wukong.app.components import COMPONENTS
from wukong.app.components.admission import ADMISSION, AdmissionOptions
from wukong.app.components.admission.install import AdmissionInstallation, build_manifests, check_installation
from wukong.app.components.admission.options import find_problems
from wukong.app.install.installation import labels_of
from wukong.cli.verbs.manifests_admission import command
from wukong.cli.verbs.run import command as run
from wukong.cli.verbs.run import read_options
from wukong.controllers.admission.controller import LEADER_LABEL
from wukong.errors import InputError

Documents = list[dict[str, Any]]
WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def settings(**given: Any) -> AdmissionInstallation:
    return AdmissionInstallation(**{"image": "wukong:test", "components": (ADMISSION,), **given})


def the(documents: Documents, kind: str) -> dict[str, Any]:
    (document,) = [document for document in documents if document["kind"] == kind]
    return document


def webhook_of(documents: Documents, kind: str) -> dict[str, Any]:
    (webhook,) = the(documents, kind)["webhooks"]
    return dict(webhook)


def test_webhooks_come_last_when_there_is_somebody_to_answer() -> None:
    kinds = [document["kind"] for document in build_manifests(settings())]
    assert kinds[0] == "Namespace"
    assert tuple(kinds[-2:]) == WEBHOOKS


@pytest.mark.parametrize("kind", WEBHOOKS)
def test_a_webhook_never_stands_in_the_way(kind: str) -> None:
    webhook = webhook_of(build_manifests(settings(namespace="placement")), kind)
    assert webhook["failurePolicy"] == "Ignore"
    assert webhook["timeoutSeconds"] == 2
    assert webhook["matchPolicy"] == "Equivalent"
    (expression,) = webhook["namespaceSelector"]["matchExpressions"]
    assert (expression["key"], expression["operator"]) == ("kubernetes.io/metadata.name", "NotIn")
    assert expression["values"] == ["kube-system", "placement"]
    assert "caBundle" not in webhook["clientConfig"]
    assert AdmissionOptions().answer_seconds < webhook["timeoutSeconds"]


def test_pods_are_asked_about_when_they_are_created_and_again_when_somebody_changed_them() -> None:
    webhook = webhook_of(build_manifests(settings()), "MutatingWebhookConfiguration")
    (rule,) = webhook["rules"]
    assert (rule["resources"], rule["operations"]) == (["pods"], ["CREATE"])
    assert webhook["reinvocationPolicy"] == "IfNeeded"
    assert webhook["sideEffects"] == "NoneOnDryRun"


def test_our_own_kinds_are_checked() -> None:
    webhook = webhook_of(build_manifests(settings()), "ValidatingWebhookConfiguration")
    assert {resource: rule["scope"] for rule in webhook["rules"] for resource in rule["resources"]} == {
        "placementpolicies": "Namespaced",
        "clusterplacementpolicies": "Cluster",
        "rollouts": "Namespaced",
        "wukongs": "Namespaced",
    }
    assert webhook["sideEffects"] == "None"


def test_the_service_finds_who_leads_and_nobody_else() -> None:
    documents = build_manifests(settings())
    service, webhook = the(documents, "Service"), webhook_of(documents, "MutatingWebhookConfiguration")
    assert service["spec"]["selector"] == {**labels_of("admission"), LEADER_LABEL: "true"}
    assert LEADER_LABEL not in the(documents, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert webhook["clientConfig"]["service"]["name"] == service["metadata"]["name"]
    (port,) = service["spec"]["ports"]
    assert webhook["clientConfig"]["service"]["port"] == port["port"]


def test_wukong_run_understands_the_command_line() -> None:
    installation = settings(components=(ADMISSION, COMPONENTS["policy"]), namespace="placement", certificate_secret="x")
    (container,) = the(build_manifests(installation), "Deployment")["spec"]["template"]["spec"]["containers"]
    verb, *words = container["args"]
    config = read_options(run.make_context(verb, words), None)
    assert config.components == (ADMISSION, COMPONENTS["policy"])
    assert config.options["admission"] == installation.options
    assert config.run.lease == "placement/wukong-admission"


def test_no_right_is_a_wildcard_and_only_its_own_secret_is_read() -> None:
    documents = build_manifests(settings())
    for kind in ("ClusterRole", "Role"):
        for rule in the(documents, kind)["rules"]:
            assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
            if {"get", "patch"} & set(rule["verbs"]) and rule["resources"] != ["pods"]:
                assert rule["resourceNames"], rule
    assert "secrets" not in [name for rule in the(documents, "ClusterRole")["rules"] for name in rule["resources"]]


def test_with_a_certificate_of_somebody_elses_it_may_do_less() -> None:
    documents = build_manifests(settings(certificate_secret="webhook-tls", ca_bundle=b"authority"))
    resources = [
        name for kind in ("ClusterRole", "Role") for rule in the(documents, kind)["rules"] for name in rule["resources"]
    ]
    assert not {"secrets", "mutatingwebhookconfigurations"} & set(resources)
    pod = the(documents, "Deployment")["spec"]["template"]["spec"]
    assert pod["volumes"][0]["secret"]["secretName"] == "webhook-tls"
    assert webhook_of(documents, "MutatingWebhookConfiguration")["clientConfig"]["caBundle"] == "YXV0aG9yaXR5"


def test_the_network_may_be_narrowed_to_api_servers() -> None:
    policy = the(build_manifests(settings(api_server_cidrs=("10.0.0.0/28",))), "NetworkPolicy")
    called, probed = policy["spec"]["ingress"]
    assert called["from"] == [{"ipBlock": {"cidr": "10.0.0.0/28"}}]
    assert "from" not in probed


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"namespace": "kube-system"}, "--namespace: expected one of Wukong's own"),
        ({"components": (COMPONENTS["policy"],)}, "--components: expected admission among them"),
        ({"ca_bundle": b"x"}, "--ca-file: is about --certificate-secret"),
        ({"api_server_cidrs": ("10.0.0.1/24",)}, "--api-server-cidrs: expected networks"),
        ({"memory": "lots"}, "--memory"),
    ],
)
def test_what_cannot_be_installed_is_refused_by_option(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as caught:
        check_installation(settings(**given))
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (AdmissionOptions(address="nonsense"), "address: "),
        (AdmissionOptions(service="wukong-admission"), "service: expected NAMESPACE/NAME"),
        (AdmissionOptions(cert="tls.crt"), "key: expected a certificate and its key, got only cert"),
        (AdmissionOptions(key="tls.key"), "cert: expected a certificate and its key, got only key"),
    ],
)
def test_wrong_options_are_told(options: AdmissionOptions, problem: str) -> None:
    (found,) = find_problems(options, str)
    assert found.startswith(problem)


def test_the_command_prints_what_is_built_and_says_what_to_know() -> None:
    done = CliRunner().invoke(command, ["--image", "wukong:test"], catch_exceptions=False)
    names = tuple(COMPONENTS[name] for name in ("admission", "policy"))
    assert list(yaml.safe_load_all(done.stdout)) == build_manifests(settings(components=names))
    assert done.stderr == ""
    done = CliRunner().invoke(
        command, ["--image", "wukong:test", "--certificate-secret", "mine"], catch_exceptions=False
    )
    assert "caBundle" in done.stderr
