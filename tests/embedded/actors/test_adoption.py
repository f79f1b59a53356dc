"""Pods without a controller, and pods that their controller no longer selects."""

from __future__ import annotations

from embedded.actors.actor_world import (
    LABELS,
    NAMESPACE,
    a_template,
    a_workload,
    a_world,
    list_pods,
    merge,
    names_of,
    status_of,
)
from wukong.actions import Note
from wukong.api.kinds import DEPLOYMENTS, PODS, REPLICA_SETS
from wukong.api.resources import Key
from wukong.embedded.store.deletion import DeleteOptions
from wukong.embedded.world.world import World
from wukong.ports import Document


def create_bare_pod(world: World, name: str, **labels: str) -> None:
    body = {**a_template(), "metadata": {"name": name, "labels": LABELS | labels}}
    world.server.create(PODS, body, NAMESPACE)


def controllers_of(document: Document) -> list[str]:
    return [owner["name"] for owner in document["metadata"].get("ownerReferences") or [] if owner.get("controller")]


def test_a_set_adopts_pods_that_match_and_makes_only_the_rest() -> None:
    world = a_world()
    create_bare_pod(world, "first")
    create_bare_pod(world, "other", app="db")
    world.run()
    world.server.create(REPLICA_SETS, a_workload(replicas=2), NAMESPACE)
    world.run()
    assert {
        name: controllers_of(pod) for name, pod in zip(names_of(list_pods(world)), list_pods(world), strict=True)
    } == {
        "first": ["web"],
        "other": [],
        names_of(list_pods(world))[2]: ["web"],
    }
    assert status_of(world, REPLICA_SETS)["availableReplicas"] == 2


def test_a_pod_that_comes_when_there_are_enough_is_adopted_and_one_goes() -> None:
    world = a_world()
    world.server.create(REPLICA_SETS, a_workload(replicas=2), NAMESPACE)
    world.run()
    create_bare_pod(world, "late")
    world.run()
    assert len(list_pods(world)) == 2
    assert "late" not in names_of(list_pods(world))  # it had no node yet


def test_a_pod_whose_labels_were_changed_is_released_and_replaced() -> None:
    world = a_world()
    world.server.create(REPLICA_SETS, a_workload(replicas=2), NAMESPACE)
    world.run()
    suspect = names_of(list_pods(world))[0]
    merge(world, PODS, suspect, {"metadata": {"labels": {"app": "looked-at"}}})
    world.run()
    (released,) = [pod for pod in list_pods(world) if pod["metadata"]["name"] == suspect]
    assert controllers_of(released) == []
    assert len(list_pods(world)) == 3
    assert status_of(world, REPLICA_SETS)["replicas"] == 2
    merge(world, PODS, suspect, {"metadata": {"labels": LABELS}})
    world.run()
    assert len(list_pods(world)) == 2


def test_pods_left_behind_by_their_set_are_taken_over_by_the_next() -> None:
    world = a_world()
    world.server.create(REPLICA_SETS, a_workload(), NAMESPACE)
    world.run()
    before = names_of(list_pods(world))
    world.server.delete(REPLICA_SETS, Key(NAMESPACE, "web"), DeleteOptions(propagation="Orphan"))
    world.run()
    assert [controllers_of(pod) for pod in list_pods(world)] == [[]] * 3
    world.server.create(REPLICA_SETS, a_workload("heir"), NAMESPACE)
    world.run()
    assert names_of(list_pods(world)) == before
    assert [controllers_of(pod) for pod in list_pods(world)] == [["heir"]] * 3


def test_a_deployment_takes_over_the_sets_another_left_behind() -> None:
    world = a_world()
    world.server.create(DEPLOYMENTS, a_workload(), NAMESPACE)
    world.run()
    before = names_of(list_pods(world))
    world.server.delete(DEPLOYMENTS, Key(NAMESPACE, "web"), DeleteOptions(propagation="Orphan"))
    world.run()
    assert controllers_of(world.server.list(REPLICA_SETS).items[0]) == []
    world.server.create(DEPLOYMENTS, a_workload(), NAMESPACE)
    world.run()
    assert [controllers_of(replica_set) for replica_set in world.server.list(REPLICA_SETS).items] == [["web"]]
    assert names_of(list_pods(world)) == before
    assert status_of(world, DEPLOYMENTS)["availableReplicas"] == 3


def test_pods_are_told_of_by_name_when_they_come_and_go() -> None:
    world = a_world()
    world.server.create(REPLICA_SETS, a_workload(replicas=2), NAMESPACE)
    world.run()
    first, second = names_of(list_pods(world))
    merge(world, REPLICA_SETS, "web", {"spec": {"replicas": 0}})
    world.run()
    notes = [
        step.action for step in world.trace if step.item.controller == "replicaset" and isinstance(step.action, Note)
    ]
    texts = [(note.reason, note.text) for note in notes]
    assert sorted(texts) == [
        ("SuccessfulCreate", f"Created pod: {first}"),
        ("SuccessfulCreate", f"Created pod: {second}"),
        ("SuccessfulDelete", f"Deleted pod: {first}"),
        ("SuccessfulDelete", f"Deleted pod: {second}"),
    ]
