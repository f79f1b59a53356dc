"""Host ports."""

from typing import Any

import pytest

from rules.samples import a_cluster, a_container, a_node, a_pod, a_sidecar
from wukong.api.core import Pod
from wukong.api.profile import default_profile
from wukong.api.versions import VERSIONS
from wukong.rules import decide
from wukong.rules.ports import HostPort, host_ports_of, reject


def with_port(port: int = 80, name: str = "new", **fields: Any) -> Pod:
    return a_pod(name, containers=[a_container(ports=[{"containerPort": 8080, "hostPort": port, **fields}])])


@pytest.mark.parametrize(
    ("wanted", "taken", "collides"),
    [
        ({}, {}, True),
        ({"hostIP": "0.0.0.0"}, {}, True),
        ({"hostIP": "10.0.0.1"}, {}, True),
        ({}, {"hostIP": "10.0.0.1"}, True),
        ({"hostIP": "10.0.0.1"}, {"hostIP": "10.0.0.2"}, False),
        ({"hostIP": "10.0.0.1"}, {"hostIP": "10.0.0.1"}, True),
        ({"protocol": "UDP"}, {}, False),
        ({"protocol": ""}, {"protocol": "TCP"}, True),
        ({"port": 81}, {}, False),
    ],
)
def test_ports_collide_by_address_protocol_and_number(wanted: Any, taken: Any, collides: bool) -> None:
    rejection = reject(with_port(**wanted), host_ports_of(with_port(**taken)))
    expected = (("node(s) didn't have free ports for the requested pod ports",), False)
    assert rejection == (expected if collides else None)


def test_ports_of_sidecars_count_and_those_of_other_init_containers_do_not() -> None:
    ports = [{"containerPort": 80, "hostPort": 80}]
    assert host_ports_of(a_pod(initContainers=[a_sidecar(ports=ports)])) == {HostPort("0.0.0.0", "TCP", 80)}
    assert host_ports_of(a_pod(initContainers=[a_container(ports=ports)])) == set()


def test_a_container_port_alone_takes_no_host_port() -> None:
    assert host_ports_of(a_pod(containers=[a_container(ports=[{"containerPort": 80}])])) == set()


def test_when_one_of_two_holders_leaves_the_port_is_free() -> None:
    cluster = a_cluster(a_node(), pods={"n1": [with_port(name="one"), with_port(name="two")]})
    cluster.remove("default/one")
    assert reject(with_port(), cluster.nodes["n1"].used_ports) is None


def test_up_to_1_33_sidecars_hold_no_ports() -> None:
    ports = [{"containerPort": 80, "hostPort": 80}]
    holder = a_pod("holder", initContainers=[a_sidecar(ports=ports)])
    cluster = a_cluster(a_node("n1"), pods={"n1": [holder]})
    newcomers = [a_pod("in-sidecar", initContainers=[a_sidecar(ports=ports)]), with_port(80)]
    for newcomer in newcomers:
        assert decide(cluster, newcomer, default_profile(VERSIONS["1.33"])).feasible == ["n1"]
        assert decide(cluster, newcomer, default_profile(VERSIONS["1.34"])).feasible == []
