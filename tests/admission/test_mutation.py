"""What the API server makes of a manifest."""

import json
from typing import Any

import msgspec
import pytest

from rules.samples import Manifest, a_container, a_pod, a_sidecar, build, expression
from wukong.admission import admit
from wukong.api.core import Pod, PriorityClass
from wukong.api.objects import Objects
from wukong.errors import InputError
from wukong.rules.resources import filter_requests_of

NOTHING = Objects()


def priority_class(name: str, value: int, **fields: Any) -> PriorityClass:
    return build(PriorityClass, {"kind": "PriorityClass", "metadata": {"name": name}, "value": value, **fields})


CLASSES = Objects(
    priority_classes=[
        priority_class("high", 1000),
        priority_class("batch", -10, preemptionPolicy="Never"),
        priority_class("usual", 5, globalDefault=True),
    ]
)


def requests(pod: Pod, index: int = 0) -> Manifest:
    return dict(admit(pod, NOTHING).spec.containers[index].resources.requests)


def test_the_given_pod_is_left_as_it_was() -> None:
    fields: Manifest = {"matchLabelKeys": ["app"], "labelSelector": {}}
    pod = a_pod(
        labels={"app": "web"},
        namespace="",
        hostNetwork=True,
        containers=[a_container(limits={"cpu": "1"}, ports=[{"containerPort": 80}])],
        topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "zone", **fields}],
    )
    before = msgspec.json.encode(pod)
    assert msgspec.json.encode(admit(pod, CLASSES)) != before
    assert json.loads(msgspec.json.encode(pod)) == json.loads(before)


def test_the_namespace_defaults_to_default() -> None:
    pod = a_pod()
    pod.metadata.namespace = ""
    assert admit(pod, NOTHING).metadata.namespace == "default"
    assert admit(a_pod(namespace="web"), NOTHING).metadata.namespace == "web"


# Resources --------------------------------------------------------------------------------------------------------


def test_a_missing_request_is_the_limit() -> None:
    limited = a_container(requests={"cpu": "1"}, limits={"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": 1})
    assert requests(a_pod(containers=[limited])) == {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": 1}


def test_init_containers_and_sidecars_are_defaulted_too() -> None:
    pod = a_pod(initContainers=[a_container(limits={"cpu": "3"}), a_sidecar(limits={"cpu": "1"})])
    assert filter_requests_of(admit(pod, NOTHING))["cpu"] == 3000


def test_each_quantity_is_rounded_up_to_a_thousandth_before_anything_is_added() -> None:
    pod = a_pod(containers=[a_container(requests={"cpu": "0.5m"}), a_container(requests={"cpu": 0.0001})])
    assert requests(pod) == {"cpu": "1m"}
    assert filter_requests_of(admit(pod, NOTHING))["cpu"] == 2
    assert requests(a_pod(cpu="1500m")) == {"cpu": "1500m"}


@pytest.mark.parametrize(
    ("containers", "own", "expected"),
    [
        ([{}], {"limits": {"cpu": "2", "memory": "1Gi"}}, {"cpu": 2000, "memory": 1024**3}),
        ([{"cpu": "500m"}, {"cpu": "250m"}], {"limits": {"cpu": "2"}}, {"cpu": 750}),
        ([{"cpu": "500m"}], {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}, {"cpu": 1000}),
        ([{"memory": "1Mi"}], {"limits": {"cpu": "2"}}, {"cpu": 2000, "memory": 1024**2}),
        ([{"cpu": "500m"}], {"requests": {"memory": "1Gi"}}, {"cpu": 500, "memory": 1024**3}),
    ],
)
def test_requests_of_the_pod_as_a_whole_default_to_its_containers_and_then_to_its_limits(
    containers: list[Manifest], own: Manifest, expected: dict[str, int]
) -> None:
    pod = a_pod(containers=[a_container(requests=requested) for requested in containers], resources=own)
    assert filter_requests_of(admit(pod, NOTHING)) == expected


def test_huge_pages_limited_by_containers_are_limited_for_the_pod() -> None:
    pages = a_container(requests={"cpu": "1"}, limits={"hugepages-2Mi": "4Mi"})
    own = admit(a_pod(containers=[pages, pages], resources={"limits": {"cpu": "2"}}), NOTHING).spec.resources
    assert own is not None
    assert own.limits == {"cpu": "2", "hugepages-2Mi": 8 * 1024**2}
    assert own.requests == {"cpu": 2, "hugepages-2Mi": 8 * 1024**2}


def test_on_the_hosts_network_ports_are_host_ports() -> None:
    containers = [a_container(ports=[{"containerPort": 80, "protocol": ""}, {"containerPort": 81, "hostPort": 81}])]
    ports = admit(a_pod(containers=containers, hostNetwork=True), NOTHING).spec.containers[0].ports
    assert [(port.host_port, port.protocol) for port in ports] == [(80, "TCP"), (81, "TCP")]
    assert admit(a_pod(containers=containers), NOTHING).spec.containers[0].ports[0].host_port == 0


# Priority ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("high", (1000, "PreemptLowerPriority", "high")),
        ("batch", (-10, "Never", "batch")),
        ("", (5, "PreemptLowerPriority", "usual")),
        ("system-node-critical", (2_000_001_000, "PreemptLowerPriority", "system-node-critical")),
        ("system-cluster-critical", (2_000_000_000, "PreemptLowerPriority", "system-cluster-critical")),
    ],
)
def test_priority_and_policy_come_from_the_class(name: str, expected: tuple[int, str, str]) -> None:
    spec = admit(a_pod(priorityClassName=name), CLASSES).spec
    assert (spec.priority, spec.preemption_policy, spec.priority_class_name) == expected


def test_without_classes_the_priority_is_zero_and_the_built_in_ones_are_known() -> None:
    assert admit(a_pod(), NOTHING).spec.priority == 0
    assert admit(a_pod(), NOTHING).spec.preemption_policy == "PreemptLowerPriority"
    assert admit(a_pod(priorityClassName="system-node-critical"), NOTHING).spec.priority == 2_000_001_000


def test_of_two_global_defaults_the_lower_one_counts() -> None:
    two = Objects(priority_classes=[priority_class(n, v, globalDefault=True) for n, v in (("b", 9), ("a", 3))])
    assert admit(a_pod(), two).spec.priority == 3


@pytest.mark.parametrize(
    ("spec", "objects", "message"),
    [
        (
            {"priorityClassName": "hihg"},
            CLASSES,
            '$.spec.priorityClassName: expected a PriorityClass of the snapshot, got "hihg". Use batch, high, '
            'system-cluster-critical, system-node-critical, usual. Did you mean "high"?',
        ),
        (
            {"priorityClassName": "high"},
            NOTHING,
            '$.spec.priorityClassName: "high" is unknown, for the snapshot has no PriorityClasses. Add them to the '
            "snapshot (kubectl get priorityclasses -o yaml), or leave the name out.",
        ),
        (
            {"priority": 7, "preemptionPolicy": "Never"},
            CLASSES,
            "$.spec.priority: expected what the class says, 5, got 7. Leave it out, or name another "
            "priorityClassName.\n$.spec.preemptionPolicy: expected what the class says, PreemptLowerPriority, got "
            '"Never". Leave it out, or name a PriorityClass that has this policy.',
        ),
    ],
)
def test_a_priority_that_cannot_be_is_refused(spec: Manifest, objects: Objects, message: str) -> None:
    with pytest.raises(InputError) as caught:
        admit(a_pod(**spec), objects)
    assert str(caught.value) == message


def test_a_pod_may_repeat_what_its_class_says() -> None:
    pod = a_pod(priorityClassName="batch", priority=-10, preemptionPolicy="Never")
    assert admit(pod, CLASSES).spec.priority == -10


# Tolerations and label keys ---------------------------------------------------------------------------------------

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


@pytest.mark.parametrize(
    ("tolerations", "added"),
    [
        ([], [NOT_READY, UNREACHABLE]),
        ([{"key": NOT_READY, "operator": "Exists", "effect": "NoExecute"}], [UNREACHABLE]),
        ([{"key": NOT_READY, "operator": "Exists", "effect": "NoSchedule"}], [NOT_READY, UNREACHABLE]),
        ([{"key": UNREACHABLE, "value": "x"}], [NOT_READY]),
        ([{"operator": "Exists"}], []),
        ([{"operator": "Exists", "effect": "NoSchedule"}], [NOT_READY, UNREACHABLE]),
    ],
)
def test_failing_nodes_are_tolerated_for_300_seconds(tolerations: list[Manifest], added: list[str]) -> None:
    appended = admit(a_pod(tolerations=tolerations), NOTHING).spec.tolerations[len(tolerations) :]
    assert [(entry.key, entry.operator, entry.effect, entry.toleration_seconds) for entry in appended] == [
        (key, "Exists", "NoExecute", 300) for key in added
    ]


def test_label_keys_become_part_of_the_selectors() -> None:
    term = {
        "topologyKey": "zone",
        "labelSelector": {"matchExpressions": [expression("app", "Exists")]},
        "matchLabelKeys": ["rev", "absent"],
        "mismatchLabelKeys": ["tenant"],
    }
    weighted = {"weight": 1, "podAffinityTerm": term}
    affinity = {
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
        "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]},
    }
    admitted = admit(a_pod(labels={"rev": "2", "tenant": "t"}, affinity=affinity), NOTHING).spec.affinity
    assert admitted is not None
    assert admitted.pod_affinity is not None
    assert admitted.pod_anti_affinity is not None
    for admitted_term in (admitted.pod_affinity.required[0], admitted.pod_anti_affinity.preferred[0].pod_affinity_term):
        assert admitted_term.label_selector is not None
        expressions = admitted_term.label_selector.match_expressions
        requirements = [(entry.key, entry.operator, entry.values) for entry in expressions]
        assert requirements == [("app", "Exists", []), ("rev", "In", ["2"]), ("tenant", "NotIn", ["t"])]


@pytest.mark.parametrize(("selector", "expected"), [({}, [("rev", "In", ["2"])]), (None, None)])
def test_label_keys_of_spread_constraints_need_a_selector(selector: Manifest | None, expected: object) -> None:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "labelSelector": selector, "matchLabelKeys": ["rev"]}
    pod = a_pod(labels={"rev": "2"}, topologySpreadConstraints=[constraint])
    merged = admit(pod, NOTHING).spec.topology_spread_constraints[0].label_selector
    expressions = merged and [(entry.key, entry.operator, entry.values) for entry in merged.match_expressions]
    assert expressions == expected
