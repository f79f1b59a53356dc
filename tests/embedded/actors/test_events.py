"""The Events that controllers write about what they do, as they are in the trace."""

from __future__ import annotations

from embedded.actors.actor_world import NAMESPACE, a_template, a_workload, a_world, list_pods, merge, names_of, scale
from wukong.actions import Note
from wukong.api.kinds import DEPLOYMENTS, NODES, STATEFUL_SETS
from wukong.api.resources import Key
from wukong.embedded.world.world import World
from wukong.ports import PatchBody


def list_events(world: World, *controllers: str) -> list[tuple[str, str, str]]:
    """The subject, reason and text of the Events of these controllers, in order."""
    notes = [(step.item.controller, step.action) for step in world.trace if isinstance(step.action, Note)]
    return [(str(note.key), note.reason, note.text) for controller, note in notes if controller in controllers]


def test_a_deployment_tells_how_it_sizes_its_versions() -> None:
    world = a_world()
    world.server.create(DEPLOYMENTS, a_workload(replicas=1), NAMESPACE)
    world.run()
    merge(world, DEPLOYMENTS, "web", {"spec": {"template": a_template("app:2")}})
    world.run()
    scale(world, DEPLOYMENTS, 3)
    world.run()
    texts = [text for _, reason, text in list_events(world, "deployment") if reason == "ScalingReplicaSet"]
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
    assert list_events(world, "statefulset") == [
        (f"{NAMESPACE}/web", "SuccessfulCreate", "create Pod web-0 in StatefulSet web successful"),
        (f"{NAMESPACE}/web", "SuccessfulDelete", "delete Pod web-0 in StatefulSet web successful"),
    ]
    assert list_events(world, "kubelet") == [(f"{NAMESPACE}/web-0", "Killing", "Stopping container main")]


def test_a_silent_node_is_told_of_and_so_are_its_pods() -> None:
    world = a_world(2)
    world.server.create(DEPLOYMENTS, a_workload(replicas=1), NAMESPACE)
    world.run()
    (name,) = names_of(list_pods(world))
    body = {"metadata": {"annotations": {"sim.novasphere.dev/silent": "true"}}}
    world.server.patch(NODES, Key("", "n0"), PatchBody("merge", body))
    world.run(seconds=600)
    assert list_events(world, "nodelifecycle", "tainteviction") == [
        ("n0", "NodeNotReady", "Node n0 status is now: NodeNotReady"),
        (f"{NAMESPACE}/{name}", "NodeNotReady", "Node is not ready"),
        (f"{NAMESPACE}/{name}", "TaintManagerEviction", f"Marking for deletion Pod {NAMESPACE}/{name}"),
    ]
