"""Pods that nobody controls, and those that no longer match whom they belong to."""

from __future__ import annotations

from embedded.actors.playing import LABELS, NAMESPACE, a_template, a_workload, a_world, all_pods, merging, names, status
from wukong.actions import Note
from wukong.api.kinds import DEPLOYMENTS, PODS, REPLICA_SETS
from wukong.api.resources import Key
from wukong.embedded.store.deletion import DeleteOptions
from wukong.embedded.world.world import World
from wukong.ports import Document


def bare(world: World, name: str, **labels: str) -> None:
    body = {**a_template(), "metadata": {"name": name, "labels": LABELS | labels}}
    world.server.create(PODS, body, NAMESPACE)


def controllers(pod: Document) -> list[str]:
    return [it["name"] for it in pod["metadata"].get("ownerReferences") or [] if it.get("controller")]


def test_a_set_adopts_pods_that_match_and_makes_only_the_rest() -> None:
    world = a_world()
    bare(world, "first")
    bare(world, "other", app="db")
    world.run()
    world.server.create(REPLICA_SETS, a_workload(replicas=2), NAMESPACE)
    world.run()
    assert {name: controllers(pod) for name, pod in zip(names(all_pods(world)), all_pods(world), strict=True)} == {
        "first": ["web"],
        "other": [],
        names(all_pods(world))[2]: ["web"],
    }
    assert status(world, REPLICA_SETS)["availableReplicas"] == 2


def test_a_pod_that_comes_when_there_are_enough_is_adopted_and_one_goes() -> None:
    world = a_world()
    world.server.create(REPLICA_SETS, a_workload(replicas=2), NAMESPACE)
    world.run()
    bare(world, "late")
    world.run()
    assert len(all_pods(world)) == 2
    assert "late" not in names(all_pods(world))  # it had no node yet


def test_a_pod_whose_labels_were_changed_is_released_and_replaced() -> None:
    world = a_world()
    world.server.create(REPLICA_SETS, a_workload(replicas=2), NAMESPACE)
    world.run()
    suspect = names(all_pods(world))[0]
    merging(world, PODS, suspect, {"metadata": {"labels": {"app": "looked-at"}}})
    world.run()
    (found,) = [pod for pod in all_pods(world) if pod["metadata"]["name"] == suspect]
    assert controllers(found) == []
    assert len(all_pods(world)) == 3
    assert status(world, REPLICA_SETS)["replicas"] == 2
    merging(world, PODS, suspect, {"metadata": {"labels": LABELS}})
    world.run()
    assert len(all_pods(world)) == 2


def test_pods_left_behind_by_their_set_are_taken_over_by_the_next() -> None:
    world = a_world()
    world.server.create(REPLICA_SETS, a_workload(), NAMESPACE)
    world.run()
    before = names(all_pods(world))
    world.server.delete(REPLICA_SETS, Key(NAMESPACE, "web"), DeleteOptions(propagation="Orphan"))
    world.run()
    assert [controllers(pod) for pod in all_pods(world)] == [[]] * 3
    world.server.create(REPLICA_SETS, a_workload("heir"), NAMESPACE)
    world.run()
    assert names(all_pods(world)) == before
    assert [controllers(pod) for pod in all_pods(world)] == [["heir"]] * 3


def test_a_deployment_takes_over_the_sets_another_left_behind() -> None:
    world = a_world()
    world.server.create(DEPLOYMENTS, a_workload(), NAMESPACE)
    world.run()
    before = names(all_pods(world))
    world.server.delete(DEPLOYMENTS, Key(NAMESPACE, "web"), DeleteOptions(propagation="Orphan"))
    world.run()
    assert controllers(world.server.list(REPLICA_SETS).items[0]) == []
    world.server.create(DEPLOYMENTS, a_workload(), NAMESPACE)
    world.run()
    assert [controllers(found) for found in world.server.list(REPLICA_SETS).items] == [["web"]]
    assert names(all_pods(world)) == before
    assert status(world, DEPLOYMENTS)["availableReplicas"] == 3


def test_pods_are_told_of_by_name_when_they_come_and_go() -> None:
    world = a_world()
    world.server.create(REPLICA_SETS, a_workload(replicas=2), NAMESPACE)
    world.run()
    first, second = names(all_pods(world))
    merging(world, REPLICA_SETS, "web", {"spec": {"replicas": 0}})
    world.run()
    told = [
        step.action for step in world.trace if step.item.controller == "replicaset" and isinstance(step.action, Note)
    ]
    texts = [(it.reason, it.text) for it in told]
    assert sorted(texts) == [
        ("SuccessfulCreate", f"Created pod: {first}"),
        ("SuccessfulCreate", f"Created pod: {second}"),
        ("SuccessfulDelete", f"Deleted pod: {first}"),
        ("SuccessfulDelete", f"Deleted pod: {second}"),
    ]
