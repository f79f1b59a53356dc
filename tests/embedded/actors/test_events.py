"""The Events that controllers tell of what they do, as they stand in the trace."""

from __future__ import annotations

from embedded.actors.playing import NAMESPACE, a_template, a_workload, a_world, all_pods, merging, names, scale
from wukong.actions import Note
from wukong.api.kinds import DEPLOYMENTS, NODES, STATEFUL_SETS
from wukong.api.resources import Key
from wukong.embedded.world.world import World
from wukong.ports import PatchBody


def told(world: World, *by: str) -> list[tuple[str, str, str]]:
    """Who, why and what, in order."""
    notes = [(step.item.controller, step.action) for step in world.trace if isinstance(step.action, Note)]
    return [(str(it.key), it.reason, it.text) for controller, it in notes if controller in by]


def test_a_deployment_tells_how_it_sizes_its_versions() -> None:
    world = a_world()
    world.server.create(DEPLOYMENTS, a_workload(replicas=1), NAMESPACE)
    world.run()
    merging(world, DEPLOYMENTS, "web", {"spec": {"template": a_template("app:2")}})
    world.run()
    scale(world, DEPLOYMENTS, 3)
    world.run()
    texts = [text for _, reason, text in told(world, "deployment") if reason == "ScalingReplicaSet"]
    old, new = dict.fromkeys(text.split(" ")[4] for text in texts)
    assert texts == [
        f"Scaled up replica set {old} from 0 to 1",
        f"Scaled up replica set {new} from 0 to 1",
        f"Scaled down replica set {old} from 1 to 0",
        f"Scaled up replica set {new} from 1 to 3",
    ]


def test_a_stateful_set_tells_of_its_pods_by_name() -> None:
    world = a_world()
    world.server.create(STATEFUL_SETS, a_workload(replicas=1, serviceName="web"), NAMESPACE)
    world.run()
    scale(world, STATEFUL_SETS, 0)
    world.run()
    assert told(world, "statefulset") == [
        (f"{NAMESPACE}/web", "SuccessfulCreate", "create Pod web-0 in StatefulSet web successful"),
        (f"{NAMESPACE}/web", "SuccessfulDelete", "delete Pod web-0 in StatefulSet web successful"),
    ]
    assert told(world, "kubelet") == [(f"{NAMESPACE}/web-0", "Killing", "Stopping container main")]


def test_a_silent_node_is_told_of_and_so_are_its_pods() -> None:
    world = a_world(2)
    world.server.create(DEPLOYMENTS, a_workload(replicas=1), NAMESPACE)
    world.run()
    (name,) = names(all_pods(world))
    body = {"metadata": {"annotations": {"sim.novasphere.dev/silent": "true"}}}
    world.server.patch(NODES, Key("", "n0"), PatchBody("merge", body))
    world.run(seconds=600)
    assert told(world, "nodelifecycle", "tainteviction") == [
        ("n0", "NodeNotReady", "Node n0 status is now: NodeNotReady"),
        (f"{NAMESPACE}/{name}", "NodeNotReady", "Node is not ready"),
        (f"{NAMESPACE}/{name}", "TaintManagerEviction", f"Marking for deletion Pod {NAMESPACE}/{name}"),
    ]
