"""A snapshot keeps one copy of what pods have alike, and nothing that placement does not read."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from wukong.api.core import Node, Pod
from wukong.cluster.interning import Interner
from wukong.placement.leaving_nodes import NOTICE, SHUTTING_DOWN
from wukong.placement.pods.mark import MARK


def a_pod(name: str, **fields: Any) -> Pod:
    document = {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "generateName": "web-",
            "labels": {"app": "web"},
            "annotations": {"note": "x"},
            "ownerReferences": [{"kind": "ReplicaSet", "apiVersion": "apps/v1", "name": "web", "uid": "rs"}],
        },
        "spec": {
            "nodeName": "n0",
            "containers": [{"name": "main"}],
            "volumes": [
                {"name": f"kube-api-access-{name}"},
                {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            ],
            **fields,
        },
        "status": {"phase": "Running", "startTime": f"2026-11-16T08:00:0{name}Z"},
    }
    return msgspec.json.decode(msgspec.json.encode(document), type=Pod)


def test_pods_alike_share_all_but_name_node_and_start() -> None:
    interner, first, second = Interner(), a_pod("1"), a_pod("2", nodeName="n1")
    assert interner.intern_object(first), "its spec and its status are new"
    assert not interner.intern_object(second)
    assert first.spec.containers is second.spec.containers
    assert first.metadata.labels is second.metadata.labels
    assert first.metadata.labels == {"app": "web"}
    assert first.metadata.owner_references is second.metadata.owner_references
    assert first.metadata.namespace is second.metadata.namespace
    assert first.metadata.generate_name is second.metadata.generate_name
    assert (first.spec.node_name, second.spec.node_name) == ("n0", "n1")
    assert (first.status.start_time, second.status.start_time) == ("2026-11-16T08:00:01Z", "2026-11-16T08:00:02Z")
    assert [volume.name for volume in first.spec.volumes] == ["data"]
    assert first.metadata.annotations == {}
    assert interner.intern_object(a_pod("3", priority=5)), "another spec is new"


def test_pods_that_have_not_started_share_their_whole_status() -> None:
    interner, pods = Interner(), [a_pod("1"), a_pod("2")]
    for pod in pods:
        pod.status.start_time = None
        interner.intern_object(pod)
    assert pods[0].status is pods[1].status


def test_of_a_pod_what_was_decided_at_admission_is_kept_and_nothing_else_that_people_write() -> None:
    pod = a_pod("web")
    pod.metadata.annotations = {MARK: '{"policy":"PlacementPolicy shop/web"}', NOTICE: "x", "other": "y"}
    Interner().intern_object(pod)
    assert pod.metadata.annotations == {MARK: '{"policy":"PlacementPolicy shop/web"}'}


def test_of_a_node_the_notice_that_it_goes_is_kept_and_nothing_else_that_people_write() -> None:
    messages = [f"kubelet: {SHUTTING_DOWN}, really", "disk of tenant 7 is full"]
    document = {
        "metadata": {"name": "n", "annotations": {NOTICE: "soon", "other": "x"}},
        "status": {
            "images": [{"names": ["web:1"], "sizeBytes": 1}],
            "conditions": [
                {"type": str(number), "status": "True", "message": text} for number, text in enumerate(messages)
            ],
        },
    }
    nodes = [msgspec.json.decode(msgspec.json.encode(document), type=Node) for _ in range(2)]
    for node in nodes:
        assert Interner().intern_object(node)
    assert nodes[0].metadata.annotations == {NOTICE: "soon"}
    assert [condition.message for condition in nodes[0].status.conditions] == [SHUTTING_DOWN, ""]
    assert nodes[0].status.images[0].names[0] is nodes[1].status.images[0].names[0]
    bare = msgspec.convert({"metadata": {"name": "n", "annotations": {"other": "x"}}}, Node)
    Interner().intern_object(bare)
    assert bare.metadata.annotations == {}


@pytest.mark.parametrize("build", [lambda: a_pod("1", priority=2**70), Node])
def test_a_number_that_no_snapshot_can_hold_is_refused(build: Any) -> None:
    subject = build()
    if isinstance(subject, Node):
        subject.metadata.generation = 2**70
    with pytest.raises(OverflowError):
        Interner().intern_object(subject)
