"""Equal parts of mirrored objects are one, what nobody reads is not kept, and nothing grows with what is gone."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import msgspec
import pytest

from builders import a_node
from wukong.api.core import Node, Pod
from wukong.api.resources import Key
from wukong.state import State
from wukong.state.sharing import SharedParts

TIME = "2026-11-16T08:00:{:02d}Z"


def a_document(name: str, second: int = 0, *, image: str = "web:1", node: str = "n0", cpu: str = "1") -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": "1Gi"}
    conditions = [
        {"type": type_, "status": "True", "lastTransitionTime": TIME.format(second), "message": "x" * 1000}
        for type_ in ("Ready", "ContainersReady")
    ]
    bound = {"type": "PodScheduled", "status": "True" if node else "False", "lastTransitionTime": TIME.format(second)}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": name,
            "resourceVersion": str(second + 1),
            "labels": {"app": "web"},
            "annotations": {"novasphere.dev/never-move": "true", "note": "same"},
            "ownerReferences": [{"kind": "ReplicaSet", "apiVersion": "apps/v1", "name": "web", "uid": "rs"}],
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "image": image, "resources": {"requests": requests}}],
            "volumes": [{"name": f"kube-api-access-{name}", "projected": {}}],
        },
        "status": {
            "phase": "Running",
            "startTime": TIME.format(second),
            "conditions": [*conditions, bound],
            "containerStatuses": [
                {"name": "main", "allocatedResources": requests, "resources": {"requests": requests}}
            ],
        },
    }


def read(document: dict[str, Any]) -> Pod:
    return msgspec.convert(document, Pod)


def pod_of(state: State, name: str) -> Pod:
    pod = state.get(Pod, Key("shop", name))
    assert pod is not None
    return pod


def test_pods_of_one_workload_share_all_but_name_node_and_times() -> None:
    state = State()
    state.replace("Node", [a_node("n0"), a_node("n1")])
    state.replace("Pod", [read(a_document("a")), read(a_document("b", 7, node="n1"))])
    first, second = pod_of(state, "a"), pod_of(state, "b")
    assert first.spec.containers is second.spec.containers
    assert first.metadata.labels is second.metadata.labels
    assert first.metadata.owner_references is second.metadata.owner_references
    assert first.metadata.annotations is second.metadata.annotations
    assert first.status.conditions is second.status.conditions
    assert (first.spec.node_name, second.spec.node_name) == ("n0", "n1")
    assert (first.status.start_time, second.status.start_time) == (TIME.format(0), TIME.format(7))
    assert [condition.message for condition in first.status.conditions] == ["", "", ""]
    # Pods that differ only in times are alike to every decision, also where they report what they really have.
    assert len({placed.template for placed in state.snapshot.pods.values()}) == 1


def test_texts_that_many_pods_have_are_one_too() -> None:
    state = State()
    for name in ("a", "b"):
        document = a_document(name)
        document["metadata"]["generateName"] = "web-"
        state.apply("ADDED", msgspec.json.decode(msgspec.json.encode(document), type=Pod))
    first, second = pod_of(state, "a"), pod_of(state, "b")
    for path in ("kind", "api_version", "metadata.namespace", "metadata.generate_name", "spec.node_name"):
        assert attrgetter(path)(first) is attrgetter(path)(second), path
    bare = [
        msgspec.json.decode(b'{"metadata":{"name":"%d","namespace":"shop"}}' % number, type=Pod) for number in (1, 2)
    ]
    for pod in bare:
        state.apply("ADDED", pod)
    assert pod_of(state, "1").metadata.annotations is pod_of(state, "2").metadata.annotations
    assert pod_of(state, "1").metadata.finalizers is pod_of(state, "2").metadata.finalizers


def test_what_a_pod_was_read_into_is_not_changed_when_its_parts_are_shared() -> None:
    """Others may have the same parts, such as a document that the embedded cluster holds."""
    pod = read(a_document("a", 3))
    metadata, spec, status = pod.metadata, pod.spec, pod.status
    before = msgspec.json.encode([metadata, spec, status])
    State().apply("ADDED", pod)
    assert msgspec.json.encode([metadata, spec, status]) == before


def test_texts_of_conditions_that_the_scheduler_writes_are_kept() -> None:
    state = State()
    document = a_document("a")
    texts = {"Ready": "", "PodScheduled": "why", "DisruptionTarget": "why", "ContainersReady": ""}
    document["status"]["conditions"] = [
        {"type": type_, "status": "True", "reason": "Because", "message": "why", "lastTransitionTime": TIME.format(1)}
        for type_ in texts
    ]
    state.apply("ADDED", read(document))
    conditions = pod_of(state, "a").status.conditions
    assert {condition.type: condition.message for condition in conditions} == texts
    assert {(condition.status, condition.reason, condition.last_transition_time) for condition in conditions} == {
        ("True", "Because", None)
    }


@pytest.mark.parametrize(("size", "is_kept"), [(1024, True), (1025, False)])
def test_annotations_are_kept_up_to_a_kibibyte_together(size: int, is_kept: bool) -> None:
    state = State()
    document = a_document("a")
    document["metadata"]["annotations"] = {"first": "x" * 95, "other": "y" * (size - 105)}
    state.apply("ADDED", read(document))
    assert len(pod_of(state, "a").metadata.annotations) == (2 if is_kept else 1)


def test_a_volume_that_placement_reads_is_kept() -> None:
    state = State()
    document = a_document("a")
    document["spec"]["volumes"].append({"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}})
    state.apply("ADDED", read(document))
    assert [volume.name for volume in pod_of(state, "a").spec.volumes] == ["data"]


def test_a_later_version_shares_with_the_one_before() -> None:
    state = State()
    state.apply("ADDED", read(a_document("a")))
    before = pod_of(state, "a")
    state.apply("MODIFIED", read(a_document("a", 9)))
    after = pod_of(state, "a")
    assert after is not before
    assert after.spec is before.spec
    assert after.metadata.uid is before.metadata.uid
    assert after.metadata.name is before.metadata.name
    assert after.metadata.labels is before.metadata.labels
    assert after.metadata.owner_references is before.metadata.owner_references
    assert after.metadata.resource_version == "10"


def test_a_pod_bound_just_now_keeps_when_until_its_next_version() -> None:
    state = State()
    state.apply("ADDED", read(a_document("a", 1, node="")))
    state.apply("MODIFIED", read(a_document("a", 2)))
    (binding,) = state.recent.on_node["n0"].values()
    assert binding.at % 60 == 2
    state.apply("MODIFIED", read(a_document("a", 3)))
    assert pod_of(state, "a").status.conditions[2].last_transition_time is None
    assert list(state.recent.on_node["n0"].values()) == [binding]


def test_a_resize_that_only_the_status_shows_is_counted() -> None:
    state = State()
    state.replace("Node", [a_node("n0", cpu="8")])
    state.apply("ADDED", read(a_document("a")))
    snapshot = state.snapshot
    assert snapshot.load[snapshot.lines["cpu"], 0] == 1_000
    document = a_document("a", 2)
    document["status"]["containerStatuses"][0]["resources"]["requests"] = {"cpu": "3", "memory": "1Gi"}
    state.apply("MODIFIED", read(document))
    assert state.snapshot.load[snapshot.lines["cpu"], 0] == 3_000
    document = a_document("a", 3)
    document["status"]["containerStatuses"] = []
    state.apply("MODIFIED", read(document))
    assert state.snapshot.load[snapshot.lines["cpu"], 0] == 1_000


def test_large_annotations_are_left_out_but_for_those_we_read() -> None:
    state = State()
    document = a_document("a")
    document["metadata"]["annotations"] = {
        **{f"tenant/{number}": "x" * 100 for number in range(1_000)},
        "kubectl.kubernetes.io/last-applied-configuration": "y" * 200_000,
        "novasphere.dev/never-move": "true",
        "kubernetes.io/config.mirror": "hash",
    }
    state.apply("ADDED", read(document))
    kept = pod_of(state, "a").metadata.annotations
    assert kept["novasphere.dev/never-move"] == "true"
    assert kept["kubernetes.io/config.mirror"] == "hash"
    assert len(msgspec.json.encode(kept)) < 2_000


def test_nodes_share_their_images() -> None:
    def a_node_with_images(name: str) -> Node:
        images = [{"names": [f"web:{number}"], "sizeBytes": number} for number in range(5)]
        return msgspec.convert({"metadata": {"name": name}, "status": {"images": images}}, Node)

    state = State()
    state.replace("Node", [a_node_with_images("n0"), a_node_with_images("n1")])
    first, second = state.all(Node)
    assert all(one is two for one, two in zip(first.status.images, second.status.images, strict=True))


def test_what_is_gone_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wukong.state.live_snapshot._SPARE_TEMPLATES", 50)  # they hold parts of pods, too
    state = State()
    for number in range(3_000):
        pod = read(a_document("a", number % 60, image=f"web:{number}"))
        pod.metadata.resource_version = str(number)
        state.apply("MODIFIED", pod)
    assert len(state._sharing._specs) <= 1_024 + 100


def test_parts_in_use_stay_one_through_a_clearing() -> None:
    parts: SharedParts[tuple[list[int]]] = SharedParts(lambda value: value[0])
    used = [parts.share(([number],))[0] for number in range(700)]
    for number in range(700, 5_000):
        parts.share(([number],))
    assert len(parts) < 1_500
    assert all(parts.share(([number],))[0] is kept for number, kept in enumerate(used))
