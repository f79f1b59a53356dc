"""DaemonSets: which nodes they want, how they are updated, with and without surge."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.actors.playing import (
    NAMESPACE,
    a_template,
    a_workload,
    a_world,
    add_node,
    all_pods,
    is_ready,
    merging,
    names,
    status,
)
from wukong.api.kinds import DAEMON_SETS, NODES, PODS
from wukong.api.resources import Key
from wukong.embedded.world.world import World
from wukong.ports import Document, PatchBody

SLOW = {"sim.novasphere.dev/ready-seconds": "5"}


def daemons(world: World, template: Document | None = None, **spec: Any) -> None:
    world.server.create(DAEMON_SETS, a_workload(replicas=None, template=template, **spec), NAMESPACE)
    world.run()


def homes(world: World) -> list[str]:
    return sorted(it["spec"].get("nodeName", "") for it in all_pods(world))


def taint(world: World, node: str, effect: str) -> None:
    body = {"spec": {"taints": [{"key": "x", "effect": effect}]}}
    world.server.patch(NODES, Key("", node), PatchBody("merge", body))
    world.run()


def requiring(**labels: str) -> Document:
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]} for key, value in labels.items()]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, ["n0", "n1", "special"]),
        ({"nodeSelector": {"pool": "special"}}, ["special"]),
        ({"affinity": requiring(pool="special")}, ["special"]),
        ({"affinity": requiring(pool="special", kind="other")}, ["special"]),
        ({"nodeSelector": {"pool": "nowhere"}}, []),
    ],
)
def test_a_daemon_comes_where_selector_and_affinity_let_it(more: Document, expected: list[str]) -> None:
    world = a_world(2)
    add_node(world, "special", pool="special")
    template = a_template()
    template["spec"] |= more
    daemons(world, template)
    assert homes(world) == expected
    assert status(world, DAEMON_SETS)["desiredNumberScheduled"] == len(expected)


def test_a_taint_that_only_keeps_away_leaves_daemons_where_they_are() -> None:
    world = a_world(2)
    daemons(world)
    taint(world, "n0", "NoSchedule")
    assert homes(world) == ["n0", "n1"]
    told = status(world, DAEMON_SETS)
    assert (told["desiredNumberScheduled"], told["numberMisscheduled"]) == (1, 1)
    world.server.delete(PODS, Key(NAMESPACE, names(all_pods(world))[0]))
    world.server.delete(PODS, Key(NAMESPACE, names(all_pods(world))[1]))
    world.run()
    assert homes(world) == ["n1"]


def test_a_taint_that_drives_out_takes_daemons_away() -> None:
    world = a_world(2)
    daemons(world)
    taint(world, "n0", "NoExecute")
    assert homes(world) == ["n1"]


def test_daemons_tolerate_what_befalls_nodes() -> None:
    world = a_world(1)
    template = a_template()
    template["spec"]["tolerations"] = [
        {"key": "mine", "operator": "Exists"},
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
    ]
    template["spec"]["hostNetwork"] = True
    daemons(world, template)
    (pod,) = all_pods(world)
    found = [(it["key"], it.get("effect"), it.get("tolerationSeconds")) for it in pod["spec"]["tolerations"]]
    own = ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable", "network-unavailable")
    assert found == [
        ("mine", None, None),
        ("node.kubernetes.io/not-ready", "NoExecute", None),
        ("node.kubernetes.io/unreachable", "NoExecute", None),
        *((f"node.kubernetes.io/{name}", "NoSchedule", None) for name in own),
    ]


def updated(world: World) -> tuple[int, int]:
    """Update all pods; gives the fewest nodes with a ready pod, and the most pods that stay."""
    fewest, most = len(homes(world)), 0

    def hear(_: object) -> None:
        nonlocal fewest, most
        found = all_pods(world)
        fewest = min(fewest, len({it["spec"].get("nodeName") for it in found if is_ready(it)}))
        most = max(most, sum("deletionTimestamp" not in it["metadata"] for it in found))

    world.listen(hear)
    merging(world, DAEMON_SETS, "web", {"spec": {"template": a_template("app:2", **SLOW)}})
    world.run()
    assert [it["spec"]["containers"][0]["image"] for it in all_pods(world)] == ["app:2"] * len(homes(world))
    assert status(world, DAEMON_SETS)["updatedNumberScheduled"] == len(homes(world))
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
    daemons(world, a_template(**SLOW), updateStrategy={"type": "RollingUpdate", "rollingUpdate": rolling})
    assert updated(world) == (fewest, most)
    assert homes(world) == ["n0", "n1", "n2", "n3"]


def test_old_daemons_that_are_no_use_are_replaced_at_once() -> None:
    world = a_world(3)
    daemons(world, a_template(**{"sim.novasphere.dev/never-ready": "true"}))
    merging(world, DAEMON_SETS, "web", {"spec": {"template": {"metadata": {"annotations": None}}}})
    world.run(lambda state: all(it.is_terminating for it in state.objects["Pod"].values()))  # type: ignore[attr-defined]
    world.run()
    assert status(world, DAEMON_SETS)["numberAvailable"] == 3


def test_nothing_rolls_where_the_strategy_is_on_delete() -> None:
    world = a_world(2)
    daemons(world, updateStrategy={"type": "OnDelete"})
    merging(world, DAEMON_SETS, "web", {"spec": {"template": a_template("app:2")}})
    world.run()
    assert "updatedNumberScheduled" not in status(world, DAEMON_SETS)
    world.server.delete(PODS, Key(NAMESPACE, names(all_pods(world))[0]))
    world.run()
    assert sorted(it["spec"]["containers"][0]["image"] for it in all_pods(world)) == ["app:1", "app:2"]


def test_daemons_of_a_node_that_is_gone_are_left_to_the_garbage_collector() -> None:
    world = a_world(2)
    daemons(world)
    world.server.delete(NODES, Key("", "n0"))
    world.run(seconds=30)
    assert homes(world) == ["n0", "n1"]
    world.run(seconds=60)
    assert homes(world) == ["n1"]
