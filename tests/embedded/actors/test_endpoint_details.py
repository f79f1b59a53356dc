"""EndpointSlices in detail: what an endpoint says of its pod, at which ports it is reached, and what owns a slice."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.actors.actor_world import LABELS, NAMESPACE, a_template, a_workload, a_world, list_pods, merge
from wukong.api.kinds import DEPLOYMENTS, ENDPOINT_SLICES, NODES, SERVICES
from wukong.api.resources import Key
from wukong.embedded.actors.endpoint_slices.slices import plan_slices
from wukong.embedded.world.world import World
from wukong.ports import Document, PatchBody


def a_served_world(template: Document | None = None, replicas: int = 1, **spec: Any) -> World:
    """A Deployment and a Service in front of it."""
    world = a_world()
    body = {"selector": LABELS, "ports": [{"port": 80}], **spec}
    meta = {"name": "web", "labels": {"team": "a"}}
    world.server.create(SERVICES, {"metadata": meta, "spec": body}, NAMESPACE)
    world.server.create(DEPLOYMENTS, a_workload(replicas=replicas, template=template or a_template()), NAMESPACE)
    world.run(seconds=30)
    return world


def slices(world: World) -> list[Document]:
    return list(world.server.list(ENDPOINT_SLICES).items)


def ports(world: World) -> list[list[tuple[Any, ...]]]:
    fields = ("name", "port", "protocol", "appProtocol")
    return [[tuple(port.get(field) for field in fields) for port in item.get("ports") or ()] for item in slices(world)]


def only_endpoint(world: World) -> Document:
    ((endpoint,),) = [item["endpoints"] for item in slices(world)]
    assert isinstance(endpoint, dict)
    return endpoint


def test_an_endpoint_says_which_pod_it_is_and_where() -> None:
    world = a_served_world()
    (pod,) = list_pods(world)
    node = pod["spec"]["nodeName"]
    endpoint = only_endpoint(world)
    assert endpoint["addresses"] == [pod["status"]["podIP"]]
    assert endpoint["nodeName"] == node
    meta = pod["metadata"]
    assert endpoint["targetRef"] == {
        "kind": "Pod", "namespace": NAMESPACE, "name": meta["name"], "uid": meta["uid"],
    }  # fmt: skip
    assert "hostname" not in endpoint
    in_east = PatchBody("merge", {"metadata": {"labels": {"topology.kubernetes.io/zone": "east"}}})
    world.server.patch(NODES, Key("", node), in_east)
    world.run(seconds=5)
    assert only_endpoint(world)["zone"] == "east"


@pytest.mark.parametrize(
    ("fields", "hostname"),
    [
        ({"hostname": "one", "subdomain": "web"}, "one"),
        ({"hostname": "one", "subdomain": "other"}, None),
        ({"hostname": "one"}, None),
        ({"subdomain": "web"}, None),
    ],
)
def test_a_pod_of_the_services_subdomain_is_known_by_its_hostname(fields: Document, hostname: str | None) -> None:
    template = a_template()
    template["spec"] |= fields
    assert only_endpoint(a_served_world(template)).get("hostname") == hostname


def test_a_slice_belongs_to_its_service_and_carries_its_labels() -> None:
    world = a_served_world()
    (only,) = slices(world)
    service = world.server.get(SERVICES, Key(NAMESPACE, "web"))
    (owner,) = only["metadata"]["ownerReferences"]
    assert owner == {
        "apiVersion": "v1", "kind": "Service", "name": "web", "uid": service["metadata"]["uid"],
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip
    labels = {"team": "a", "kubernetes.io/service-name": "web"}
    manager = {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}
    assert (only["metadata"]["labels"], only["addressType"]) == (labels | manager, "IPv4")
    merge(world, SERVICES, "web", {"metadata": {"labels": {"team": "b"}}})
    world.run(seconds=5)
    (changed,) = slices(world)
    assert changed["metadata"]["name"] == only["metadata"]["name"]
    assert changed["metadata"]["labels"]["team"] == "b"
    assert changed["endpoints"] == only["endpoints"]


def test_slices_of_a_headless_service_say_so() -> None:
    (only,) = slices(a_served_world(clusterIP="None"))
    assert only["metadata"]["labels"]["service.kubernetes.io/headless"] == ""


@pytest.mark.parametrize("spec", [{"selector": None}, {"type": "ExternalName", "externalName": "a.b"}])
def test_a_service_that_selects_nobody_has_no_slices(spec: Document) -> None:
    assert slices(a_served_world(**spec)) == []


def test_a_slice_that_somebody_deletes_comes_back() -> None:
    world = a_served_world()
    (before,) = slices(world)
    world.server.delete(ENDPOINT_SLICES, Key(NAMESPACE, before["metadata"]["name"]))
    world.run(seconds=5)
    (after,) = slices(world)
    assert after["metadata"]["name"] != before["metadata"]["name"]
    assert after["endpoints"] == before["endpoints"]


@pytest.mark.parametrize(
    ("port", "expected"),
    [
        ({"port": 80}, [("", 80, "TCP", None)]),
        ({"port": 80, "targetPort": 8080, "name": "a"}, [("a", 8080, "TCP", None)]),
        ({"port": 80, "targetPort": "http", "appProtocol": "h2"}, [("", 8080, "TCP", "h2")]),
        ({"port": 80, "targetPort": "dns", "protocol": "UDP"}, [("", 5353, "UDP", None)]),
        ({"port": 80, "targetPort": "dns"}, []),  # it has it by another protocol
        ({"port": 80, "targetPort": "beside"}, [("", 9000, "TCP", None)]),
        ({"port": 80, "targetPort": "first"}, []),  # an init container that ends is not reached
        ({"port": 80, "targetPort": "gone"}, []),
    ],
)
def test_a_named_port_is_that_of_a_container_that_stays(port: Document, expected: list[tuple[Any, ...]]) -> None:
    template = a_template()
    main = template["spec"]["containers"][0]
    main["ports"] = [
        {"name": "http", "containerPort": 8080},
        {"name": "dns", "containerPort": 5353, "protocol": "UDP"},
    ]
    template["spec"]["initContainers"] = [
        {**main, "name": "first", "ports": [{"name": "first", "containerPort": 7000}]},
        {**main, "name": "beside", "restartPolicy": "Always", "ports": [{"name": "beside", "containerPort": 9000}]},
    ]
    world = a_served_world(template, ports=[port])
    assert ports(world) == [expected]
    assert len(only_endpoint(world)["addresses"]) == 1


def an_endpoint(number: int) -> Document:
    return {"targetRef": {"uid": f"u{number:03}", "name": f"p{number:03}"}}


def plan_more(counts: list[int], more: int) -> tuple[list[int], dict[str, int]]:
    """How large new slices are, and old ones that take some of `more` endpoints."""
    numbers = iter(range(1000))
    existing = [(f"s{index}", [an_endpoint(next(numbers)) for _ in range(count)]) for index, count in enumerate(counts)]
    wanted = [entry for _, entries in existing for entry in entries] + [an_endpoint(next(numbers)) for _ in range(more)]
    plan = plan_slices(existing, {entry["targetRef"]["uid"]: entry for entry in wanted})
    assert plan.deleted == []
    return [len(entry) for entry in plan.created], {name: len(entries) for name, entries in plan.updated.items()}


@pytest.mark.parametrize(
    ("counts", "more", "created", "updated"),
    [
        ([60, 99], 1, [], {"s1": 100}),
        ([60, 100], 1, [], {"s0": 61}),
        ([60, 99], 2, [], {"s0": 62}),
        ([50], 51, [51], {}),
        ([50], 50, [], {"s0": 100}),
        ([0], 100, [100], {}),
        ([1], 100, [100], {}),
        ([1], 199, [100], {"s0": 100}),
        ([5], 0, [], {}),
    ],
)
def test_the_fullest_slice_that_takes_all_the_rest_is_filled(
    counts: list[int], more: int, created: list[int], updated: dict[str, int]
) -> None:
    assert plan_more(counts, more) == (created, updated)
