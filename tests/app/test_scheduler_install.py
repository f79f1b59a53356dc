"""What is installed for the component scheduler, document by document, and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from wukong.api.profile import default_profile
from wukong.app.component import list_permissions
from wukong.app.components import COMPONENTS
from wukong.app.components.scheduler import SCHEDULER, SchedulerOptions
from wukong.app.components.scheduler.install import SchedulerInstallation, build_manifests, check_installation
from wukong.app.components.scheduler.options import name_lease, read_profiles
from wukong.app.run_config import read_run_config
from wukong.cli.verbs.run import command as run
from wukong.cli.verbs.run import read_options
from wukong.errors import InputError

Documents = list[dict[str, Any]]
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
PACKING = "pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}]"
ONE = f"{HEAD}profiles:\n- {{schedulerName: packing, {PACKING}}}\n"
TWO = f"{ONE}- {{schedulerName: other}}\n"


def settings(names: tuple[str, ...] = ("wukong-scheduler",), config: str = "", **given: Any) -> SchedulerInstallation:
    options = SchedulerOptions(names, config)
    return SchedulerInstallation(**{"image": "wukong:test", "components": (SCHEDULER,), "scheduler": options, **given})


def the(documents: Documents, kind: str) -> dict[str, Any]:
    (document,) = [document for document in documents if document["kind"] == kind]
    return document


def test_the_kinds_and_the_namespace_come_before_what_needs_them() -> None:
    documents = build_manifests(settings())
    assert [document["kind"] for document in documents] == [
        *("CustomResourceDefinition", "CustomResourceDefinition", "Namespace", "ResourceQuota", "ServiceAccount"),
        *("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
        *("Deployment", "PodDisruptionBudget", "NetworkPolicy"),
    ]


def test_its_own_pods_wait_for_the_default_scheduler_and_never_for_it() -> None:
    assert "schedulerName" not in the(build_manifests(settings()), "Deployment")["spec"]["template"]["spec"]


def test_wukong_run_understands_the_command_line_and_the_lease_is_that_of_its_names(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(ONE)
    installed = settings(("a", "b"), str(config), options=["--default-strategy=none"])
    check_installation(installed)
    documents = build_manifests(installed)
    pod = the(documents, "Deployment")["spec"]["template"]["spec"]
    (container,), (volume,) = pod["containers"], pod["volumes"]
    verb, *words = container["args"]
    read = read_options(run.make_context(verb, words), None)
    path = "/etc/wukong/scheduler/scheduler-config.yaml"
    assert read.options["scheduler"] == SchedulerOptions(("a", "b"), path)
    assert read.run.lease == "wukong-system/wukong-own-scheduler-a-b"
    (rule,) = [rule for rule in the(documents, "Role")["rules"] if "resourceNames" in rule]
    assert rule["resourceNames"] == ["wukong-own-scheduler-a-b"]
    assert container["volumeMounts"][0]["mountPath"] == str(Path(path).parent)
    assert the(documents, "ConfigMap")["metadata"]["name"] == volume["configMap"]["name"]
    assert the(documents, "ConfigMap")["data"] == {Path(path).name: ONE}


def test_schedulers_of_other_names_have_other_leases_and_a_lease_that_is_named_is_taken() -> None:
    names = [("wukong-scheduler",), ("a",), ("a", "b"), ("b", "a")]
    leases = [name_lease(SchedulerOptions(entry)) for entry in names]
    assert leases == ["wukong-own-scheduler", "wukong-own-scheduler-a", *["wukong-own-scheduler-a-b"] * 2]
    assert len(name_lease(SchedulerOptions(("x" * 300,)))) <= 253
    document = {"components": ["scheduler"]}
    assert read_run_config({}, document, "run.yaml").run.lease == "default/wukong-own-scheduler"
    assert read_run_config({}, {**document, "lease": "a/b"}, "run.yaml").run.lease == "a/b"
    assert read_run_config({("", "lease"): "c/d"}, document, "run.yaml").run.lease == "c/d"
    assert read_run_config({}, {"components": ["load"]}, "run.yaml").run.lease == "default/wukong"


def test_what_is_written_is_what_may_be_written() -> None:
    writes = {
        f"{permission.resource}.{permission.group}": [
            verb for verb in permission.verbs if verb not in ("list", "watch")
        ]
        for permission in list_permissions([SCHEDULER])
        if not permission.in_own_namespace
    }
    assert {resource: verbs for resource, verbs in writes.items() if verbs} == {
        "pods.": ["get", "delete"],
        "pods/binding.": ["create"],
        "pods/status.": ["patch"],
        "persistentvolumes.": ["patch"],
        "persistentvolumeclaims.": ["patch"],
        "events.events.k8s.io": ["create", "patch"],
    }


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"namespace": "kube-system"}, "--namespace: expected one of Wukong's own"),
        ({"components": (COMPONENTS["load"],)}, "--components: expected scheduler among them, got load. Add it."),
        ({"names": ("default-scheduler",)}, "--scheduler-name: expected names of its own, got default-scheduler"),
        ({"names": ()}, "--scheduler-name: expected a name such as wukong-scheduler, got none."),
    ],
)
def test_what_cannot_be_installed_is_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as caught:
        check_installation(settings(**given))
    assert problem in str(caught.value)


def test_a_configuration_that_cannot_be_read_is_no_installation(tmp_path: Path) -> None:
    broken = tmp_path / "config.yaml"
    broken.write_text(f"{HEAD}profiles: 7\n", "utf-8")
    for path in (broken, tmp_path / "missing.yaml"):
        with pytest.raises(InputError, match=path.name):
            check_installation(replace(settings(), scheduler=SchedulerOptions(("packing",), str(path))))


@pytest.mark.parametrize(
    ("text", "names", "strategies"),
    [
        (ONE, ("packing",), ["MostAllocated"]),
        (ONE, ("another",), ["MostAllocated"]),  # the only one there is
        (TWO, ("packing", "other"), ["MostAllocated", "LeastAllocated"]),
        (f"{HEAD}profiles: []\n", ("packing",), ["LeastAllocated"]),
    ],
)
def test_each_name_gets_its_profile(tmp_path: Path, text: str, names: tuple[str, ...], strategies: list[str]) -> None:
    (tmp_path / "config.yaml").write_text(text)
    profiles = read_profiles(SchedulerOptions(names, str(tmp_path / "config.yaml")))
    assert [profiles[name].fit.strategy for name in names] == strategies


def test_without_a_configuration_every_name_goes_by_kube_schedulers_own() -> None:
    assert read_profiles(SchedulerOptions(("a",))) == {}
    assert default_profile().fit.strategy == "LeastAllocated"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (TWO, "$.profiles: none is called third or default-scheduler among packing, other. Add one."),
        (f"{HEAD}extenders: [{{urlPrefix: 'http://a', filterVerb: filter}}]\n", "our scheduler asks no extenders"),
    ],
)
def test_a_configuration_that_does_not_say_what_to_do_is_refused_by_its_name(
    tmp_path: Path, text: str, problem: str
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_profiles(SchedulerOptions(("third",), str(path)))
    assert problem in str(caught.value)
    assert str(path) in str(caught.value)
