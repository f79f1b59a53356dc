"""What is installed for the component vm, document by document, and its options."""

from __future__ import annotations

from typing import Any

import pytest

from wukong.app.component import list_permissions
from wukong.app.components import COMPONENTS
from wukong.app.components.load.component import LoadOptions, find_problems
from wukong.app.components.vm import VM, VmOptions
from wukong.app.components.vm.install import make_installation
from wukong.app.components.wukongs import WukongOptions
from wukong.app.install.controller import ControllerInstallation, build_manifests, check_installation
from wukong.cli.verbs.run import command as run
from wukong.cli.verbs.run import read_options
from wukong.errors import InputError

Documents = list[dict[str, Any]]


def settings(**given: Any) -> ControllerInstallation:
    return make_installation(**{"image": "wukong:test", "components": (VM,), **given})


def the(documents: Documents, kind: str) -> dict[str, Any]:
    (document,) = [document for document in documents if document["kind"] == kind]
    return document


def test_the_kind_and_the_namespace_come_before_what_needs_them() -> None:
    documents = build_manifests(settings())
    assert [document["kind"] for document in documents] == [
        *("CustomResourceDefinition", "Namespace", "ResourceQuota", "ServiceAccount"),
        *("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
        *("Deployment", "PodDisruptionBudget", "NetworkPolicy"),
    ]
    assert documents[0]["metadata"]["name"] == "wukongs.vm.novasphere.dev"


def test_wukong_run_understands_the_command_line() -> None:
    options = ["--max-priority=500", "--priority-namespaces=ops,infra", "--resource-affinity=extender"]
    documents = build_manifests(settings(components=(VM, COMPONENTS["load"]), options=options))
    (container,) = the(documents, "Deployment")["spec"]["template"]["spec"]["containers"]
    verb, *words = container["args"]
    config = read_options(run.make_context(verb, words), None)
    assert config.components == (VM, COMPONENTS["load"])
    assert config.options["vm"] == VmOptions(max_priority=500, priority_namespaces=("ops", "infra"))
    assert config.options["wukongs"] == WukongOptions(resource_affinity="extender")
    assert config.run.lease == "wukong-system/wukong-vm"


def test_no_right_is_a_wildcard_and_secrets_are_not_among_them() -> None:
    for kind in ("ClusterRole", "Role"):
        for rule in the(build_manifests(settings()), kind)["rules"]:
            assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
            assert "secrets" not in rule["resources"]


def test_what_is_written_is_what_may_be_written() -> None:
    writes = {
        f"{permission.resource}.{permission.group}": [
            verb for verb in permission.verbs if verb not in ("list", "watch")
        ]
        for permission in list_permissions([VM])
        if not permission.in_own_namespace
    }
    assert {resource: verbs for resource, verbs in writes.items() if verbs} == {
        "wukongs/status.vm.novasphere.dev": ["patch"],
        "virtualmachines.kubevirt.io": ["create", "patch", "delete"],
        "virtualmachineinstances.kubevirt.io": ["delete"],
        "virtualmachineinstancemigrations.kubevirt.io": ["create"],
        "priorityclasses.scheduling.k8s.io": ["create", "patch", "delete"],
        "events.events.k8s.io": ["create", "patch"],
    }


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"namespace": "kube-system"}, "--namespace: expected one of Wukong's own"),
        ({"memory": "2Gi"}, "--memory-limit: expected no less than is requested"),
        ({"components": (COMPONENTS["load"],)}, "--components: expected vm among them, got load. Add it."),
    ],
)
def test_what_cannot_be_installed_is_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as caught:
        check_installation(settings(**given))
    assert problem in str(caught.value)


def test_a_prefix_that_no_label_can_have_is_refused() -> None:
    assert list(find_problems(LoadOptions(), str)) == []
    (problem,) = find_problems(LoadOptions(free_label_prefix="free novasphere"), lambda field: f"--{field}")
    assert problem.startswith("--free_label_prefix: expected a domain")
