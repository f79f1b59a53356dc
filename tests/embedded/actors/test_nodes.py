"""Nodes that fall silent, and the same trace for the same seed."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from embedded.actors.actor_world import (
    NAMESPACE,
    a_template,
    a_workload,
    a_world,
    add_node,
    get_object,
    is_ready,
    list_pods,
    merge,
    names_of,
)
from wukong.api.kinds import DEPLOYMENTS, NODES, REPLICA_SETS, STATEFUL_SETS
from wukong.api.resources import Key
from wukong.embedded.actors import Behaviour
from wukong.embedded.store.documents import parse_time
from wukong.embedded.world.world import World
from wukong.ports import Document, PatchBody


def silence(world: World, node: str, is_silent: bool = True) -> None:
    body = {"metadata": {"annotations": {"sim.novasphere.dev/silent": "true" if is_silent else None}}}
    world.server.patch(NODES, Key("", node), PatchBody("merge", body))


def taints_of(world: World, node: str) -> set[tuple[str, str]]:
    taints = world.server.get(NODES, Key("", node))["spec"].get("taints") or []
    return {(taint["key"].removeprefix("node.kubernetes.io/"), taint["effect"]) for taint in taints}


def ready_status_of(node: Document) -> str:
    return next(str(condition["status"]) for condition in node["status"]["conditions"] if condition["type"] == "Ready")


def test_new_nodes_lose_the_taint_of_admission_when_they_are_ready() -> None:
    assert taints_of(a_world(1), "n0") == set()


def test_a_silent_node_is_unknown_then_tainted_and_its_pods_leave_after_five_minutes() -> None:
    world = a_world(2)
    world.server.create(REPLICA_SETS, a_workload(replicas=2), NAMESPACE)
    world.run()
    silence(world, "n0")
    world.run(seconds=39)
    assert ready_status_of(world.server.get(NODES, Key("", "n0"))) == "True"
    world.run(seconds=17)
    assert ready_status_of(world.server.get(NODES, Key("", "n0"))) == "Unknown"
    assert taints_of(world, "n0") == {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}
    assert [is_ready(pod) for pod in list_pods(world) if pod["spec"]["nodeName"] == "n0"] == [False]
    world.run(seconds=280)
    assert len(list_pods(world)) == 2
    world.run(seconds=30)
    leaving = [pod for pod in list_pods(world) if "deletionTimestamp" in pod["metadata"]]
    assert [pod["spec"]["nodeName"] for pod in leaving] == ["n0"]
    assert get_object(world, REPLICA_SETS)["status"]["availableReplicas"] == 2


def test_a_node_that_comes_back_in_time_keeps_its_pods() -> None:
    world = a_world(2)
    world.server.create(REPLICA_SETS, a_workload(replicas=2), NAMESPACE)
    world.run()
    silence(world, "n0")
    world.run(seconds=100)
    silence(world, "n0", is_silent=False)
    assert world.run() == "quiet"
    assert taints_of(world, "n0") == set()
    assert [is_ready(pod) for pod in list_pods(world)] == [True, True]


def test_pods_of_a_node_that_is_declared_out_of_service_need_no_kubelet_to_go() -> None:
    world = a_world(3)
    world.server.create(STATEFUL_SETS, a_workload(serviceName="web", replicas=2), NAMESPACE)
    world.run()
    (home,) = [pod["spec"]["nodeName"] for pod in list_pods(world) if pod["metadata"]["name"] == "web-0"]
    silence(world, home)
    world.run(seconds=3600)
    assert [pod["spec"]["nodeName"] for pod in list_pods(world) if pod["metadata"]["name"] == "web-0"] == [home]
    there = world.server.get(NODES, Key("", home))["spec"]["taints"]
    vouched = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
    world.server.patch(NODES, Key("", home), PatchBody("merge", {"spec": {"taints": [*there, vouched]}}))
    world.run(seconds=30)
    (replacement,) = [pod for pod in list_pods(world) if pod["metadata"]["name"] == "web-0"]
    assert replacement["spec"]["nodeName"] != home
    assert is_ready(replacement)


def list_no_execute(world: World) -> list[str]:
    """The nodes with a NoExecute taint."""
    return [
        name
        for name in names_of(world.server.list(NODES).items)
        if ("unreachable", "NoExecute") in taints_of(world, name)
    ]


def test_nodes_of_a_zone_are_tainted_ten_seconds_after_each_other() -> None:
    world = a_world(8)
    for name in ("n0", "n1", "n2", "n3"):
        silence(world, name)
    world.run(seconds=120)
    taints = [world.server.get(NODES, Key("", name))["spec"]["taints"] for name in list_no_execute(world)]
    no_execute = [taint for on_node in taints for taint in on_node if taint["effect"] == "NoExecute"]
    added = sorted(parse_time(taint["timeAdded"]) for taint in no_execute)
    assert len(added) == 4
    assert all(later - earlier >= 10 for earlier, later in pairwise(added))


def test_where_every_node_is_silent_nobody_is_driven_out() -> None:
    world = a_world(2)
    world.server.create(REPLICA_SETS, a_workload(replicas=2), NAMESPACE)
    world.run()
    silence(world, "n0")
    world.run(seconds=100)
    assert list_no_execute(world) == ["n0"]
    silence(world, "n1")
    world.run(seconds=100)
    assert [taints_of(world, name) for name in ("n0", "n1")] == [{("unreachable", "NoSchedule")}] * 2
    world.run(seconds=3600)
    assert [pod["metadata"].get("deletionTimestamp") for pod in list_pods(world)] == [None, None]
    silence(world, "n1", is_silent=False)
    world.run(seconds=30)
    assert list_no_execute(world) == ["n0"]


def test_of_a_small_zone_that_is_mostly_down_no_more_nodes_are_emptied() -> None:
    world = a_world(5)
    for name in ("n0", "n1", "n2"):
        silence(world, name)
    world.run(seconds=600)
    assert len(list_no_execute(world)) <= 1  # the first was tainted before the third was missed, if it was
    silence(world, "n2", is_silent=False)
    world.run(seconds=600)
    assert list_no_execute(world) == ["n0", "n1"]


def test_a_large_zone_that_is_mostly_down_is_emptied_slowly() -> None:
    world = a_world(0)
    for number in range(60):
        add_node(world, f"n{number}")
    world.run()
    for number in range(40):
        silence(world, f"n{number}")
    world.run(seconds=60)
    tainted_before = len(list_no_execute(world))
    world.run(seconds=1000)
    assert 9 <= len(list_no_execute(world)) - tainted_before <= 11


def test_a_zone_that_is_all_down_is_emptied_while_others_live() -> None:
    world = a_world(0)
    for number in range(3):
        add_node(world, f"a{number}", **{"topology.kubernetes.io/zone": "a"})
        add_node(world, f"b{number}", **{"topology.kubernetes.io/zone": "b"})
    world.run()
    for number in range(3):
        silence(world, f"a{number}")
    world.run(seconds=120)
    assert list_no_execute(world) == ["a0", "a1", "a2"]


def play_trace(seed: int) -> str:
    world = a_world(3, seed=seed, behaviour=Behaviour(spread=0.5))
    world.server.create(DEPLOYMENTS, a_workload(replicas=7), NAMESPACE)
    world.run()
    merge(world, DEPLOYMENTS, "web", {"spec": {"template": a_template("app:2")}})
    silence(world, "n1")
    world.run(seconds=900)
    return "\n".join(map(str, world.trace))


@pytest.mark.slow
def test_the_same_seed_gives_the_same_trace_in_another_process() -> None:
    own = hashlib.sha256(play_trace(7).encode()).hexdigest()
    code = (
        "import hashlib; from embedded.actors.test_nodes import play_trace;"
        "print(hashlib.sha256(play_trace(7).encode()).hexdigest())"
    )
    tests = Path(__file__).parents[2]
    for hash_seed in ("1", "2"):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": hash_seed,
            "PYTHONPATH": f"{tests.parent / 'src'}:{tests}:{tests.parent}",
        }
        ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert ran.stdout.strip() == own


def test_another_seed_gives_another_trace() -> None:
    assert play_trace(1) != play_trace(2)


def test_a_cordoned_node_is_tainted_until_it_is_uncordoned() -> None:
    world = a_world(1)
    key = Key("", world.server.list(NODES).items[0]["metadata"]["name"])
    taints_by_step = []
    for cordon in (True, None):
        world.server.patch(NODES, key, PatchBody("merge", {"spec": {"unschedulable": cordon}}))
        world.run()
        taints = world.server.get(NODES, key)["spec"].get("taints") or []
        taints_by_step.append([(taint["key"], taint["effect"]) for taint in taints])
    assert taints_by_step == [[("node.kubernetes.io/unschedulable", "NoSchedule")], []]
