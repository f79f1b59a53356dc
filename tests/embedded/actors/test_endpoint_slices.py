"""EndpointSlices on virtual time: who is in them, and how many writes it takes.

Beside kube-controller-manager they are in tests/live/test_endpoint_slices.py.
"""

from __future__ import annotations

from typing import Any

from embedded.actors.actor_world import LABELS, NAMESPACE, a_template, a_workload, a_world, list_pods, merge, scale
from wukong.api.kinds import DEPLOYMENTS, ENDPOINT_SLICES, NODES, PODS, SERVICES
from wukong.api.resources import Key
from wukong.embedded.actors.endpoint_slices.slices import plan_slices
from wukong.embedded.world.world import World
from wukong.ports import Document


def a_service(world: World, **spec: Any) -> None:
    body = {"selector": LABELS, "ports": [{"port": 80, "targetPort": "http"}], **spec}
    world.server.create(SERVICES, {"metadata": {"name": "web"}, "spec": body}, NAMESPACE)


def a_template_with_port(number: int = 8080, annotations: dict[str, str] | None = None) -> Document:
    template = a_template(**(annotations or {}))
    template["spec"]["containers"][0]["ports"] = [{"name": "http", "containerPort": number}]
    return template


def endpoints(world: World) -> list[Document]:
    return [entry for item in world.server.list(ENDPOINT_SLICES).items for entry in item.get("endpoints") or ()]


def count(world: World, condition: str) -> int:
    return sum(bool(endpoint["conditions"][condition]) for endpoint in endpoints(world))


def test_a_service_without_pods_has_an_empty_slice() -> None:
    world = a_world()
    a_service(world)
    world.run(seconds=5)
    (only,) = world.server.list(ENDPOINT_SLICES).items
    assert not only.get("endpoints")
    assert only["metadata"]["labels"]["kubernetes.io/service-name"] == "web"


def test_endpoints_follow_their_pods_until_they_are_gone() -> None:
    world = a_world()
    a_service(world)
    template = a_template_with_port(annotations={"sim.novasphere.dev/stop-seconds": "10"})
    world.server.create(DEPLOYMENTS, a_workload(template=template), NAMESPACE)
    world.run(seconds=30)
    assert (count(world, "ready"), count(world, "serving"), count(world, "terminating")) == (3, 3, 0)
    (only,) = world.server.list(ENDPOINT_SLICES).items
    assert [port["port"] for port in only["ports"]] == [8080]
    scale(world, DEPLOYMENTS, 2)
    world.run(seconds=5)
    assert (count(world, "ready"), count(world, "terminating")) == (2, 1)
    world.run(seconds=30)
    assert len(endpoints(world)) == 2


def test_pods_of_another_port_are_in_another_slice_and_unready_ones_are_published_on_demand() -> None:
    world = a_world()
    a_service(world, publishNotReadyAddresses=True)
    template = a_template_with_port(annotations={"sim.novasphere.dev/never-ready": "true"})
    world.server.create(DEPLOYMENTS, a_workload(template=template), NAMESPACE)
    world.run(seconds=30)
    assert (count(world, "ready"), count(world, "serving")) == (3, 0)
    template = a_template_with_port(9090)
    merge(world, DEPLOYMENTS, "web", {"spec": {"template": template}})
    world.run(seconds=2)
    numbers = {port["port"] for item in world.server.list(ENDPOINT_SLICES).items for port in item["ports"]}
    assert 9090 in numbers


def test_a_pod_whose_node_is_gone_is_left_out() -> None:
    world = a_world()
    a_service(world)
    world.server.create(DEPLOYMENTS, a_workload(template=a_template_with_port()), NAMESPACE)
    world.run(seconds=30)
    node = list_pods(world)[0]["spec"]["nodeName"]
    world.server.delete(NODES, Key("", node))
    world.run(seconds=5)
    assert all(endpoint["nodeName"] != node for endpoint in endpoints(world))
    assert world.server.list(PODS).items, "its pod is still there"


def an_endpoint(number: int, **more: Any) -> Document:
    return {"targetRef": {"uid": f"u{number:03}", "name": f"p{number:03}"}, **more}


def by_uid(endpoints: list[Document]) -> dict[str, Document]:
    return {endpoint["targetRef"]["uid"]: endpoint for endpoint in endpoints}


def test_a_slice_holds_a_hundred() -> None:
    plan = plan_slices([], by_uid([an_endpoint(number) for number in range(250)]))
    assert [len(entry) for entry in plan.created] == [100, 100, 50]


def test_new_endpoints_go_where_something_changes_anyhow() -> None:
    full, half = [an_endpoint(number) for number in range(90)], [an_endpoint(number) for number in range(90, 140)]
    changed = [{**half[0], "zone": "b"}, *half[1:]]
    plan = plan_slices([("full", full), ("half", half)], by_uid([*full, *changed, an_endpoint(200)]))
    assert (list(plan.updated), plan.created, plan.deleted) == (["half"], [], [])
    assert len(plan.updated["half"]) == 51


def test_a_slice_without_endpoints_goes_and_the_fullest_takes_one_more() -> None:
    first, second = [an_endpoint(1)], [an_endpoint(2), an_endpoint(3)]
    plan = plan_slices([("first", first), ("second", second)], by_uid([*second, an_endpoint(4)]))
    assert plan.deleted == ["first"]
    assert [entry["targetRef"]["name"] for entry in plan.updated["second"]] == ["p002", "p003", "p004"]
