"""An anonymous snapshot decides exactly as the original, and says nothing of whose it was."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import example, given, settings

from builders import ZONE, a_node, a_pod
from random_clusters import Case, cases
from random_wukongs import random_wukong
from wukong.api.core import NodeCondition, Pod
from wukong.api.decode import decode_objects
from wukong.api.kinds import CLUSTER_PLACEMENT_POLICIES, NAMESPACES, NODES, PLACEMENT_POLICIES, PODS
from wukong.api.objects import Objects
from wukong.api.vm import Wukong, vm_names_of
from wukong.cluster.anonymize import anonymize, anonymize_documents, texts_of
from wukong.cluster.files import read_objects
from wukong.cluster.interning import Interner
from wukong.cluster.reduction import reduce_document
from wukong.engine import Scheduler, Snapshot
from wukong.engine.decision import Decision
from wukong.placement.compile import Policy, title_of
from wukong.placement.leaving_nodes import NOTICE, find_leaving_reason
from wukong.placement.pods.mark import MARK, Mark, format_mark, read_mark
from wukong.placement.rules import BUILT_IN
from wukong.placement.vm import VmSettings, build_virtual_machine, find_change_effects, find_wukong_problems
from wukong.replies.extender.plugin import DEFAULT_ENTRY, add_extender
from wukong.replies.extender.verbs import Extender
from wukong.state import State

GPU = "example.com/gpu"  # the extended resource of random clusters
POLICIES = b"""
apiVersion: placement.novasphere.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: rich-tenant, namespace: shop}
spec:
  selector: {matchExpressions: [{key: app, operator: In, values: [web, checkout]}]}
  capacity: {strategy: spot-preferred}
  scheduling:
    resourceAffinity:
      requiredResources: [{resourceType: cpu, minAvailable: "1"}]
    schedulingPolicy:
      priority: 10
      schedulerName: tenant-scheduler
      rules:
      - {name: cost-aware, type: score, weight: 30}
      - {name: spot-risk, type: score, weight: 20, config: {byInstanceType: {m6i.xlarge: 25, house-brand: 1}}}
      - {name: latency, type: score, weight: 40, config: {from: office, matrix: {office: {eu-west-1a: 5, eu-west-1b: 80}}}}
      - {name: label-match, type: filter, config: {matchExpressions: [{key: topology.kubernetes.io/zone, operator: NotIn, values: [eu-west-1c]}]}}
---
apiVersion: placement.novasphere.dev/v1alpha1
kind: ClusterPlacementPolicy
metadata: {name: batch-of-data}
spec:
  namespaceSelector: {matchLabels: {team: data}}
  capacity: {strategy: spot-only}
"""  # noqa: E501


def reasons_of(message: str) -> list[str]:
    """In any order, for they are sorted by their texts, and the one extended resource has another name."""
    return sorted(re.split("[,.:] ", re.sub(r"x-\d+/x|example.com/gpu", "a resource", message)))


@pytest.mark.slow
@settings(max_examples=60)
@example(Case(Objects(nodes=[a_node("a"), a_node("b", extra={GPU: "1"})]), a_pod("probe", requests={GPU: "2"})))
@given(cases())
def test_the_same_is_decided_under_other_names(case: Case) -> None:
    probe = case.pod
    both = Objects()
    for subject in (*case.objects.everything(), probe):
        both.add(subject)
    renamed = anonymize(both)
    other = renamed.pods.pop()
    original = Scheduler(Snapshot.of(case.objects)).decide(probe)
    anonymous = Scheduler(Snapshot.of(renamed)).decide(other)
    names = dict(
        zip(
            sorted(node.metadata.name for node in case.objects.nodes),
            sorted(node.metadata.name for node in renamed.nodes),
            strict=True,
        )
    )
    assert [names[name] for name in original.feasible] == list(anonymous.feasible)
    assert original.final == anonymous.final
    assert reasons_of(original.message) == reasons_of(anonymous.message)
    assert {name: points.tolist() for name, points in original.scores.items()} == {
        name: points.tolist() for name, points in anonymous.scores.items()
    }


@pytest.mark.parametrize("title", ["PlacementPolicy shop/rich-tenant", "ClusterPlacementPolicy batch-of-data"])
def test_what_was_decided_at_admission_names_the_policy_as_it_is_called_now(title: str) -> None:
    policies = [policy for policy in decode_objects(POLICIES) if isinstance(policy, Policy)]
    pod = a_pod("web", namespace="shop")
    pod.metadata.annotations = {MARK: format_mark(Mark(title, 4, "spot")), "owner": "us"}
    objects = Objects(pods=[pod])
    for policy in policies:
        objects.add(policy)
    renamed = anonymize(objects)
    titles = dict(zip(map(title_of, policies), map(title_of, renamed_policies_of(renamed)), strict=True))
    (mark,) = renamed.pods[0].metadata.annotations.values()
    assert read_mark({MARK: mark}) == Mark(titles[title], 4, "spot")
    assert not any(name in mark for name in ("shop", "rich", "batch"))


def renamed_policies_of(objects: Objects) -> list[Policy]:
    return [*objects.placement_policies, *objects.cluster_placement_policies]


def test_a_mark_that_cannot_be_read_or_names_no_policy_gives_nothing_away() -> None:
    pods = [a_pod("a"), a_pod("b")]
    pods[0].metadata.annotations = {MARK: "our secret"}
    pods[1].metadata.annotations = {MARK: '{"policy":"Secret of/ours"}'}
    renamed = anonymize(Objects(pods=pods))
    assert [pod.metadata.annotations for pod in renamed.pods] == [{}, {}]
    assert "ecret" not in " ".join(texts_of(renamed))
    assert "ours" not in " ".join(texts_of(renamed))


@pytest.mark.parametrize(
    "resource",
    ["house.example/fpga", "house.kubernetes.io/disks", "requests.house/fpga", "hugepages-3Mi", "hugepages-house",
     "attachable-volumes-house", "house"],
)  # fmt: skip
def test_a_private_resource_is_asked_for_and_given_alike(resource: str) -> None:
    nodes = [a_node("a", extra={resource: "1"}), a_node("b", extra={resource: "4"}), a_node("c")]
    taken = a_pod("taken", node="b", requests={resource: "1"})
    probe = a_pod("probe", requests={resource: "2"})
    objects = Objects(nodes=nodes, pods=[taken, probe])
    renamed = anonymize(objects)
    assert "house" not in " ".join(texts_of(renamed))
    original, other = (
        Scheduler(Snapshot.of(Objects(nodes=snapshot.nodes, pods=snapshot.pods[:1]))).decide(snapshot.pods[1])
        for snapshot in (objects, renamed)
    )
    assert len(original.feasible) == len(other.feasible)
    assert original.final == other.final
    assert {name: points.tolist() for name, points in original.scores.items()} == {
        name: points.tolist() for name, points in other.scores.items()
    }


def test_names_labels_and_images_of_the_example_are_gone() -> None:
    objects = read_objects("examples/cluster.yaml")
    private = {"web", "shop", "checkout", "nightly-a", "spot-a1", "od-a1"}
    assert private & set(texts_of(objects))
    left = set(texts_of(anonymize(objects)))
    assert not private & left
    assert not [text for text in left if "example.com/" in text and "gpu" not in text]


def test_the_same_text_gets_the_same_name_everywhere() -> None:
    objects = anonymize(read_objects("examples/cluster.yaml"))
    names = {node.metadata.name for node in objects.nodes}
    assert {pod.spec.node_name for pod in objects.pods if pod.spec.node_name} <= names
    hosts = {node.metadata.labels.get("kubernetes.io/hostname") for node in objects.nodes}
    assert hosts <= names


def decide_by_policy(objects: Objects, pod: Pod) -> Decision:
    state = State()
    for resource in (NODES, NAMESPACES, PODS, PLACEMENT_POLICIES, CLUSTER_PLACEMENT_POLICIES):
        state.replace(resource.group_kind, objects.of(resource.group_kind))
    return add_extender(Scheduler(Snapshot.of(objects)), Extender(state), DEFAULT_ENTRY, 0.0)[0].decide(pod)


def with_policies() -> Objects:
    objects = read_objects("examples/cluster.yaml")
    for policy in decode_objects(POLICIES):
        objects.add(policy)
    by_name = {node.metadata.name: node for node in objects.nodes}
    by_name["spot-a2"].metadata.annotations = {NOTICE: "our man in the data centre said so"}
    by_name["od-b1"].status.conditions = [NodeCondition(type="Ready", status="False", message="node is shutting down")]
    by_name["od-a1"].metadata.labels["placement.novasphere.dev/price-per-hour"] = "0.011"
    by_name["od-a2"].metadata.labels["node.kubernetes.io/instance-type"] = "house-brand"
    return objects


@pytest.mark.parametrize("which", ["shop/web-6d5f9c-a", "shop/checkout-58b7d-a", "batch/nightly-a", "shop/ledger-0"])
def test_policies_decide_the_same_under_other_names(which: str) -> None:
    objects = with_policies()
    number = next(index for index, pod in enumerate(objects.pods) if pod.key == which)
    renamed = anonymize(objects)
    original, other = (
        decide_by_policy(snapshot, unbound(snapshot.pods.pop(number))) for snapshot in (objects, renamed)
    )
    names = dict(
        zip(
            sorted(node.metadata.name for node in objects.nodes),
            sorted(node.metadata.name for node in renamed.nodes),
            strict=True,
        )
    )
    assert original.feasible
    assert [names[name] for name in original.feasible] == list(other.feasible)
    assert original.final == other.final
    assert {name: points.tolist() for name, points in original.scores.items()} == {
        name: points.tolist() for name, points in other.scores.items()
    }


def unbound(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name="", affinity=None))


def test_of_policies_only_rules_and_their_fields_keep_their_names() -> None:
    left = set(texts_of(anonymize(with_policies())))
    private = {"rich-tenant", "batch-of-data", "web", "checkout", "office", "house-brand", "data", "tenant-scheduler"}
    assert not private & left
    assert not [text for text in left if "our man" in text or "eu-west" in text]
    assert {"cost-aware", "byInstanceType", "m6i.xlarge", "spot-preferred", "label-match"} <= left


def test_of_a_node_only_the_news_that_it_leaves_is_kept() -> None:
    noticed = a_node("noticed")
    noticed.metadata.annotations = {NOTICE: "2026-11-16T02:00:00Z", "owner.example.com/phone": "555"}
    closing = a_node("closing")
    closing.status.conditions = [
        NodeCondition(type="Ready", status="False", message="kubelet of rack 7: node is shutting down"),
        NodeCondition(type="DiskPressure", status="False", message="rack 7 is fine"),
    ]
    staying = a_node("staying", labels={ZONE: "a"})
    staying.metadata.annotations = {"owner.example.com/phone": "555"}
    silent = a_node("silent")
    silent.metadata.annotations = {NOTICE: ""}
    objects = Objects(nodes=[noticed, closing, staying, silent], pods=[a_pod("web")])
    why = [find_leaving_reason(node) for node in objects.nodes]
    for node in objects.nodes:
        Interner().intern_object(node)
    assert [find_leaving_reason(node) for node in objects.nodes] == why
    assert [node.metadata.annotations for node in objects.nodes] == [
        {NOTICE: "2026-11-16T02:00:00Z"},
        {},
        {},
        {NOTICE: ""},
    ]
    renamed = anonymize(objects)
    assert [find_leaving_reason(node) for node in renamed.nodes] == why
    assert not [text for text in texts_of(renamed) if "555" in text or "rack 7" in text or "2026" in text]


@pytest.mark.parametrize("seed", range(30))
def test_what_is_built_of_a_renamed_wukong_is_the_renamed_machine(seed: int) -> None:
    """So the machines of an anonymous snapshot are still those of its Wukongs, and nothing is mended in it."""
    original = random_wukong(seed)
    original["metadata"]["uid"] = f"uid-{seed}"
    wukong = msgspec.convert(original, Wukong)
    machines = [build_virtual_machine(wukong, name, VmSettings()) for name in vm_names_of(wukong)]
    renamed, *renamed_machines = anonymize_documents([reduce_document(part) for part in (original, *machines)])
    again = msgspec.convert(renamed, Wukong)
    assert find_wukong_problems(again, BUILT_IN) == []
    assert [machine["metadata"]["name"] for machine in renamed_machines] == vm_names_of(again)
    for machine in renamed_machines:
        built = build_virtual_machine(again, machine["metadata"]["name"], VmSettings())
        assert find_change_effects(machine["spec"], built["spec"]) == []
        assert machine["metadata"]["labels"] == built["metadata"]["labels"]


def test_a_label_named_after_a_private_resource_is_renamed_with_it_or_alone() -> None:
    labels = {"free.novasphere.dev/corp.example_fpga": "1", "free.novasphere.dev/nvidia.com_gpu": "2"}
    node = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n", "labels": labels}}
    (renamed,) = anonymize_documents([node])
    assert "corp" not in str(renamed)
    assert renamed["metadata"]["labels"]["free.novasphere.dev/nvidia.com_gpu"] == "2"
