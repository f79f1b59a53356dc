"""Pod Security Standards check by check: what is named, of which containers, and from which minor on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from wukong.embedded.store.limits.pod_security import Standard, find_refusal, standard_of
from wukong.ports import Document

GOOD: Document = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
KINDS_OF_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"


def refusal(level: str, *contexts: Document, version: str = "latest", **spec: Any) -> str:
    """Why a pod with containers a, b, … of these securityContexts is refused, without the beginning of the sentence."""
    containers = [{"name": name, "securityContext": context} for name, context in zip("abc", contexts, strict=False)]
    return refusal_of({"spec": {"containers": containers, **spec}}, level, version)


def refusal_of(pod: Document, level: str, version: str = "latest") -> str:
    text = find_refusal(Standard(level, version), pod)
    return text.removeprefix(f'violates PodSecurity "{level}:{version}": ')


def baseline(*contexts: Document, **spec: Any) -> str:
    return refusal("baseline", *contexts, **spec)


def restricted(*changes: Document, **spec: Any) -> str:
    return refusal("restricted", *({**GOOD, **change} for change in changes or ({},)), **spec)


@pytest.mark.parametrize("field", KINDS_OF_CONTAINERS)
def test_containers_of_every_kind_are_looked_at(field: str) -> None:
    pod = {"spec": {field: [{"name": "x", "securityContext": {"privileged": True}}]}}
    assert refusal_of(pod, "baseline") == 'privileged (container "x" must not set securityContext.privileged=true)'


def test_the_privileged_level_refuses_nothing() -> None:
    assert refusal("privileged", {"privileged": True}, hostNetwork=True) == ""


def test_several_containers_are_named_together() -> None:
    assert baseline({"privileged": True}, {}, {"privileged": True}) == (
        'privileged (containers "a", "c" must not set securityContext.privileged=true)'
    )


def test_baseline_allows_the_default_capabilities_and_names_others() -> None:
    default = ["AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"]
    default += ["SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"]
    assert baseline({"capabilities": {"add": default}}) == ""
    contexts: tuple[Document, ...] = (
        {"capabilities": {"add": ["SYS_TIME", "KILL"]}},
        {},
        {"capabilities": {"add": ["NET_RAW"]}},
    )
    assert baseline(*contexts) == (
        'non-default capabilities (containers "a", "c" must not include "NET_RAW", "SYS_TIME" in '
        "securityContext.capabilities.add)"
    )


@pytest.mark.parametrize("field", ["hostNetwork", "hostPID", "hostIPC"])
def test_each_namespace_of_the_host_is_refused(field: str) -> None:
    assert baseline({}, **{field: True}) == f"host namespaces ({field}=true)"
    assert baseline({}, **{field: False}) == ""


def test_volumes_of_the_host_are_named() -> None:
    volumes = [{"name": "x", "hostPath": {"path": "/"}}, {"name": "y", "emptyDir": {}}, {"name": "z", "hostPath": {}}]
    assert baseline({}, volumes=volumes) == 'hostPath volumes (volumes "x", "z")'
    assert baseline({}, volumes=volumes[:2]) == 'hostPath volumes (volume "x")'
    assert baseline({}, volumes=volumes[1:2]) == ""


def test_host_ports_are_named_with_their_containers() -> None:
    def with_ports(*ports: list[int]) -> str:
        containers = [
            {"name": name, "ports": [{"containerPort": 1, "hostPort": port} for port in numbers]}
            for name, numbers in zip("ab", ports, strict=False)
        ]
        return refusal_of({"spec": {"containers": containers}}, "baseline")

    assert with_ports([0]) == ""
    assert with_ports([80]) == 'hostPort (container "a" uses hostPort 80)'
    assert with_ports([80], []) == 'hostPort (container "a" uses hostPort 80)'
    assert with_ports([80, 443], [80]) == 'hostPort (containers "a", "b" use hostPorts 443, 80)'


def handlers() -> Iterator[Document]:
    for action in ("httpGet", "tcpSocket"):
        for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
            yield {probe: {action: {"port": 80, "host": "h"}}}
        for hook in ("postStart", "preStop"):
            yield {"lifecycle": {hook: {action: {"port": 80, "host": "h"}}}}


@pytest.mark.parametrize("handler", list(handlers()), ids=str)
def test_a_handler_that_asks_another_host_is_refused_since_1_34(handler: Document) -> None:
    pod = {"spec": {"containers": [{"name": "a", **handler}, {"name": "b"}]}}
    wanted = 'probe or lifecycle host (container "a" uses probe or lifecycle host "h")'
    assert [refusal_of(pod, "baseline", version) for version in ("v1.33", "v1.34", "latest")] == ["", wanted, wanted]
    assert refusal_of({"spec": {"containers": [{"name": "b"}]}}, "baseline") == ""


def test_hosts_of_handlers_are_named_together() -> None:
    probe = {"livenessProbe": {"httpGet": {"host": "y"}}, "lifecycle": {"preStop": {"httpGet": {"host": "x"}}}}
    pod = {
        "spec": {"containers": [{"name": "b", **probe}, {"name": "a", "livenessProbe": {"tcpSocket": {"host": "y"}}}]}
    }
    assert refusal_of(pod, "baseline") == (
        'probe or lifecycle host (containers "a", "b" use probe or lifecycle hosts "x", "y")'
    )


def test_an_unmasked_proc_needs_users_of_its_own_and_then_only_baseline_allows_it() -> None:
    unmasked = {"procMount": "Unmasked"}
    wanted = 'procMount (container "a" must not set securityContext.procMount to "Unmasked")'
    assert baseline({"procMount": "Default"}) == ""
    assert baseline(unmasked) == wanted
    assert baseline(unmasked, hostUsers=True) == wanted
    assert baseline(unmasked, hostUsers=False) == ""
    assert refusal("baseline", unmasked, hostUsers=False, version="v1.34") == wanted
    assert restricted(unmasked, hostUsers=False) == wanted


@pytest.mark.parametrize(
    ("options", "detail"),
    [
        ({}, ""),
        *(({"type": name}, "") for name in ("", "container_t", "container_init_t", "container_kvm_t")),
        ({"type": "container_engine_t"}, ""),
        ({"level": "s0"}, ""),
        ({"type": "spc_t"}, 'type "spc_t"'),
        ({"user": "u"}, "user may not be set"),
        ({"role": "r"}, "role may not be set"),
        ({"type": "spc_t", "user": "u", "role": "r"}, 'type "spc_t"; user may not be set; role may not be set'),
    ],
    ids=str,
)
def test_selinux_options_that_leave_the_container_are_refused(options: Document, detail: str) -> None:
    def wanted(setter: str) -> str:
        text = f"seLinuxOptions ({setter} set forbidden securityContext.seLinuxOptions: {detail})"
        return text if detail else ""

    context = {"seLinuxOptions": options}
    assert baseline(context) == wanted('container "a"')
    assert baseline({}, securityContext=context) == wanted("pod")
    assert baseline({}, context, securityContext=context) == wanted('pod and container "b"')


def test_names_that_became_safe_are_refused_by_older_standards() -> None:
    engine = {"seLinuxOptions": {"type": "container_engine_t"}}
    assert "container_engine_t" in refusal("baseline", engine, version="v1.30")
    assert refusal("baseline", engine, version="v1.31") == ""
    since = {
        **dict.fromkeys(("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies"), 0),
        **dict.fromkeys(("net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start"), 0),
        "net.ipv4.ip_local_reserved_ports": 27,
        **{f"net.ipv4.tcp_{name}": 29 for name in ("keepalive_time", "fin_timeout", "keepalive_intvl")},
        "net.ipv4.tcp_keepalive_probes": 29,
        **{f"net.ipv4.tcp_{name}": 32 for name in ("rmem", "wmem")},
    }
    for name, minor in since.items():
        context = {"sysctls": [{"name": name, "value": "1"}]}
        assert refusal("baseline", {}, version=f"v1.{minor}", securityContext=context) == "", name
        if minor:
            older = refusal("baseline", {}, version=f"v1.{minor - 1}", securityContext=context)
            assert older == f"forbidden sysctls ({name})"


def test_unsafe_sysctls_are_named_in_their_order() -> None:
    sysctls = [{"name": name} for name in ("kernel.sem", "kernel.shm_rmid_forced", "fs.mqueue.a")]
    assert baseline({}, securityContext={"sysctls": sysctls}) == "forbidden sysctls (kernel.sem, fs.mqueue.a)"


@pytest.mark.parametrize("type_", ["RuntimeDefault", "Localhost"])
def test_profiles_of_the_runtime_and_of_the_node_are_allowed(type_: str) -> None:
    for field in ("seccompProfile", "appArmorProfile"):
        assert baseline({field: {"type": type_}}, securityContext={field: {"type": type_}}) == ""


def test_a_pod_without_a_profile_is_refused_with_who_said_so() -> None:
    loose = {"seccompProfile": {"type": "Unconfined"}}
    text = 'seccompProfile ({} must not set securityContext.seccompProfile.type to "Unconfined")'
    assert baseline(loose) == text.format('container "a"')
    assert baseline({}, loose, securityContext=loose) == text.format('pod and container "b"')
    armour = {"appArmorProfile": {"type": "Unconfined"}}
    text = 'forbidden AppArmor profile ({} must not set AppArmor profile type to "Unconfined")'
    assert baseline({}, armour, securityContext=armour) == text.format('pod and container "b"')


def test_app_armor_annotations_are_read_by_their_values() -> None:
    def annotated(**annotations: str) -> str:
        entries = {f"{APP_ARMOR}{name}": value for name, value in annotations.items()}
        return refusal_of({"metadata": {"annotations": entries}, "spec": {"containers": [{"name": "a"}]}}, "baseline")

    assert annotated(a="", b="runtime/default", c="localhost/mine") == ""
    assert annotated(a="unconfined") == (
        f'forbidden AppArmor profile (annotation must not set AppArmor profile type to "{APP_ARMOR}a="unconfined"")'
    )
    assert "forbidden AppArmor profiles (annotations must not" in annotated(a="unconfined", b="other")


def test_before_1_19_seccomp_was_an_annotation() -> None:
    pod_name, container_name = (f"{prefix}seccomp.security.alpha.kubernetes.io/" for prefix in ("", "container."))

    def annotated(**annotations: str) -> str:
        names = {"pod": f"{pod_name}pod"}
        entries = {names.get(name, f"{container_name}{name}"): value for name, value in annotations.items()}
        pod = {"metadata": {"annotations": entries}, "spec": {"containers": [{"name": "a"}, {"name": "b"}]}}
        assert refusal_of(pod, "baseline", "v1.19") == ""
        return refusal_of(pod, "baseline", "v1.18")

    assert annotated(pod="runtime/default", a="docker/default", b="localhost/mine", gone="unconfined") == ""
    assert annotated(pod="unconfined") == f'seccompProfile (forbidden annotation {pod_name}pod="unconfined")'
    assert annotated(a="unconfined", b="other") == (
        f'seccompProfile (forbidden annotations {container_name}a="unconfined", {container_name}b="other")'
    )


def test_a_process_of_a_windows_host_is_refused() -> None:
    context = {"windowsOptions": {"hostProcess": True}}
    text = "hostProcess ({} must not set securityContext.windowsOptions.hostProcess=true)"
    assert baseline(context, {"windowsOptions": {"hostProcess": False}}) == text.format('container "a"')
    assert baseline({}, securityContext=context) == text.format("pod")


def test_restricted_wants_no_escalation_since_1_8_but_of_windows() -> None:
    change = {"allowPrivilegeEscalation": True}
    text = "allowPrivilegeEscalation != false ({} must set securityContext.allowPrivilegeEscalation=false)"
    assert restricted(change, {}, change) == text.format('containers "a", "c"')
    assert "allowPrivilegeEscalation" not in restricted(change, version="v1.7")
    assert "allowPrivilegeEscalation" in restricted(change, version="v1.8")


def test_restricted_asks_a_windows_pod_for_nothing_it_does_not_know_since_1_25() -> None:
    bare = {"runAsNonRoot": True}
    windows: Document = {"os": {"name": "windows"}}
    assert refusal("restricted", bare, **windows) == ""
    for version, spec in (("v1.24", windows), ("v1.25", {"os": {"name": "linux"}})):
        text = refusal("restricted", bare, version=version, **spec)
        assert [word in text for word in ("allowPrivilegeEscalation", "capabilities", "seccompProfile")] == [True] * 3


def test_restricted_wants_all_capabilities_dropped_and_at_most_one_added() -> None:
    keeping, adding = {"capabilities": {"drop": ["KILL"]}}, {"capabilities": {"drop": ["ALL"], "add": ["KILL"]}}
    drop = 'container "{}" must set securityContext.capabilities.drop=["ALL"]'
    add = 'container "{}" must not include "KILL" in securityContext.capabilities.add'
    assert restricted({"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}) == ""
    assert restricted(keeping, {}) == f"unrestricted capabilities ({drop.format('a')})"
    assert restricted({}, adding) == f"unrestricted capabilities ({add.format('b')})"
    assert restricted(keeping, adding) == f"unrestricted capabilities ({drop.format('a')}; {add.format('b')})"
    assert restricted(keeping, version="v1.21") == ""
    unusual = {"capabilities": {"add": ["SYS_TIME"]}}
    assert "non-default capabilities" in restricted(unusual, version="v1.21")
    assert "non-default capabilities" not in restricted(unusual, version="v1.22")


def test_restricted_knows_the_volumes_that_hold_nothing_of_the_node() -> None:
    safe = ["configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected"]
    assert restricted(volumes=[{"name": name, name: {}} for name in [*safe, "secret"]]) == ""
    others = ["hostPath", "gcePersistentDisk", "awsElasticBlockStore", "gitRepo", "nfs", "iscsi", "glusterfs", "rbd"]
    others += ["flexVolume", "cinder", "cephfs", "flocker", "fc", "azureFile", "vsphereVolume", "quobyte", "azureDisk"]
    for name in [*others, "photonPersistentDisk", "portworxVolume", "scaleIO", "storageos"]:
        wanted = f'restricted volume types (volume "v" uses restricted volume type "{name}")'
        assert restricted(volumes=[{"name": "v", name: {}}]) == wanted
    two = [{"name": "v", "rbd": {}}, {"name": "w", "nfs": {}}, {"name": "x"}]
    assert restricted(volumes=two[:2]) == (
        'restricted volume types (volumes "v", "w" use restricted volume types "nfs", "rbd")'
    )
    assert 'type "unknown"' in restricted(volumes=two[2:])


def test_restricted_wants_no_root_where_the_pod_or_all_containers_say_so() -> None:
    silent, root = {"runAsNonRoot": None}, {"runAsNonRoot": False}
    lacks = "runAsNonRoot != true (pod or {} must set securityContext.runAsNonRoot=true)"
    says = "runAsNonRoot != true ({} must not set securityContext.runAsNonRoot=false)"
    assert restricted(silent, securityContext={"runAsNonRoot": True}) == ""
    assert restricted(silent, {}) == lacks.format('container "a"')
    assert restricted(root, securityContext={"runAsNonRoot": True}) == says.format('container "a"')
    assert restricted(silent, root, securityContext=root) == says.format('pod and container "b"')
    assert restricted(silent, hostUsers=False) == ""
    assert restricted(silent, hostUsers=False, version="v1.34") == lacks.format('container "a"')


def test_restricted_refuses_the_user_0_since_1_23_unless_users_are_its_own() -> None:
    assert restricted({"runAsUser": 1}, securityContext={"runAsUser": 1}) == ""
    assert restricted({}, securityContext={"runAsUser": 0}) == "runAsUser=0 (pod must not set runAsUser=0)"
    assert restricted({"runAsUser": 0}, version="v1.22") == ""
    assert restricted({"runAsUser": 0}, version="v1.23") == 'runAsUser=0 (container "a" must not set runAsUser=0)'


def test_restricted_wants_a_seccomp_profile_of_the_pod_or_of_all_containers() -> None:
    none = {"seccompProfile": None}
    lacks = 'pod or container "b" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    assert restricted({}, none) == f"seccompProfile ({lacks})"
    assert restricted(none, securityContext={"seccompProfile": {"type": "Localhost"}}) == ""
    assert restricted(none, version="v1.18") == ""
    loose = {"seccompProfile": {"type": "Unconfined"}}
    says = 'container "a" must not set securityContext.seccompProfile.type to "Unconfined"'
    assert restricted(loose, none) == f"seccompProfile ({says})"


@pytest.mark.parametrize(
    ("labels", "standard"),
    [
        ({}, Standard("privileged", "latest")),
        ({"enforce-version": "v1.30"}, Standard("privileged", "latest")),
        *(({"enforce": level}, Standard(level, "latest")) for level in ("privileged", "baseline", "restricted")),
        ({"enforce": "baseline", "enforce-version": "v1.30"}, Standard("baseline", "v1.30")),
        *(({"enforce": "baseline", "enforce-version": text}, Standard("baseline")) for text in ("1", "v1.01")),
        ({"warn": "restricted", "audit": "restricted"}, Standard("privileged", "latest")),
    ],
)  # fmt: skip
def test_a_namespace_says_by_its_labels_what_it_enforces(labels: Document, standard: Standard) -> None:
    entries = {f"pod-security.kubernetes.io/{name}": value for name, value in labels.items()}
    assert standard_of({"metadata": {"labels": entries}}) == standard
    assert standard_of(None) == Standard("privileged", "latest")


@pytest.mark.parametrize(("version", "minor"), [("v1.0", 0), ("v1.30", 30), ("v1.99", 35), ("latest", 35)])
def test_a_version_means_the_checks_of_its_minor_and_a_later_one_those_of_today(version: str, minor: int) -> None:
    assert Standard("baseline", version).minor == minor
