"""What a write shares with what was stored, or with pods made alike, is as if it had been worked out anew."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import pytest

from embedded.random_patches import Body, a_map, a_patch, a_pod, a_workload, an_apply
from embedded.store_fixtures import CONFIG_MAPS, DEPLOYMENTS, NAMESPACE, PODS, a_server, key, merge_patch
from wukong.api.kinds import PRIORITY_CLASSES, REPLICA_SETS, STATEFUL_SETS
from wukong.api.resources import Key
from wukong.embedded.store import Server
from wukong.errors import ClusterError
from wukong.ports import Document, PatchBody

KINDS = {
    "ConfigMap": CONFIG_MAPS,
    "Deployment": DEPLOYMENTS,
    "Pod": PODS,
    "ReplicaSet": REPLICA_SETS,
    "StatefulSet": STATEFUL_SETS,
}
STATUSES: list[Document] = [
    {"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "message": ""}]},
    {"conditions": [{"type": "Ready", "status": "False"}, {"type": "Odd", "status": "True", "reason": None}]},
    {"replicas": 3, "readyReplicas": 0, "observedGeneration": 2},
    {"phase": 7},
]


def an_object(random: Random, kind: str) -> Document:
    if kind == "ConfigMap":
        return a_map("it")
    return a_pod("it") if kind == "Pod" else a_workload(random, "it")


def a_random_patch(random: Random, kind: str, document: Document) -> tuple[PatchBody, str]:
    if random.random() < 0.3 and kind != "ConfigMap":
        type_: Any = random.choice(["merge", "strategic"])
        return PatchBody(type_, {"status": copy.deepcopy(random.choice(STATUSES))}, manager="kubelet"), "status"
    if random.random() < 0.2:
        return an_apply(random, kind, "it"), ""
    return a_patch(random, kind, document), ""


def answer_of(server: Server, kind: str, patch: PatchBody, subresource: str) -> object:
    try:
        patched = server.patch(KINDS[kind], key("it"), patch, subresource)
    except ClusterError as error:
        return type(error), str(error)
    return without_version(patched)


def without_version(document: Document) -> Document:
    return {**document, "metadata": {**document["metadata"], "resourceVersion": ""}}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(8))
def test_a_patch_makes_the_same_of_an_object_that_is_known_and_of_one_restored(kind: str, seed: int) -> None:
    """A restored object was never looked at, so that all of it is read, filled in and checked with the next write."""
    random, server, other = Random(seed), a_server(definitions=[]), a_server(definitions=[])
    document = server.create(KINDS[kind], an_object(random, kind), NAMESPACE)
    for _ in range(12):
        patch, subresource = a_random_patch(random, kind, document)
        sent, before = copy.deepcopy(patch), copy.deepcopy(document)
        other.restore(KINDS[kind], [document])
        assert answer_of(server, kind, patch, subresource) == answer_of(other, kind, patch, subresource)
        assert patch == sent  # neither the patch nor what was stored is changed in place
        assert document == before
        stored = server.database.get(
            KINDS[kind].plural + (".apps" if kind.endswith(("Set", "ment")) else ""), key("it")
        )
        if stored is None:  # its last finalizer went
            return
        document = stored


@pytest.mark.parametrize("seed", range(8))
def test_a_pod_made_like_another_is_as_if_it_were_the_first(seed: int) -> None:
    random, server, fresh = Random(seed), a_server(definitions=[]), a_server(definitions=[])
    body = a_pod("first")
    body["spec"] |= {
        name: value for name, value in Body(random, "Pod", False).build_pod_spec().items() if value is not None
    }
    answers = []
    for target, name in ((server, "first"), (server, "second"), (fresh, "second")):
        sent = {**body, "metadata": {**body["metadata"], "name": name, "annotations": {"own": name}}}
        try:
            answers.append(target.create(PODS, sent, NAMESPACE))
        except ClusterError as error:
            answers.append({"error": str(error).replace("first", "second"), "metadata": {}})
    _, second, alone = answers
    assert {**second, "metadata": own_metadata_of(second)} == {**alone, "metadata": own_metadata_of(alone)}


def own_metadata_of(pod: Document) -> Document:
    return {name: value for name, value in pod["metadata"].items() if name not in ("uid", "resourceVersion")}


def test_a_pod_made_after_its_spec_was_edited_in_place_is_not_made_like_the_one_before() -> None:
    server, body = a_server(), a_pod("first")
    server.create(PODS, body, NAMESPACE)
    body["metadata"]["name"] = "second"
    body["spec"]["containers"][0]["image"] = "registry.example/other:2"
    assert server.create(PODS, body, NAMESPACE)["spec"]["containers"][0]["image"] == "registry.example/other:2"
    assert server.get(PODS, key("first"))["spec"]["containers"][0]["image"] == "registry.example/main:1"


def test_pods_made_alike_have_the_priority_of_the_class_that_is_the_default_when_they_are_made() -> None:
    server = a_server()
    first = server.create(PODS, a_pod("first"), NAMESPACE)
    default = {"metadata": {"name": "usual"}, "value": 100, "globalDefault": True}
    server.create(PRIORITY_CLASSES, default)
    second = server.create(PODS, a_pod("second"), NAMESPACE)
    server.patch(PRIORITY_CLASSES, Key("", "usual"), merge_patch(globalDefault=False))
    third = server.create(PODS, a_pod("third"), NAMESPACE)
    assert [pod["spec"]["priority"] for pod in (first, second, third)] == [0, 100, 0]


def test_a_pod_like_another_is_still_refused_for_its_own_name_and_labels() -> None:
    server = a_server()
    server.create(PODS, a_pod("first"), NAMESPACE)
    for meta in ({"name": "Second"}, {"name": "second", "annotations": {"a": 1}}, {"name": "x", "finalizers": ["y"]}):
        with pytest.raises(ClusterError):
            server.create(PODS, {**a_pod("first"), "metadata": {"labels": {"app": "web"}, **meta}}, NAMESPACE)
