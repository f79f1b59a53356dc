"""`wukong manifests agent`, and the hook in `wukong manifests spot`: streams to apply, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from cli.conftest import Wukong
from wukong.placement.capacity import SPOT_LABELS

AGENT = ("manifests", "agent", "--image", "wukong:test")
SPOT = ("manifests", "spot", "--image", "wukong:test")


def documents_of(text: str) -> dict[str, Any]:
    return {document["kind"]: document for document in yaml.safe_load_all(text)}


def test_the_agent_runs_on_every_node_and_without_the_hosts_network(wukong: Wukong) -> None:
    run = wukong(*AGENT)
    assert run.code == 0, run.err
    documents = documents_of(run.out)
    pod = documents["DaemonSet"]["spec"]["template"]["spec"]
    assert "hostNetwork" not in pod
    assert "affinity" not in pod
    assert pod["tolerations"] == [{"operator": "Exists"}]
    (container,) = pod["containers"]
    assert container["args"] == ["agent", "--log-format=json"]
    assert documents["Namespace"]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert documents["NetworkPolicy"]["spec"]["ingress"] == []
    assert any("--host-network" in line for line in run.notes)


def test_what_is_asked_for_is_in_the_daemon_set(wukong: Wukong) -> None:
    words = ("--cloud", "azure", "--endpoint", "http://10.0.0.1", "--acknowledge", "--spot-nodes", "--host-network")
    run = wukong(*AGENT, *words)
    assert run.code == 0, run.err
    documents = documents_of(run.out)
    pod = documents["DaemonSet"]["spec"]["template"]["spec"]
    assert pod["hostNetwork"] is True
    assert pod["containers"][0]["args"][2:] == ["--cloud=azure", "--endpoint=http://10.0.0.1", "--acknowledge"]
    terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert {term["matchExpressions"][0]["key"] for term in terms} == set(SPOT_LABELS)
    assert documents["Namespace"]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"
    assert run.notes == []


def test_the_policy_is_about_the_account_and_comes_before_its_rights(wukong: Wukong) -> None:
    run = wukong(*AGENT, "-n", "machines")
    documents = documents_of(run.out)
    (condition,) = documents["ValidatingAdmissionPolicy"]["spec"]["matchConditions"]
    assert condition["expression"] == "request.userInfo.username == 'system:serviceaccount:machines:wukong-agent'"
    binding = documents["ValidatingAdmissionPolicyBinding"]["spec"]
    assert binding["policyName"] == documents["ValidatingAdmissionPolicy"]["metadata"]["name"]
    assert binding["validationActions"] == ["Deny"]
    kinds = list(documents)
    assert kinds.index("ValidatingAdmissionPolicyBinding") < kinds.index("ClusterRoleBinding")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--endpoint", "http://x"), "--endpoint: expected one cloud's own with --cloud"),
        (("--cloud", "aws", "--acknowledge"), "--acknowledge: is about Azure"),
        (("-n", "kube-system"), "--namespace: expected one of Wukong's own"),
        (("-n", "wukong-system", "--host-network"), "--namespace: expected one of the agent's own with --host-network"),
        (("--memory", "lots"), "--memory: "),
    ],
)
def test_what_does_not_go_together_is_refused(wukong: Wukong, words: tuple[str, ...], problem: str) -> None:
    run = wukong(*AGENT, *words)
    assert run.code == 2
    assert problem in run.err
    assert run.out == ""


def test_without_its_secrets_there_is_no_hook(wukong: Wukong) -> None:
    run = wukong(*SPOT)
    assert run.code == 0, run.err
    assert "hook" not in run.out


def test_with_its_secrets_the_hook_is_served_and_reachable(wukong: Wukong) -> None:
    run = wukong(*SPOT, "--hook-token", "tokens", "--hook-certificate", "hook-tls")
    assert run.code == 0, run.err
    documents = documents_of(run.out)
    pod = documents["Deployment"]["spec"]["template"]["spec"]
    assert [volume["secret"]["secretName"] for volume in pod["volumes"]] == ["tokens", "hook-tls"]
    assert "--hook=:8444" in pod["containers"][0]["args"]
    assert documents["Service"]["spec"]["ports"][0]["targetPort"] == "hook"
    reachable = [port["port"] for rule in documents["NetworkPolicy"]["spec"]["ingress"] for port in rule["ports"]]
    assert reachable == [8080, 8444]
    (nodes,) = [rule for rule in documents["ClusterRole"]["rules"] if rule["resources"] == ["nodes"]]
    assert "get" in nodes["verbs"]


@pytest.mark.parametrize("given", ["--hook-token", "--hook-certificate"])
def test_a_hook_needs_both_secrets(wukong: Wukong, given: str) -> None:
    run = wukong(*SPOT, given, "x")
    assert run.code == 2
    assert f"got only {given}. Name both Secrets." in run.err
