"""Who may be bound to a node, and what a Scale says and takes."""

from __future__ import annotations

from typing import Any

import pytest

from wukong.api.kinds import DEPLOYMENTS, NAMESPACES, PODS
from wukong.api.resources import Key
from wukong.embedded.store import Server
from wukong.embedded.store.binding_and_scale import apply_scale, scale_of
from wukong.embedded.world.clock import VirtualClock
from wukong.errors import Conflict, Invalid, NotFound
from wukong.ports import Document, PatchBody

WEB = Key("shop", "web")
CONTAINERS = [{"name": "main", "image": "app:1"}]


def a_server(**spec: Any) -> Server:
    server = Server(VirtualClock())
    server.create(NAMESPACES, {"metadata": {"name": "shop"}})
    meta = {"name": "web", "finalizers": ["example.com/held"]}
    server.create(PODS, {"metadata": meta, "spec": {"containers": CONTAINERS, **spec}}, "shop")
    return server


def test_a_bound_pod_is_scheduled_and_nominated_no_longer() -> None:
    server = a_server()
    server.patch(PODS, WEB, PatchBody("merge", {"status": {"nominatedNodeName": "n9"}}), "status")
    server.bind(WEB, "n1")
    pod = server.get(PODS, WEB)
    assert pod["spec"]["nodeName"] == "n1"
    assert "nominatedNodeName" not in pod["status"]
    (scheduled,) = [condition for condition in pod["status"]["conditions"] if condition["type"] == "PodScheduled"]
    assert scheduled["status"] == "True"


def test_a_pod_is_bound_once() -> None:
    server = a_server()
    server.bind(WEB, "n1")
    with pytest.raises(Conflict, match='pod web is already assigned to node "n1"'):
        server.bind(WEB, "n2")
    assert server.get(PODS, WEB)["spec"]["nodeName"] == "n1"


def test_a_pod_that_is_being_deleted_is_not_bound() -> None:
    server = a_server()
    server.delete(PODS, WEB)
    with pytest.raises(Conflict, match="pod web is being deleted, cannot be assigned to a host"):
        server.bind(WEB, "n1")


def test_a_pod_with_gates_is_not_bound() -> None:
    server = a_server(schedulingGates=[{"name": "example.com/wait"}])
    with pytest.raises(Conflict, match=r"pod web has non-empty \.spec\.schedulingGates"):
        server.bind(WEB, "n1")


def test_a_binding_is_for_the_very_pod() -> None:
    server = a_server()
    with pytest.raises(NotFound):
        server.bind(Key("shop", "other"), "n1")
    with pytest.raises(Conflict):
        server.bind(WEB, "n1", uid="another")
    server.bind(WEB, "n1", uid=server.get(PODS, WEB)["metadata"]["uid"])


META = {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7", "creationTimestamp": "t", "labels": {}}


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        ({"app": "web", "a": "b"}, "a=b,app=web"),  # of a ReplicationController
        ({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2"),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "y"]}]}, "a in (x,y)"),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["x"]}]}, "a notin (x)"),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, "a"),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, "!a"),
        ({"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "Exists"}]}, "a=1,b"),
        ({}, ""),
    ],
)
def test_a_scale_tells_counts_and_the_selector_in_words(selector: Document, text: str) -> None:
    workload = {"metadata": META, "spec": {"replicas": 3, "selector": selector}, "status": {"replicas": 2}}
    assert scale_of(workload) == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: value for name, value in META.items() if name != "labels"},
        "spec": {"replicas": 3},
        "status": {"replicas": 2, "selector": text},
    }


def test_a_scale_without_counts_is_of_none() -> None:
    scale = scale_of({"metadata": META, "spec": {}})
    assert (scale["spec"], scale["status"]) == ({"replicas": 0}, {"replicas": 0, "selector": ""})


def test_a_changed_scale_changes_the_replicas_alone_at_its_version() -> None:
    workload = {"metadata": META, "spec": {"replicas": 3, "paused": True}}
    changed = apply_scale(workload, {"metadata": {"resourceVersion": "9"}, "spec": {"replicas": 5}})
    assert changed["spec"] == {"replicas": 5, "paused": True}
    assert changed["metadata"] == {**META, "resourceVersion": "9"}
    assert apply_scale(workload, {"metadata": {}, "spec": {}})["spec"]["replicas"] == 0


@pytest.mark.parametrize("replicas", [-1, "5"])
def test_a_scale_of_no_count_is_refused(replicas: Any) -> None:
    workload = {"metadata": META, "spec": {"replicas": 3}}
    with pytest.raises(
        Invalid, match=rf"spec\.replicas: Invalid value: {replicas}: must be greater than or equal to 0"
    ):
        apply_scale(workload, {"metadata": {}, "spec": {"replicas": replicas}})


def test_a_workload_is_scaled_by_its_subresource() -> None:
    server = a_server()
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": CONTAINERS}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    server.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec}, "shop")
    scale = server.patch(DEPLOYMENTS, WEB, PatchBody("merge", {"spec": {"replicas": 4}}), "scale")
    assert (scale["kind"], scale["spec"]["replicas"]) == ("Scale", 4)
    assert server.get(DEPLOYMENTS, WEB)["spec"]["replicas"] == 4
