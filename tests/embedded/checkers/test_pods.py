"""What checkers read from pods and their owners, without the code of the controllers they judge."""

from __future__ import annotations

import pytest

from builders import a_pod
from wukong.api.apps import DaemonSet, ReplicaSet, StatefulSet, WorkloadMeta, WorkloadSpec
from wukong.api.core import (
    Affinity,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodCondition,
)
from wukong.api.meta import Object, ObjectMeta, OwnerReference
from wukong.embedded.checkers import pods
from wukong.embedded.world import objects
from wukong.state import State


@pytest.mark.parametrize(
    ("phase", "is_terminating", "is_active"),
    [
        ("Running", False, True),
        ("Pending", False, True),
        ("", False, True),
        ("Running", True, False),
        ("Succeeded", False, False),
        ("Failed", False, False),
        ("Failed", True, False),
    ],
)
def test_a_pod_is_active_unless_it_ends_or_has_ended(phase: str, is_terminating: bool, is_active: bool) -> None:
    pod = a_pod(terminating=is_terminating)
    pod.status.phase = phase
    assert pods.is_active(pod) is is_active


@pytest.mark.parametrize(
    ("conditions", "is_ready"),
    [
        ([], False),
        ([("Ready", "True")], True),
        ([("Ready", "False")], False),
        ([("Ready", "Unknown")], False),
        ([("ContainersReady", "True")], False),
        ([("ContainersReady", "False"), ("Ready", "True")], True),
    ],
)
def test_a_pod_is_ready_if_its_condition_says_so(conditions: list[tuple[str, str]], is_ready: bool) -> None:
    pod = a_pod()
    pod.status.conditions = [PodCondition(type=name, status=status) for name, status in conditions]
    assert pods.is_ready(pod) is is_ready


@pytest.mark.parametrize(
    ("name", "reason", "is_evicted"),
    [
        ("DisruptionTarget", pods.EVICTED, True),
        ("DisruptionTarget", pods.PREEMPTED, False),
        ("Ready", pods.EVICTED, False),
    ],
)
def test_a_disruption_has_a_reason(name: str, reason: str, is_evicted: bool) -> None:
    pod = a_pod()
    pod.status.conditions = [PodCondition(type=name, status="True", reason=reason)]
    assert pods.is_disrupted(pod, pods.EVICTED) is is_evicted


def an_owned_pod(*, is_controller: bool = True) -> Pod:
    pod = a_pod()
    reference = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web", uid="1", controller=is_controller)
    pod.metadata.owner_references = [reference]
    return pod


def a_replica_set(uid: str = "1", deletion_timestamp: str | None = None) -> ReplicaSet:
    meta = WorkloadMeta(name="web", namespace="default", uid=uid, deletion_timestamp=deletion_timestamp)
    return ReplicaSet(metadata=meta, kind="ReplicaSet")


def test_an_owner_is_a_controller_that_is_there_and_stays() -> None:
    state, owner = State(), a_replica_set()
    assert pods.owner_of(an_owned_pod(), state) is None
    state.apply("ADDED", owner)
    assert pods.owner_of(an_owned_pod(), state) is owner
    assert pods.owner_of(an_owned_pod(is_controller=False), state) is None
    assert pods.owner_of(a_pod(), state) is None
    state.apply("MODIFIED", a_replica_set(deletion_timestamp="2026-01-01T00:00:00Z"))
    assert pods.owner_of(an_owned_pod(), state) is None


def test_pods_are_owned_by_their_controller_and_by_nobody_else() -> None:
    state = State()
    first, second = an_owned_pod(), an_owned_pod(is_controller=False)
    second.metadata.name = "second"
    state.replace("Pod", [first, second, a_pod("third")])
    assert pods.owned_pods(state, "1") == [first]
    assert pods.owned_pods(state, "2") == []


@pytest.mark.parametrize(
    ("owner", "replicas"),
    [
        (ReplicaSet(metadata=WorkloadMeta(), spec=WorkloadSpec(replicas=3)), 3),
        (ReplicaSet(metadata=WorkloadMeta(), spec=WorkloadSpec(replicas=0)), 0),
        (StatefulSet(metadata=ObjectMeta()), 1),
        (DaemonSet(metadata=ObjectMeta(), spec=WorkloadSpec(replicas=3)), None),
        (Node(metadata=ObjectMeta()), None),
    ],
)
def test_replicas_are_what_the_spec_asks_for_or_one(owner: Object, replicas: int | None) -> None:
    assert pods.replicas_of(owner) == replicas


@pytest.mark.parametrize(
    ("name", "ordinal"),
    [("web-0", 0), ("web-12", 12), ("web-x", None), ("web", None), ("other-0", None), ("web-", None)],
)
def test_an_ordinal_is_the_number_behind_the_name_of_the_set(name: str, ordinal: int | None) -> None:
    assert pods.ordinal_of(a_pod(name), StatefulSet(metadata=ObjectMeta(name="web"))) == ordinal


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({}, range(1)),
        ({"replicas": 3}, range(3)),
        ({"replicas": 0}, range(0)),
        ({"replicas": 2, "ordinals": {"start": 5}}, range(5, 7)),
    ],
)
def test_the_ordinals_of_a_set_begin_where_it_says(spec: dict[str, object], wanted: range) -> None:
    owner = objects.read("StatefulSet.apps", {"metadata": {"name": "web", "resourceVersion": "1"}, "spec": spec})
    assert isinstance(owner, StatefulSet)
    assert pods.ordinals_of(owner) == wanted


def meant_for(*names: str, key: str = "metadata.name") -> Affinity:
    term = NodeSelectorTerm(match_fields=[NodeSelectorRequirement(key=key, operator="In", values=list(names))])
    return Affinity(node_affinity=NodeAffinity(required=NodeSelector(node_selector_terms=[term])))


@pytest.mark.parametrize(
    ("pod", "node"),
    [
        (a_pod(node="n1"), "n1"),
        (a_pod(node="n1", affinity=meant_for("n2")), "n1"),
        (a_pod(affinity=meant_for("n2")), "n2"),
        (a_pod(affinity=meant_for()), ""),
        (a_pod(affinity=meant_for("n2", key="metadata.uid")), ""),
        (a_pod(affinity=Affinity()), ""),
        (a_pod(), ""),
    ],
)
def test_a_daemon_is_on_its_node_or_meant_for_it(pod: Pod, node: str) -> None:
    assert pods.target_node_of(pod) == node
