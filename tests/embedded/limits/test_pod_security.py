"""Pod Security Standards: what each level refuses, word for word, and from which version on."""

from __future__ import annotations

from typing import Any

import pytest

from wukong.embedded.store.limits.pod_security import Standard, find_label_problems, find_refusal, standard_of
from wukong.ports import Document

GOOD: Document = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def a_pod(context: Document | None = None, **spec: Any) -> Document:
    container = {"name": "main", **({"securityContext": context} if context else {})}
    return {"metadata": {"name": "p"}, "spec": {"containers": [container], **spec}}


def test_a_plain_pod_lacks_four_things_of_restricted() -> None:
    assert find_refusal(Standard("restricted"), a_pod()) == (
        'violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "main" must set '
        'securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "main" must set '
        'securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "main" must set '
        'securityContext.runAsNonRoot=true), seccompProfile (pod or container "main" must set '
        'securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'
    )
    assert find_refusal(Standard("baseline"), a_pod()) == ""


@pytest.mark.parametrize(
    ("pod", "detail"),
    [
        (a_pod({**GOOD, "privileged": True}), "privileged (container"),
        (a_pod(GOOD, hostPID=True, hostNetwork=True), "host namespaces (hostNetwork=true, hostPID=true)"),
        (a_pod({**GOOD, "runAsUser": 0}), 'runAsUser=0 (container "main" must not set runAsUser=0)'),
        (a_pod(GOOD, volumes=[{"name": "v", "nfs": {}}]), 'volume "v" uses restricted volume type "nfs"'),
        (a_pod({**GOOD, "procMount": "Unmasked"}), 'must not set securityContext.procMount to "Unmasked"'),
        (a_pod({**GOOD, "windowsOptions": {"hostProcess": True}}), "hostProcess (container"),
        (
            a_pod(GOOD, securityContext={"sysctls": [{"name": "kernel.msgmax"}]}),
            "forbidden sysctls (kernel.msgmax)",
        ),
        (
            {**a_pod(GOOD), "metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/x": "bad"}}},
            "forbidden AppArmor profile (annotation must not set AppArmor profile type to",
        ),
    ],
)
def test_restricted_refuses(pod: Document, detail: str) -> None:
    assert detail in find_refusal(Standard("restricted"), pod)


def test_a_good_pod_is_restricted() -> None:
    assert find_refusal(Standard("restricted"), a_pod(GOOD)) == ""


def test_versions_pin_what_is_checked() -> None:
    probe = a_pod()
    probe["spec"]["containers"][0]["livenessProbe"] = {"httpGet": {"host": "1.2.3.4"}}
    assert find_refusal(Standard("baseline", "v1.33"), probe) == ""
    assert "probe or lifecycle host" in find_refusal(Standard("baseline", "v1.34"), probe)
    rooted = a_pod({**GOOD, "runAsUser": 0}, hostUsers=False)
    assert "runAsUser=0" in find_refusal(Standard("restricted", "v1.34"), rooted)
    assert find_refusal(Standard("restricted", "v1.35"), rooted) == ""


def test_labels_that_cannot_be_read_are_refused_and_count_as_the_strictest() -> None:
    labels = {"pod-security.kubernetes.io/enforce": "strict", "pod-security.kubernetes.io/warn-version": "1"}
    namespace = {"metadata": {"name": "n", "labels": labels}}
    assert list(find_label_problems(namespace)) == [
        'metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "strict": must be one of privileged, '
        "baseline, restricted",
        'metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: "1": must be "latest" or "v1.x"',
    ]
    assert standard_of(namespace) == Standard("restricted", "latest")
