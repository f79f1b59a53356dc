"""DaemonSets: which nodes they want, how they are updated, with and without surge."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.actors.actor_world import (
    NAMESPACE,
    a_template,
    a_workload,
    a_world,
    add_node,
    is_ready,
    list_pods,
    merge,
    names_of,
    status_of,
)
from wukong.api.kinds import DAEMON_SETS, NODES, PODS
from wukong.api.resources import Key
from wukong.embedded.world.world import World
from wukong.ports import Document, PatchBody

SLOW = {"sim.novasphere.dev/ready-seconds": "5"}


def create_daemons(world: World, template: Document | None = None, **spec: Any) -> None:
    world.server.create(DAEMON_SETS, a_workload(replicas=None, template=template, **spec), NAMESPACE)
    world.run()


def nodes_with_daemons(world: World) -> list[str]:
    return sorted(pod["spec"].get("nodeName", "") for pod in list_pods(world))


def taint(world: World, node: str, effect: str) -> None:
    body = {"spec": {"taints": [{"key": "x", "effect": effect}]}}
    world.server.patch(NODES, Key("", node), PatchBody("merge", body))
    world.run()


def count_wanted(world: World) -> tuple[int, int]:
    """How many nodes should have a daemon, and how many have one that they should not have, by the status."""
    counts = status_of(world, DAEMON_SETS)
    return counts["desiredNumberScheduled"], counts["numberMisscheduled"]


def require_labels(**labels: str) -> Document:
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]} for key, value in labels.items()]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, ["n0", "n1", "special"]),
        ({"nodeSelector": {"pool": "special"}}, ["special"]),
        ({"affinity": require_labels(pool="special")}, ["special"]),
        ({"affinity": require_labels(pool="special", kind="other")}, ["special"]),
        ({"nodeSelector": {"pool": "nowhere"}}, []),
    ],
)
def test_a_daemon_comes_where_selector_and_affinity_let_it(more: Document, expected: list[str]) -> None:
    world = a_world(2)
    add_node(world, "special", pool="special")
    template = a_template()
    template["spec"] |= more
    create_daemons(world, template)
    assert nodes_with_daemons(world) == expected
    assert status_of(world, DAEMON_SETS)["desiredNumberScheduled"] == len(expected)


def test_a_taint_that_only_keeps_away_leaves_daemons_where_they_are() -> None:
    world = a_world(2)
    create_daemons(world)
    taint(world, "n0", "NoSchedule")
    assert nodes_with_daemons(world) == ["n0", "n1"]
    assert count_wanted(world) == (2, 0)  # nobody looks: kube-controller-manager's syncNodeUpdate sees nothing to do
    merge(world, DAEMON_SETS, "web", {"spec": {"minReadySeconds": 1}})
    world.run()
    assert count_wanted(world) == (1, 1)
    world.server.patch(NODES, Key("", "n0"), PatchBody("merge", {"spec": {"taints": None}}))
    world.run()
    assert count_wanted(world) == (2, 0)
    taint(world, "n0", "NoSchedule")
    world.server.delete(PODS, Key(NAMESPACE, names_of(list_pods(world))[0]))
    world.server.delete(PODS, Key(NAMESPACE, names_of(list_pods(world))[1]))
    world.run()
    assert nodes_with_daemons(world) == ["n1"]


def test_a_node_that_goes_is_wanted_until_its_pod_is_gone_too() -> None:
    world = a_world(2)
    create_daemons(world)
    world.server.delete(NODES, Key("", "n0"))
    world.run(seconds=30)
    assert count_wanted(world) == (2, 0)
    world.run()
    assert nodes_with_daemons(world) == ["n1"]
    assert count_wanted(world) == (1, 0)


def test_a_taint_that_drives_out_takes_daemons_away() -> None:
    world = a_world(2)
    create_daemons(world)
    taint(world, "n0", "NoExecute")
    assert nodes_with_daemons(world) == ["n1"]


def test_daemons_tolerate_what_befalls_nodes() -> None:
    world = a_world(1)
    template = a_template()
    template["spec"]["tolerations"] = [
        {"key": "mine", "operator": "Exists"},
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
    ]
    template["spec"]["hostNetwork"] = True
    create_daemons(world, template)
    (pod,) = list_pods(world)
    tolerations = [
        (toleration["key"], toleration.get("effect"), toleration.get("tolerationSeconds"))
        for toleration in pod["spec"]["tolerations"]
    ]
    own = ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable", "network-unavailable")
    assert tolerations == [
        ("mine", None, None),
        ("node.kubernetes.io/not-ready", "NoExecute", None),
        ("node.kubernetes.io/unreachable", "NoExecute", None),
        *((f"node.kubernetes.io/{name}", "NoSchedule", None) for name in own),
    ]


@pytest.mark.slow
def test_which_node_is_updated_first_is_a_matter_of_chance() -> None:
    """kube-controller-manager takes nodes as a Go map gives them."""
    first = set()
    for seed in range(12):
        world = a_world(3, seed=seed)
        create_daemons(world)
        merge(world, DAEMON_SETS, "web", {"spec": {"template": a_template("app:2", **SLOW)}})
        world.run(seconds=1)
        first |= {pod["spec"]["nodeName"] for pod in list_pods(world) if not is_ready(pod)}
    assert first == {"n0", "n1", "n2"}


def update_all(world: World) -> tuple[int, int]:
    """Update all pods. Returns the fewest nodes with a ready pod, and the most pods that stay."""
    fewest, most = len(nodes_with_daemons(world)), 0

    def observe(_: object) -> None:
        nonlocal fewest, most
        pods = list_pods(world)
        fewest = min(fewest, len({pod["spec"].get("nodeName") for pod in pods if is_ready(pod)}))
        most = max(most, sum("deletionTimestamp" not in pod["metadata"] for pod in pods))

    world.listen(observe)
    merge(world, DAEMON_SETS, "web", {"spec": {"template": a_template("app:2", **SLOW)}})
    world.run()
    assert [pod["spec"]["containers"][0]["image"] for pod in list_pods(world)] == ["app:2"] * len(
        nodes_with_daemons(world)
    )
    assert status_of(world, DAEMON_SETS)["updatedNumberScheduled"] == len(nodes_with_daemons(world))
    return fewest, most


@pytest.mark.parametrize(
    ("rolling", "fewest", "most"),
    [
        ({"maxUnavailable": 1}, 3, 4),
        ({"maxUnavailable": 2}, 2, 4),
        ({"maxUnavailable": "50%"}, 2, 4),
        ({"maxUnavailable": 0, "maxSurge": 1}, 4, 5),
        ({"maxUnavailable": 0, "maxSurge": "100%"}, 4, 8),
    ],
)
def test_an_update_stays_within_surge_and_unavailability(rolling: Document, fewest: int, most: int) -> None:
    world = a_world(4)
    create_daemons(world, a_template(**SLOW), updateStrategy={"type": "RollingUpdate", "rollingUpdate": rolling})
    assert update_all(world) == (fewest, most)
    assert nodes_with_daemons(world) == ["n0", "n1", "n2", "n3"]


def test_old_daemons_that_are_no_use_are_replaced_at_once() -> None:
    world = a_world(3)
    create_daemons(world, a_template(**{"sim.novasphere.dev/never-ready": "true"}))
    merge(world, DAEMON_SETS, "web", {"spec": {"template": {"metadata": {"annotations": None}}}})
    world.run(lambda state: all(pod.is_terminating for pod in state.objects["Pod"].values()))  # type: ignore[attr-defined]
    world.run()
    assert status_of(world, DAEMON_SETS)["numberAvailable"] == 3


def test_nothing_rolls_where_the_strategy_is_on_delete() -> None:
    world = a_world(2)
    create_daemons(world, updateStrategy={"type": "OnDelete"})
    merge(world, DAEMON_SETS, "web", {"spec": {"template": a_template("app:2")}})
    world.run()
    assert "updatedNumberScheduled" not in status_of(world, DAEMON_SETS)
    world.server.delete(PODS, Key(NAMESPACE, names_of(list_pods(world))[0]))
    world.run()
    assert sorted(pod["spec"]["containers"][0]["image"] for pod in list_pods(world)) == ["app:1", "app:2"]


def test_daemons_of_a_node_that_is_gone_are_left_to_the_garbage_collector() -> None:
    world = a_world(2)
    create_daemons(world)
    world.server.delete(NODES, Key("", "n0"))
    world.run(seconds=30)
    assert nodes_with_daemons(world) == ["n0", "n1"]
    world.run(seconds=60)
    assert nodes_with_daemons(world) == ["n1"]
