"""What production reads from selectors, taints, affinity, ports and requests is what the oracle reads.

Both were written apart. Random input holds what the API server refuses, too: nobody may trip over it.
"""

from __future__ import annotations

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from builders import a_node
from wukong.api.core import (
    Affinity,
    Container,
    ContainerPort,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodAffinityTerm,
    PodSpec,
    ResourceRequirements,
    Taint,
    Toleration,
)
from wukong.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from wukong.api.objects import Objects
from wukong.engine import Snapshot
from wukong.engine.plugins.node_affinity import match_node_selector
from wukong.rules import labels as plain_labels
from wukong.rules import resources as plain_resources
from wukong.rules.inter_pod import read_placed_term
from wukong.rules.node_affinity import allows_node as plainly_allows_node
from wukong.rules.ports import host_ports_of as plain_host_ports_of
from wukong.rules.ports import reject
from wukong.rules.selectors import Requirement, node_selector_selects, requirements
from wukong.rules.selectors import is_valid as is_plainly_valid
from wukong.rules.selectors import selects as plainly_selects
from wukong.rules.taints import is_tolerated as is_plainly_tolerated
from wukong.rules.taints import tolerates_node as plainly_tolerates_node
from wukong.semantics import label_syntax
from wukong.semantics import requests as amounts
from wukong.semantics.host_ports import has_conflict, host_ports_of
from wukong.semantics.node_selectors import accepts_node, allows_node, compile_node_selector
from wukong.semantics.pod_affinity import compile_pod_term
from wukong.semantics.selectors import compile_selector, is_valid, selects
from wukong.semantics.tolerations import is_tolerated, tolerates_node

GOOD_KEYS = ("app", "tier", "example.com/gen")
KEYS = st.sampled_from((*GOOD_KEYS, *GOOD_KEYS, "", "-app", "/app", "Example.com/app", "a" * 64, "b" * 254 + "/app"))
VALUES = st.sampled_from(("", "web", "db", "5", "7", "007", "+5", "-3", "1e3", str(2**63), "a" * 64, "-", "٣"))
LABELS = st.dictionaries(st.sampled_from(GOOD_KEYS), VALUES, max_size=3)
OPERATORS = st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near"))
VALUE_LISTS = st.lists(VALUES, max_size=3)
NAMES = st.sampled_from(("node-a", "node-b", ""))
NAMESPACES = st.sampled_from(("shop", "other", "third"))
EFFECTS = st.sampled_from(("", "NoSchedule", "NoExecute", "PreferNoSchedule"))

SELECTORS = st.none() | st.builds(
    LabelSelector,
    match_labels=st.dictionaries(KEYS, VALUES, max_size=2),
    match_expressions=st.lists(
        st.builds(LabelSelectorRequirement, key=KEYS, operator=OPERATORS, values=VALUE_LISTS), max_size=2
    ),
)
NODE_TERMS = st.builds(
    NodeSelectorTerm,
    match_expressions=st.lists(
        st.builds(NodeSelectorRequirement, key=KEYS, operator=OPERATORS, values=VALUE_LISTS), max_size=2
    ),
    match_fields=st.lists(
        st.builds(
            NodeSelectorRequirement,
            key=st.sampled_from(("metadata.name", "metadata.name", "metadata.uid")),
            operator=OPERATORS,
            values=st.lists(NAMES, min_size=1, max_size=1) | st.lists(NAMES, max_size=2),
        ),
        max_size=2,
    ),
)
NODE_SELECTORS = st.builds(NodeSelector, node_selector_terms=st.lists(NODE_TERMS, max_size=3))
TAINTS = st.builds(Taint, key=st.sampled_from(("spot", "gpu")), value=st.sampled_from(("", "true")), effect=EFFECTS)
TOLERATIONS = st.builds(
    Toleration,
    key=st.sampled_from(("", "spot", "gpu")),
    operator=st.sampled_from(("", "Equal", "Exists", "Lt", "Gt")),
    value=st.sampled_from(("", "true", "5")),
    effect=EFFECTS,
)
POD_TERMS = st.builds(
    PodAffinityTerm,
    label_selector=SELECTORS,
    namespaces=st.lists(NAMESPACES, max_size=2),
    namespace_selector=SELECTORS,
    topology_key=st.just("zone"),
)
QUANTITIES = st.dictionaries(
    st.sampled_from(("cpu", "memory", "hugepages-2Mi", "example.com/gpu", "requests.x/y", "kubernetes.io/z")),
    st.sampled_from(("0", "1", "100m", "250m", "1Gi", "3", "0.5n")),
    max_size=4,
)
CONTAINERS = st.builds(
    Container,
    restart_policy=st.sampled_from((None, "Always")),
    resources=st.builds(ResourceRequirements, requests=QUANTITIES, limits=QUANTITIES),
    ports=st.lists(
        st.builds(
            ContainerPort,
            host_port=st.sampled_from((0, 80, 443)),
            host_ip=st.sampled_from(("", "0.0.0.0", "10.0.0.1", "10.0.0.2")),
            protocol=st.sampled_from(("", "TCP", "UDP")),
        ),
        max_size=2,
    ),
)
PODS = st.builds(
    Pod,
    spec=st.builds(
        PodSpec,
        containers=st.lists(CONTAINERS, max_size=2),
        init_containers=st.lists(CONTAINERS, max_size=3),
        tolerations=st.lists(TOLERATIONS, max_size=2),
    ),
)


@settings(max_examples=300)
@given(SELECTORS, LABELS)
def test_label_selectors(selector: LabelSelector | None, labels: dict[str, str]) -> None:
    conditions, compiled = requirements(selector), compile_selector(selector)
    assert (compiled is None) == (conditions is None)
    assert selects(compiled, labels) == plainly_selects(conditions, labels)


@settings(max_examples=300)
@given(KEYS, OPERATORS, VALUE_LISTS)
def test_requirements_that_can_be_read(key: str, operator: str, values: list[str]) -> None:
    assert is_valid(key, operator, values) == is_plainly_valid(Requirement(key, operator, tuple(values)))


@given(KEYS | VALUES | st.text(max_size=70) | st.from_regex(r"[+-]?0{0,5000}[0-9]{0,5000}", fullmatch=True))
@example("9" * 5000)
@example("0" * 5000 + "7")
def test_label_syntax(text: str) -> None:
    assert label_syntax.is_label_key(text) == plain_labels.is_label_key(text)
    assert label_syntax.is_label_value(text) == plain_labels.is_label_value(text)
    assert label_syntax.is_subdomain(text) == plain_labels.is_subdomain(text)
    assert label_syntax.parse_integer(text) == plain_labels.parse_whole_number(text)


@settings(max_examples=300)
@given(NODE_SELECTORS, LABELS, NAMES)
def test_node_selectors(selector: NodeSelector, labels: dict[str, str], name: str) -> None:
    assert accepts_node(compile_node_selector(selector), labels, name) == node_selector_selects(selector, labels, name)


@given(NODE_SELECTORS, LABELS, LABELS)
def test_node_selectors_over_columns(selector: NodeSelector, some: dict[str, str], others: dict[str, str]) -> None:
    nodes = [a_node("node-a", labels=some), a_node("node-c", labels=others)]
    snapshot = Snapshot.of(Objects(nodes=nodes))
    for is_by_labels, names in ((False, ("node-a", "node-c")), (True, ("", ""))):
        expected = [
            node_selector_selects(selector, node.metadata.labels, name) for node, name in zip(nodes, names, strict=True)
        ]
        assert match_node_selector(snapshot, selector, by_labels_only=is_by_labels).tolist() == expected


@settings(max_examples=300)
@given(st.dictionaries(KEYS, VALUES, max_size=1), st.none() | NODE_SELECTORS, LABELS)
def test_node_affinity(node_selector: dict[str, str], required: NodeSelector | None, labels: dict[str, str]) -> None:
    affinity = Affinity(node_affinity=NodeAffinity(required=required))
    pod = Pod(spec=PodSpec(node_selector=node_selector, affinity=affinity))
    node = a_node("node-a", labels=labels)
    assert allows_node(pod, node) == plainly_allows_node(pod, node)


@settings(max_examples=300)
@given(st.lists(TOLERATIONS, max_size=2), st.lists(TAINTS, max_size=2))
def test_tolerations(tolerations: list[Toleration], taints: list[Taint]) -> None:
    pod, node = Pod(spec=PodSpec(tolerations=tolerations)), a_node()
    node.spec.taints = taints
    assert tolerates_node(pod, node) == plainly_tolerates_node(pod, node)
    for taint in taints:
        assert is_tolerated(taint, tolerations) == is_plainly_tolerated(taint, tolerations)


@settings(max_examples=300)
@given(POD_TERMS, NAMESPACES, NAMESPACES, LABELS, LABELS)
def test_pod_affinity_terms(
    term: PodAffinityTerm,
    owner_namespace: str,
    namespace: str,
    labels: dict[str, str],
    namespace_labels: dict[str, str],
) -> None:
    owner = Pod(metadata=ObjectMeta(name="owner", namespace=owner_namespace))
    pod = Pod(metadata=ObjectMeta(name="web-1", namespace=namespace, labels=labels))
    compiled = compile_pod_term(term, owner_namespace)
    expected = read_placed_term(owner, term).matches(pod, namespace_labels)
    assert compiled.selects(namespace, labels, namespace_labels) == expected


@given(PODS, PODS)
def test_host_ports(pod: Pod, placed_pod: Pod) -> None:
    assert {(port.ip, port.protocol, port.port) for port in host_ports_of(pod)} == set(plain_host_ports_of(pod))
    expected = reject(pod, plain_host_ports_of(placed_pod)) is not None
    assert has_conflict(host_ports_of(pod), host_ports_of(placed_pod)) == expected


@given(PODS)
def test_container_requests(pod: Pod) -> None:
    before = msgspec.to_builtins(pod)
    assert amounts.container_requests_of(pod) == plain_resources.container_requests_of(pod)
    assert msgspec.to_builtins(pod) == before


@given(
    st.sampled_from(("cpu", "memory", "hugepages-2Mi", "requests.x/y", "a/b", "A/b", "kubernetes.io/z", "gpu", "/x"))
)
def test_names_of_resources(name: str) -> None:
    assert amounts.is_extended(name) == plain_resources.is_extended(name)
    assert amounts.is_huge_pages(name) == plain_resources.is_huge_pages(name)
    assert amounts.is_pod_level(name) == plain_resources.is_pod_level(name)
