"""Pods on nodes with a NoExecute taint: who is deleted and marked, and when."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from embedded.actors.actor_world import NAMESPACE, a_template, a_workload, a_world, list_pods, merge
from wukong.api.kinds import DAEMON_SETS, NODES, PODS, REPLICA_SETS
from wukong.api.resources import Key
from wukong.embedded.world.world import World
from wukong.ports import Document, PatchBody

GOING = {"key": "going", "value": "x", "effect": "NoExecute"}
STOPS_SLOWLY = {"sim.novasphere.dev/stop-seconds": "2"}


def set_taints(world: World, node: str, *taints: Mapping[str, str]) -> None:
    world.server.patch(NODES, Key("", node), PatchBody("merge", {"spec": {"taints": list(taints)}}))


def tolerate(seconds: int | None = None, key: str = "going") -> Document:
    limit = {} if seconds is None else {"tolerationSeconds": seconds}
    return {"key": key, "operator": "Exists", "effect": "NoExecute", **limit}


def create_pods(world: World, *tolerations: Document, replicas: int = 1, annotations: Document = STOPS_SLOWLY) -> None:
    template = a_template(**annotations)
    template["spec"]["tolerations"] = list(tolerations)
    world.server.create(REPLICA_SETS, a_workload(replicas=replicas, template=template), NAMESPACE)
    world.run()


def disruption_of(pod: Document) -> str:
    conditions = pod["status"].get("conditions") or []
    return next((condition["reason"] for condition in conditions if condition["type"] == "DisruptionTarget"), "")


def pods_on(world: World, node: str) -> list[Document]:
    return [pod for pod in list_pods(world) if pod["spec"].get("nodeName") == node]


def is_leaving(world: World, node: str) -> bool:
    return all("deletionTimestamp" in pod["metadata"] for pod in pods_on(world, node))


@pytest.mark.parametrize("seed", range(4))
def test_a_daemon_that_its_own_controller_deletes_is_marked_all_the_same(seed: int) -> None:
    world = a_world(2, seed=seed)
    template = a_template(**STOPS_SLOWLY)
    world.server.create(DAEMON_SETS, a_workload(replicas=None, template=template), NAMESPACE)
    world.run()
    set_taints(world, "n0", GOING)
    world.run(seconds=1)
    assert [disruption_of(pod) for pod in pods_on(world, "n0")] == ["DeletionByTaintManager"]
    assert [disruption_of(pod) for pod in pods_on(world, "n1")] == [""]
    world.run()
    assert pods_on(world, "n0") == []


def test_a_pod_that_was_leaving_before_the_taint_came_is_marked_too() -> None:
    world = a_world(1)
    create_pods(world)
    (pod,) = list_pods(world)
    world.server.delete(PODS, Key(NAMESPACE, pod["metadata"]["name"]))
    set_taints(world, "n0", GOING)
    world.run(seconds=1)
    assert "DeletionByTaintManager" in [disruption_of(pod) for pod in pods_on(world, "n0")]


def test_a_taint_without_a_time_is_tolerated_for_as_long_as_the_pod_says() -> None:
    world = a_world(1)
    create_pods(world, tolerate(5))
    set_taints(world, "n0", GOING)
    world.run(seconds=4)
    assert not is_leaving(world, "n0")
    merge(world, PODS, list_pods(world)[0]["metadata"]["name"], {"metadata": {"labels": {"any": "change"}}})
    world.run(seconds=2)
    assert is_leaving(world, "n0")


def test_a_pod_that_comes_to_a_tainted_node_is_given_its_whole_time() -> None:
    world = a_world(0)
    meta = {"name": "n0", "labels": {"kubernetes.io/hostname": "n0"}}
    taint = {**GOING, "timeAdded": "2020-01-01T00:00:00Z"}
    ready = {"type": "Ready", "status": "True"}
    world.server.create(NODES, {"metadata": meta, "spec": {"taints": [taint]}, "status": {"conditions": [ready]}})
    world.run()
    spec = {"containers": [{"name": "main", "image": "app:1"}], "tolerations": [tolerate(20)], "nodeName": "n0"}
    world.server.create(PODS, {"metadata": {"name": "late"}, "spec": spec}, NAMESPACE)
    world.run(seconds=15)
    assert not is_leaving(world, "n0")
    world.run(seconds=10)
    assert is_leaving(world, "n0")


def test_a_second_taint_does_not_shorten_the_time_that_runs_already() -> None:
    """kube-controller-manager keeps the timer it has: processPodOnNode of tainteviction returns before it sets one."""
    world = a_world(1)
    create_pods(world, tolerate(30, "going"), tolerate(5, "gone"))
    set_taints(world, "n0", GOING)
    world.run(seconds=2)
    set_taints(world, "n0", GOING, {"key": "gone", "effect": "NoExecute"})
    world.run(seconds=20)
    assert not is_leaving(world, "n0")
    world.run(seconds=10)
    assert is_leaving(world, "n0")


def test_a_second_taint_that_is_not_tolerated_drives_out_at_once() -> None:
    world = a_world(1)
    create_pods(world, tolerate(30, "going"))
    set_taints(world, "n0", GOING)
    world.run(seconds=2)
    set_taints(world, "n0", GOING, {"key": "gone", "effect": "NoExecute"})
    world.run(seconds=1)
    assert [disruption_of(pod) for pod in pods_on(world, "n0")].count("DeletionByTaintManager") == 1


def test_a_taint_that_goes_and_comes_back_gives_the_whole_time_again() -> None:
    world = a_world(1)
    create_pods(world, tolerate(5))
    set_taints(world, "n0", GOING)
    world.run(seconds=4)
    set_taints(world, "n0")
    world.run(seconds=1)
    set_taints(world, "n0", GOING)
    world.run(seconds=4)
    assert not is_leaving(world, "n0")
    world.run(seconds=2)
    assert is_leaving(world, "n0")


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        ([], True),
        ([tolerate()], False),
        ([tolerate(0)], True),
        ([tolerate(3), tolerate()], True),
        ([tolerate(), tolerate(3)], False),
    ],
)
def test_the_first_toleration_that_matches_a_taint_counts(tolerations: list[Document], expected: bool) -> None:
    world = a_world(1)
    create_pods(world, *tolerations)
    set_taints(world, "n0", GOING)
    world.run(seconds=5)
    marked = [pod for pod in list_pods(world) if disruption_of(pod)]
    is_gone = not pods_on(world, "n0")
    assert (bool(marked) or is_gone) == expected
