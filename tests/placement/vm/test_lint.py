"""The traps of placing virtual machines, each found with its place and a fix; what is right is left alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from builders import a_node, a_pod
from random_wukongs import random_wukong
from wukong.api.core import Namespace, Node, PersistentVolumeClaim, PersistentVolumeClaimSpec
from wukong.api.meta import ObjectMeta
from wukong.api.objects import Objects
from wukong.api.vm import Wukong
from wukong.placement.rules import BUILT_IN
from wukong.placement.term_conflicts import find_impossible_key
from wukong.placement.vm.finding import Finding
from wukong.placement.vm.lint import lint_wukongs
from wukongs import a_wukong

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
ROOT = [{"name": "root", "containerDisk": {"image": "x"}}]
WEB = {"matchLabels": {"app": "web"}}
APART: dict[str, Any] = {"highAvailability": {"antiAffinity": True}}


def lint(*wukongs: Wukong, nodes: Sequence[Node] | None = None, **objects: Any) -> list[Finding]:
    cluster = None if nodes is None and not objects else Objects(nodes=list(nodes or ()), **objects)
    return lint_wukongs(wukongs, BUILT_IN, objects=cluster)


def a_vm(name: str = "web", **spec: Any) -> Wukong:
    return a_wukong(name, **{"disks": ROOT, **spec})


def zones(*names: str) -> list[Node]:
    return [a_node(f"n{index}", labels={HOST: f"n{index}", ZONE: name}) for index, name in enumerate(names)]


def by_zone(**more: Any) -> dict[str, Any]:
    term = {"topologyKey": ZONE, "labelSelector": WEB}
    return {"labels": {"app": "web"}, "scheduling": {"podAntiAffinity": {"required": [term]}, **more}}


def summary(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.severity, finding.path) for finding in findings]


def test_a_plain_machine_has_no_findings() -> None:
    assert lint(a_vm()) == []
    assert lint(a_vm(), nodes=zones("a")) == []


def test_what_is_wrong_with_fields_is_an_error_with_its_fix() -> None:
    (finding,) = lint(a_vm(runStrategy="Alway"))
    assert (finding.severity, finding.path) == ("error", "$.spec.runStrategy")
    assert finding.text == 'expected Always, Halted, Manual, RerunOnFailure or Once, got "Alway".'
    assert finding.fix == 'Did you mean "Always"?'


# ---- domains


@pytest.mark.parametrize(
    ("replicas", "nodes", "severity"),
    [(2, ["a", "b", "c"], None), (3, ["a", "b", "c"], "warning"), (3, ["a", "a", "b"], "error"), (0, ["a"], None)],
)
def test_n_machines_need_n_domains_and_one_more_to_migrate(
    replicas: int, nodes: list[str], severity: str | None
) -> None:
    findings = lint(a_vm(replicas=replicas, **by_zone()), nodes=zones(*nodes))
    path = "$.spec.scheduling.podAntiAffinity.required[0]"
    assert summary(findings) == ([] if severity is None else [(severity, path)])


def test_a_single_machine_that_repels_its_own_kind_cannot_migrate_within_one_zone() -> None:
    (finding,) = lint(a_vm(**by_zone()), nodes=zones("a", "a"))
    assert finding.severity == "warning"
    assert "1 machine apart by topology.kubernetes.io/zone in 1 domain cannot migrate" in finding.text


def test_who_does_not_migrate_needs_no_domain_more() -> None:
    assert lint(a_vm(replicas=2, evictionStrategy="None", **APART), nodes=zones("a", "b")) == []


def test_the_short_way_is_counted_by_nodes_and_named_so() -> None:
    assert summary(lint(a_vm(replicas=3, **APART), nodes=zones("a", "a"))) == [
        ("error", "$.spec.highAvailability.antiAffinity")
    ]


def test_without_a_cluster_what_is_needed_is_a_note() -> None:
    (finding,) = lint(a_vm(replicas=3, **APART))
    assert finding.severity == "note"
    assert "4 domains of kubernetes.io/hostname are needed" in finding.text


def test_nodes_that_its_machines_cannot_be_on_are_not_counted() -> None:
    nodes = [
        *zones("a", "b", "c"),
        a_node("tainted", labels={HOST: "tainted", ZONE: "d"}, taints=["gpu=true:NoSchedule"]),
        a_node("other", labels={HOST: "other", ZONE: "e", "pool": "x"}),
        a_node("cordoned", labels={HOST: "cordoned", ZONE: "f"}, unschedulable=True),
    ]
    bounded = by_zone(nodeAffinity={"required": [{"matchExpressions": [{"key": "pool", "operator": "DoesNotExist"}]}]})
    assert summary(lint(a_vm(replicas=3, **bounded), nodes=nodes)) == [
        ("warning", "$.spec.scheduling.podAntiAffinity.required[0]")
    ]


def test_where_kubevirt_runs_only_its_nodes_count() -> None:
    nodes = zones("a", "b", "c", "d")
    for node in nodes[:3]:
        node.metadata.labels["kubevirt.io/schedulable"] = "true"
    nodes[3].metadata.labels["kubevirt.io/schedulable"] = "false"
    assert [finding.severity for finding in lint(a_vm(replicas=3, **by_zone()), nodes=nodes)] == ["warning"]


def test_a_node_without_the_label_takes_any_number() -> None:
    assert lint(a_vm(replicas=9, **by_zone()), nodes=[*zones("a"), a_node("bare")]) == []


def test_no_node_at_all_is_an_error() -> None:
    (finding,) = lint(a_vm(scheduling={"nodeSelector": {"pool": "vms"}}), nodes=zones("a", "b"))
    assert (finding.severity, finding.path) == ("error", "$.spec.scheduling")
    assert "none of the 2 nodes" in finding.text


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        (
            {"podAffinity": {"required": [{"topologyKey": "rack", "labelSelector": WEB}]}},
            "$.spec.scheduling.podAffinity.required[0].topologyKey",
        ),
        (
            {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "rack", "labelSelector": WEB}]},
            "$.spec.scheduling.topologySpreadConstraints[0].topologyKey",
        ),
    ],
)
def test_a_topology_key_that_no_node_has_is_an_error(rule: dict[str, Any], path: str) -> None:
    findings = lint(a_vm(labels={"app": "web"}, scheduling=rule), nodes=zones("a"))
    assert ("error", path) in summary(findings)


def test_fewer_domains_than_a_spread_asks_for_hold_only_some_of_the_machines() -> None:
    spread = [{"maxSkew": 1, "topologyKey": ZONE, "minDomains": 3, "labelSelector": WEB}]
    wukong = a_vm(replicas=3, labels={"app": "web"}, scheduling={"topologySpreadConstraints": spread})
    (finding,) = lint(wukong, nodes=zones("a", "b"))
    assert "so 2 of 3 can be placed" in finding.text
    assert lint(wukong, nodes=zones("a", "b", "c")) == []


# ---- rules that bar each other


def near_and_apart(near_key: str, apart_key: str, apart: Any = WEB, **near: Any) -> dict[str, Any]:
    near_term = {"topologyKey": near_key, "labelSelector": {"matchLabels": {"app": "web", "tier": "db"}}, **near}
    return {
        "podAffinity": {"required": [near_term]},
        "podAntiAffinity": {"required": [{"topologyKey": apart_key, "labelSelector": apart}]},
    }


@pytest.mark.parametrize(
    ("rules", "is_barred"),
    [
        (near_and_apart(ZONE, ZONE), True),
        (near_and_apart(HOST, HOST), True),
        (near_and_apart(HOST, ZONE), True),  # on its node is in its zone
        (near_and_apart(ZONE, HOST), False),  # in its zone, on another node
        (near_and_apart(ZONE, ZONE, {"matchLabels": {"app": "db"}}), False),
        (near_and_apart(ZONE, ZONE, {"matchLabels": {"app": "web", "tier": "x"}}), False),
        (near_and_apart(ZONE, ZONE, namespaces=["other"]), False),
        (near_and_apart(ZONE, ZONE, {}), True),  # apart from all
        (near_and_apart("rack", "room"), False),  # nobody knows which is wider
    ],
)
def test_near_and_apart_from_the_same_pods(rules: dict[str, Any], is_barred: bool) -> None:
    findings = lint(a_vm(scheduling=rules))
    expected = [("error", "$.spec.scheduling.podAffinity.required[0]")] if is_barred else []
    assert summary(findings) == expected


def test_near_its_own_kind_and_apart_from_it_only_the_first_is_placed() -> None:
    near = {"podAffinity": {"required": [{"topologyKey": HOST, "labelSelector": WEB}]}}
    wukong = a_vm(
        replicas=2,
        labels={"app": "web"},
        scheduling={**near, "podAntiAffinity": {"required": [{"topologyKey": HOST, "labelSelector": WEB}]}},
    )
    texts = [finding.text for finding in lint(wukong) if finding.severity == "error"]
    assert len(texts) == 1
    assert "only the first machine can be placed" in texts[0]


@pytest.mark.parametrize(
    ("selector", "terms", "severities"),
    [
        ({"zone": "a"}, [[("zone", "In", ["a", "b"])]], []),
        ({"zone": "a"}, [[("zone", "In", ["b"])]], ["error"]),
        ({"zone": "a"}, [[("zone", "NotIn", ["a"])]], ["error"]),
        ({"zone": "a"}, [[("zone", "DoesNotExist", [])]], ["error"]),
        ({"zone": "a"}, [[("zone", "In", ["b"])], [("disk", "Exists", [])]], ["warning"]),
        ({}, [[("cores", "Gt", ["4"]), ("cores", "Lt", ["5"])]], ["error"]),
        ({}, [[("cores", "Gt", ["4"]), ("cores", "Lt", ["6"])]], []),
        ({}, [[("cores", "Gt", ["4"]), ("cores", "NotIn", ["5", "6"])]], []),
        ({}, [[("a", "Exists", []), ("a", "DoesNotExist", [])]], ["error"]),
    ],
)
def test_node_selector_against_node_affinity(
    selector: dict[str, str], terms: list[list[tuple[str, str, list[str]]]], severities: list[str]
) -> None:
    required = [
        {"matchExpressions": [{"key": key, "operator": operator, "values": values} for key, operator, values in term]}
        for term in terms
    ]
    findings = lint(a_vm(scheduling={"nodeSelector": selector, "nodeAffinity": {"required": required}}))
    assert [finding.severity for finding in findings] == severities


def test_other_values_are_looked_for_beyond_those_that_are_named() -> None:
    assert find_impossible_key([("a", "NotIn", frozenset({"other-", "other-other-"}))]) is None


# ---- machines


def test_a_floor_of_gpus_without_a_device_is_a_warning() -> None:
    floor = {"resourceAffinity": {"requiredResources": [{"resourceType": "gpu", "minAvailable": 1}]}}
    path = "$.spec.scheduling.resourceAffinity.requiredResources[0]"
    assert summary(lint(a_vm(scheduling=floor))) == [("warning", path)]
    assert lint(a_vm(scheduling=floor, gpus=[{"name": "g", "deviceName": "nvidia.com/A100"}])) == []
    host_device = {"domain": {"devices": {"hostDevices": [{"name": "h", "deviceName": "a.b/c"}]}}}
    assert lint(a_vm(scheduling=floor, vmTemplate={"spec": {"template": {"spec": host_device}}})) == []


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"disks": []}, "$.spec.disks"),
        ({"replicas": 2, "disks": [{"name": "r", "claim": {"claimName": "c"}}]}, "$.spec.disks[0]"),
        ({"replicas": 2, "disks": [{"name": "r", "dataVolume": {"name": "c"}}]}, "$.spec.disks[0]"),
        (
            {"evictionStrategy": "LiveMigrate", "gpus": [{"name": "g", "deviceName": "a.b/c"}]},
            "$.spec.evictionStrategy",
        ),
        (
            {
                "replicas": 2,
                "scheduling": {"podAntiAffinity": {"required": [{"topologyKey": HOST, "labelSelector": WEB}]}},
            },
            "$.spec.scheduling.podAntiAffinity.required[0]",  # spec.labels was forgotten
        ),
    ],
)
def test_what_fails_some_day_is_a_warning(spec: dict[str, Any], path: str) -> None:
    assert summary(lint(a_vm(**spec))) == [("warning", path)]


def test_a_claim_that_cannot_be_shared_keeps_a_machine_from_migrating() -> None:
    spec = PersistentVolumeClaimSpec(access_modes=["ReadWriteOnce"])
    claim = PersistentVolumeClaim(metadata=ObjectMeta(name="c", namespace="shop"), spec=spec)
    wukong = a_vm(evictionStrategy="LiveMigrate", disks=[{"name": "r", "claim": {"claimName": "c"}}])
    findings = lint(wukong, nodes=zones("a"), persistent_volume_claims=[claim])
    assert summary(findings) == [("warning", "$.spec.evictionStrategy")]


# ---- terms


def test_namespaces_and_their_selector_unite_and_that_is_a_note() -> None:
    term = {"topologyKey": ZONE, "labelSelector": WEB, "namespaces": ["a"], "namespaceSelector": {}}
    wukong = a_vm(scheduling={"podAntiAffinity": {"preferred": [{"weight": 1, "podAffinityTerm": term}]}})
    (finding,) = lint(wukong)
    assert (finding.severity, finding.path) == (
        "note",
        "$.spec.scheduling.podAntiAffinity.preferred[0].podAffinityTerm",
    )
    assert "unite" in finding.text


def test_who_wants_to_be_near_nobody_waits() -> None:
    near = {"podAffinity": {"required": [{"topologyKey": ZONE, "labelSelector": WEB, "namespaceSelector": {}}]}}
    wukong, nodes = a_vm(scheduling=near), zones("a")
    namespaces = [Namespace(metadata=ObjectMeta(name="other"))]
    pod = a_pod("p", namespace="other", labels={"app": "web"})
    path = "$.spec.scheduling.podAffinity.required[0]"
    assert summary(lint(wukong, nodes=nodes, namespaces=namespaces)) == [("warning", path)]
    assert lint(wukong, nodes=nodes, namespaces=namespaces, pods=[pod]) == []
    assert lint(wukong, a_vm("db", labels={"app": "web"}), nodes=nodes, namespaces=namespaces) == []
    assert lint(wukong) == []  # without a cluster nobody knows


def test_rules_that_kube_scheduler_does_not_know_are_a_note() -> None:
    policy = {"schedulingPolicy": {"rules": [{"name": "cost-aware", "type": "score"}]}}
    path = "$.spec.scheduling.schedulingPolicy.rules"
    assert summary(lint(a_vm(scheduling=policy))) == [("note", path)]


# ---- several


def test_two_wukongs_that_make_the_same_machine() -> None:
    (finding,) = lint(a_vm("web", replicas=2), a_vm("web-1"))
    assert (finding.severity, finding.subject) == ("error", "shop/web-1")
    assert "shop/web makes a VirtualMachine shop/web-1 too" in finding.text


def test_the_worst_comes_first() -> None:
    wukongs = [a_vm("a", disks=[]), a_vm("b", cpu=0), a_vm("c", replicas=2, **APART)]
    assert [finding.severity for finding in lint(*wukongs)] == ["error", "warning", "note"]


def test_random_wukongs_can_all_be_linted() -> None:
    wukongs = [msgspec.convert(random_wukong(seed), Wukong) for seed in range(60)]
    for nodes in (None, zones("a", "b", "c")):
        findings = lint(*wukongs, nodes=nodes)
        assert {finding.severity for finding in findings} >= {"warning", "note"}
