"""Pod specs that the API server refuses: names, hosts, gates, security, resources; by the place of what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.validation.problem_tables import CONTAINER, of_container, of_pod, places
from wukong.embedded.store.validation.pods.spec import find_template_problems
from wukong.ports import Document


def context(**fields: Any) -> list[str]:
    return [place.removeprefix("securityContext.") for place in of_pod(securityContext=fields)]


def own_context(**fields: Any) -> list[str]:
    return [place.removeprefix("securityContext.") for place in of_container(securityContext=fields)]


def resources(requests: Document | None = None, limits: Document | None = None, **fields: Any) -> list[str]:
    found = of_container(resources={"requests": requests or {}, "limits": limits or {}, **fields})
    return [place.removeprefix("resources.") for place in found]


@pytest.mark.parametrize(
    ("field", "choices", "other"),
    [
        ("restartPolicy", ("Always", "OnFailure", "Never"), "Often"),
        ("dnsPolicy", ("ClusterFirstWithHostNet", "ClusterFirst", "Default"), "Best"),
        ("preemptionPolicy", ("PreemptLowerPriority", "Never"), "Always"),
    ],
)
def test_a_field_takes_one_of_its_words(field: str, choices: tuple[str, ...], other: str) -> None:
    assert [choice for choice in choices if of_pod(**{field: choice})] == []
    assert of_pod(**{field: other}) == [f"{field}: Unsupported value"]


@pytest.mark.parametrize("field", ["serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"])
def test_what_names_an_object_is_a_subdomain(field: str) -> None:
    assert of_pod(**{field: "a.b-1"}) == of_pod(**{field: ""}) == []
    assert of_pod(**{field: "a_b"}) == [f"{field}: Invalid value"]


@pytest.mark.parametrize("field", ["hostname", "subdomain"])
def test_the_name_of_a_host_is_a_label_of_at_most_63_characters(field: str) -> None:
    assert of_pod(**{field: "a" * 63}) == of_pod(**{field: "a"}) == []
    for name in ("a.b", "A", "-a", "a-", "a" * 64):
        assert of_pod(**{field: name}) == [f"{field}: Invalid value"], name


def test_aliases_of_hosts_have_an_address_and_names() -> None:
    assert of_pod(hostAliases=[{"ip": "10.0.0.1", "hostnames": ["a.b"]}, {"ip": "2001:db8::1"}]) == []
    assert of_pod(hostAliases=[{"ip": "home"}]) == ["hostAliases[0].ip: Invalid value"]
    assert of_pod(hostAliases=[{"hostnames": []}]) == ["hostAliases[0].ip: Invalid value"]
    bad = [{"ip": "10.0.0.1", "hostnames": ["a", "A_"]}]
    assert of_pod(hostAliases=bad) == ["hostAliases[0].hostnames[1]: Invalid value"]
    assert of_pod(imagePullSecrets=[{"name": "a"}, {}]) == ["imagePullSecrets[1].name: Required value"]


def test_a_deadline_is_a_positive_number_of_32_bits() -> None:
    for seconds, is_valid in ((1, True), (2**31 - 1, True), (0, False), (2**31, False)):
        assert of_pod(activeDeadlineSeconds=seconds) == ([] if is_valid else ["activeDeadlineSeconds: Invalid value"])


def test_name_servers_are_addresses_at_most_three_and_needed_where_the_policy_is_none() -> None:
    three = ["10.0.0.1", "10.0.0.2", "::1"]
    assert of_pod(dnsPolicy="None", dnsConfig={"nameservers": three}) == []
    assert of_pod(dnsPolicy="None") == ["dnsConfig: Required value"]
    assert of_pod(dnsPolicy="None", dnsConfig={"searches": ["a"]}) == ["dnsConfig.nameservers: Required value"]
    assert of_pod(dnsPolicy="Default", dnsConfig={"searches": ["a"]}) == []
    assert of_pod(dnsConfig={"nameservers": [*three, "10.0.0.4"]}) == ["dnsConfig.nameservers: Invalid value"]
    assert of_pod(dnsConfig={"nameservers": ["10.0.0.1", "one"]}) == ["dnsConfig.nameservers[1]: Invalid value"]
    assert of_pod(dnsConfig={"options": [{"name": "a"}, {"value": "b"}]}) == ["dnsConfig.options[1]: Required value"]


def test_gates_have_names_of_labels_and_those_of_scheduling_are_unique() -> None:
    assert of_pod(readinessGates=[{"conditionType": "example.com/a"}], schedulingGates=[{"name": "a.com/b"}]) == []
    assert of_pod(readinessGates=[{"conditionType": "a b"}]) == ["readinessGates[0].conditionType: Invalid value"]
    assert of_pod(schedulingGates=[{"name": "a b"}]) == ["schedulingGates[0]: Invalid value"]
    assert of_pod(schedulingGates=[{"name": "a"}, {"name": "a"}]) == ["schedulingGates[1]: Duplicate value"]


def test_on_the_network_of_the_host_a_port_is_the_same_inside_and_outside() -> None:
    def ports(number: int, **fields: Any) -> list[str]:
        container = {**CONTAINER, "ports": [{"containerPort": 80, "hostPort": number}]}
        return of_pod(containers=[container], **fields)

    assert ports(81) == ports(80, hostNetwork=True) == []
    assert ports(81, hostNetwork=True) == ["containers[0].ports[0].hostPort: Invalid value"]
    first = {**CONTAINER, "name": "first", "ports": [{"containerPort": 1}, {"containerPort": 2, "hostPort": 3}]}
    found = of_pod(initContainers=[first], hostNetwork=True)
    assert found == ["initContainers[0].ports[1].hostPort: Invalid value"]
    assert of_pod(hostnameOverride="a") == []
    assert of_pod(hostnameOverride="a", hostNetwork=True) == ["hostnameOverride: Forbidden"]


def test_users_of_its_own_exclude_the_namespaces_of_the_host() -> None:
    shared = {"hostNetwork": True, "hostPID": True, "hostIPC": True}
    assert of_pod(hostUsers=False) == of_pod(hostUsers=True, **shared) == of_pod(**shared) == []
    assert of_pod(hostUsers=False, **shared) == ["hostNetwork: Forbidden", "HostPID: Forbidden", "HostIPC: Forbidden"]


def test_claims_of_resources_have_a_name_and_one_source() -> None:
    a = {"name": "a", "resourceClaimName": "x"}
    assert of_pod(resourceClaims=[a, {"name": "b", "resourceClaimTemplateName": "x"}]) == []
    assert of_pod(resourceClaims=[{"resourceClaimName": "x"}]) == ["resourceClaims[0].name: Required value"]
    assert of_pod(resourceClaims=[{**a, "name": "A"}]) == ["resourceClaims[0].name: Invalid value"]
    assert of_pod(resourceClaims=[a, a]) == ["resourceClaims[1].name: Duplicate value"]
    assert of_pod(resourceClaims=[{**a, "resourceClaimTemplateName": "x"}]) == ["resourceClaims[0]: Invalid value"]


def test_a_container_uses_the_claims_of_its_pod_each_once() -> None:
    def claims(*entries: Document) -> list[str]:
        container = {**CONTAINER, "resources": {"claims": list(entries)}}
        found = of_pod(containers=[container], resourceClaims=[{"name": "a", "resourceClaimName": "x"}])
        return [place.removeprefix("containers[0].resources.") for place in found]

    assert claims({"name": "a"}) == claims({"name": "a", "request": "r"}, {"name": "a", "request": "s"}) == []
    assert claims({"name": "gone"}) == ["claims[0]: Not found"]
    assert claims({}) == ["claims[0]: Required value"]
    assert claims({"name": "a"}, {"name": "a"}) == ["claims[1]: Duplicate value"]
    assert claims({"name": "a"}, {"name": "a", "request": "r"}) == ["claims[1]: Duplicate value"]
    assert claims({"name": "a", "request": "r"}, {"name": "a", "request": "r"}) == ["claims[1]: Duplicate value"]


def test_a_template_has_labels_and_no_ephemeral_containers() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
    assert list(find_template_problems(template, "t")) == []
    labelled = {**template, "metadata": {"labels": {"a b": "c", "d": "e f"}}}
    assert places(find_template_problems(labelled, "t")) == ["t.labels: Invalid value"] * 2
    debugged = {**template, "spec": {"containers": [CONTAINER], "ephemeralContainers": [CONTAINER]}}
    assert places(find_template_problems(debugged, "t")) == ["t.spec.ephemeralContainers: Forbidden"]


# Security ----------------------------------------------------------------------------------------------------------


def test_users_and_groups_are_numbers_of_31_bits() -> None:
    for number, is_valid in ((0, True), (2**31 - 1, True), (-1, False), (2**31, False)):
        for field in ("runAsUser", "runAsGroup"):
            wanted = [] if is_valid else [f"{field}: Invalid value"]
            assert (context(**{field: number}), own_context(**{field: number})) == (wanted, wanted)
        assert context(fsGroup=number) == ([] if is_valid else ["fsGroup: Invalid value"])
        assert context(supplementalGroups=[1, number]) == ([] if is_valid else ["supplementalGroups[1]: Invalid value"])


def test_policies_of_a_security_context_take_one_of_their_words() -> None:
    allowed = {
        "fsGroupChangePolicy": ("Always", "OnRootMismatch"),
        "supplementalGroupsPolicy": ("Merge", "Strict"),
        "seLinuxChangePolicy": ("Recursive",),
    }
    for field, words in allowed.items():
        assert [word for word in words if context(**{field: word})] == []
        assert context(**{field: "Other"}) == [f"{field}: Unsupported value"]


def test_processes_are_shared_within_the_pod_or_with_the_host() -> None:
    assert of_pod(shareProcessNamespace=True) == of_pod(hostPID=True) == []
    assert of_pod(shareProcessNamespace=True, hostPID=True) == ["securityContext.shareProcessNamespace: Invalid value"]


def test_a_sysctl_has_a_name_of_its_own_and_none_of_the_host_network() -> None:
    def sysctls(*names: str, **fields: Any) -> list[str]:
        entries = [{"name": name, "value": "1"} for name in names]
        return of_pod(securityContext={"sysctls": entries}, **fields)

    here = "securityContext.sysctls"
    assert sysctls("kernel.shm_rmid_forced", "net/ipv4/a-b", "a" * 253) == sysctls("net.a") == []
    assert sysctls("") == [f"{here}[0].name: Required value"]
    for name in ("A", "a..b", ".a", "a b", "a" * 254):
        assert sysctls(name) == [f"{here}[0].name: Invalid value"], name
    assert sysctls("a.b", "a.b") == [f"{here}[1].name: Duplicate value"]
    assert sysctls("kernel.a", "net.a", hostNetwork=True) == [f"{here}[1].name: Invalid value"]


def test_a_proc_that_is_not_masked_needs_users_of_its_own() -> None:
    unmasked = {**CONTAINER, "securityContext": {"procMount": "Unmasked"}}
    assert own_context(procMount="Default") == of_pod(containers=[unmasked], hostUsers=False) == []
    assert of_pod(containers=[unmasked]) == ["containers[0].securityContext.procMount: Invalid value"]
    assert own_context(procMount="All") == ["procMount: Unsupported value"]


def test_who_is_privileged_can_escalate() -> None:
    place = ["securityContext: Invalid value"]
    admin = {"capabilities": {"add": ["CAP_SYS_ADMIN"]}}
    assert own_context(allowPrivilegeEscalation=False) == own_context(privileged=True, **admin) == []
    assert own_context(allowPrivilegeEscalation=True, privileged=True, **admin) == []
    assert own_context(allowPrivilegeEscalation=False, privileged=True) == place
    assert own_context(allowPrivilegeEscalation=False, **admin) == place
    assert own_context(allowPrivilegeEscalation=False, capabilities={"add": ["KILL"]}) == []


@pytest.mark.parametrize(("field", "reason"), [("seccompProfile", "Invalid value"), ("appArmorProfile", "Forbidden")])
def test_only_a_profile_of_the_node_has_a_name(field: str, reason: str) -> None:
    for find in (context, own_context):
        assert find(**{field: {"type": "RuntimeDefault"}}) == find(**{field: {"type": "Unconfined"}}) == []
        assert find(**{field: {"type": "Localhost", "localhostProfile": "a"}}) == []
        assert find(**{field: {"type": "Localhost"}}) == [f"{field}.localhostProfile: Required value"]
        named = {"type": "RuntimeDefault", "localhostProfile": "a"}
        assert find(**{field: named}) == [f"{field}.localhostProfile: {reason}"]
        assert find(**{field: {}}) == [f"{field}.type: Required value"]
        assert find(**{field: {"type": "Mine"}}) == [f"{field}.type: Unsupported value"]


# Resources ---------------------------------------------------------------------------------------------------------


def test_resources_are_standard_or_of_a_domain_and_never_negative() -> None:
    assert resources({"cpu": "0", "memory": "1Gi", "ephemeral-storage": "1"}) == []
    assert resources(limits={"hugepages-2Mi": "2Mi", "example.com/a": "1", "cpu": "1m"}) == []
    assert resources({"gpu": "1"}) == ["requests[gpu]: Invalid value"]
    assert resources(limits={"a b/c": "1"}) == ["limits[a b/c]: Invalid value"]
    assert resources({"cpu": "-1"}) == ["requests[cpu]: Invalid value"]
    assert resources(limits={"example.com/a": "500m"}) == ["limits[example.com/a]: Invalid value"]


def test_requests_stay_within_limits_and_equal_those_that_cannot_be_overcommitted() -> None:
    assert resources({"cpu": "1"}, {"cpu": "1"}) == resources({"cpu": "1"}, {"cpu": "2"}) == []
    assert resources({"cpu": "2"}, {"cpu": "1"}) == ["requests: Invalid value"]
    for name in ("example.com/a", "hugepages-2Mi"):
        assert resources({name: "2"}, {name: "2"}) == []
        assert resources({name: "2"}, {name: "4"}) == ["requests: Invalid value"]
        assert resources({name: "2"}) == ["limits: Required value"]
    assert resources({"cpu": "1"}) == []


def test_overhead_is_read_as_limits() -> None:
    assert of_pod(overhead={"cpu": "1m"}) == []
    assert of_pod(overhead={"cpu": "-1"}) == ["overhead.limits[cpu]: Invalid value"]


def test_a_pod_as_a_whole_asks_for_what_its_containers_ask_for() -> None:
    asking = {**CONTAINER, "resources": {"requests": {"cpu": "1"}}}
    two = [asking, {**asking, "name": "other"}]
    beside = {**asking, "name": "beside", "restartPolicy": "Always"}
    place = "resources.requests[cpu]: Invalid value"

    def whole(cpu: str, **fields: Any) -> list[str]:
        return of_pod(resources={"requests": {"cpu": cpu}}, **fields)

    assert whole("2", containers=two) == whole("0") == []
    assert whole("1999m", containers=two) == [place]
    assert whole("2", containers=two, initContainers=[beside]) == [place]
    assert whole("3", containers=two, initContainers=[beside]) == []
    assert whole("2", containers=two, initContainers=[{**asking, "name": "first"}]) == []
    assert of_pod(resources={"limits": {"example.com/a": "1"}}) == [
        "resources.limits[example.com/a]: Unsupported value"
    ]
    assert of_pod(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}) == ["resources.requests: Invalid value"]
    assert of_pod(resources={"requests": {"memory": "-1"}}) == ["resources.requests[memory]: Invalid value"] * 2


# Operating systems -------------------------------------------------------------------------------------------------


def test_a_pod_is_for_linux_or_windows() -> None:
    assert of_pod(os={"name": "linux"}) == of_pod(os={"name": "windows"}) == []
    assert of_pod(os={}) == ["os.name: Required value"]
    assert of_pod(os={"name": "plan9"}) == ["os: Unsupported value"]
    options = {"windowsOptions": {"runAsUserName": "a"}}
    assert of_pod(os={"name": "windows"}, securityContext=options) == of_pod(securityContext=options) == []
    assert of_pod(os={"name": "linux"}, securityContext=options) == ["securityContext.windowsOptions: Forbidden"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("hostPID", True), ("hostIPC", True), ("shareProcessNamespace", True), ("hostUsers", True), ("resources", {})],
)
def test_a_windows_pod_has_no_fields_of_linux(field: str, value: Any) -> None:
    assert of_pod(os={"name": "linux"}, **{field: value}) == []
    assert of_pod(os={"name": "windows"}, **{field: value}) == [f"{field}: Forbidden"]


def test_a_windows_pod_has_no_security_context_of_linux() -> None:
    of_pods: Document = {
        "appArmorProfile": {"type": "Unconfined"}, "seLinuxOptions": {}, "seccompProfile": {"type": "Unconfined"},
        "fsGroup": 1, "fsGroupChangePolicy": "Always", "sysctls": [], "runAsUser": 1, "runAsGroup": 1,
        "supplementalGroups": [], "supplementalGroupsPolicy": "Merge", "seLinuxChangePolicy": "Recursive",
    }  # fmt: skip
    for field, value in of_pods.items():
        found = of_pod(os={"name": "windows"}, securityContext={field: value})
        assert found == [f"securityContext.{field}: Forbidden"]
    of_containers: Document = {
        **{field: of_pods[field] for field in ("appArmorProfile", "seLinuxOptions", "seccompProfile")},
        "capabilities": {}, "readOnlyRootFilesystem": True, "privileged": True, "allowPrivilegeEscalation": True,
        "procMount": "Default", "runAsUser": 1, "runAsGroup": 1,
    }  # fmt: skip
    for field, value in of_containers.items():
        container = {**CONTAINER, "name": "other", "securityContext": {field: value}}
        place = f"securityContext.{field}: Forbidden"
        assert of_pod(os={"name": "windows"}, containers=[CONTAINER, container]) == [f"containers[1].{place}"]
        assert of_pod(os={"name": "windows"}, initContainers=[container]) == [f"initContainers[0].{place}"]
