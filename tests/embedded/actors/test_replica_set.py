"""ReplicaSets, the kubelets under them, and what goes when they go."""

from __future__ import annotations

from embedded.actors.actor_world import (
    NAMESPACE,
    a_template,
    a_workload,
    a_world,
    get_object,
    is_ready,
    list_pods,
    merge,
    names_of,
    scale,
    status_of,
)
from wukong.api.kinds import DEPLOYMENTS, NODES, PODS, REPLICA_SETS
from wukong.api.resources import Key
from wukong.ports import PatchBody


def test_pods_are_made_bound_started_and_counted() -> None:
    world = a_world()
    world.server.create(REPLICA_SETS, a_workload(), NAMESPACE)
    assert world.run() == "quiet"
    assert [is_ready(pod) for pod in list_pods(world)] == [True] * 3
    assert status_of(world, REPLICA_SETS) == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "terminatingReplicas": 0,
        "observedGeneration": 1,
    }


def test_a_deleted_pod_is_replaced_while_it_still_terminates() -> None:
    world = a_world()
    world.server.create(REPLICA_SETS, a_workload(replicas=1), NAMESPACE)
    world.run()
    world.server.delete(PODS, Key(NAMESPACE, names_of(list_pods(world))[0]))
    world.run(lambda state: len(state.objects["Pod"]) == 2)
    assert status_of(world, REPLICA_SETS)["terminatingReplicas"] == 1
    world.run()
    assert len(list_pods(world)) == 1
    assert status_of(world, REPLICA_SETS)["availableReplicas"] == 1


def test_a_deleted_set_takes_its_pods_along() -> None:
    world = a_world()
    world.server.create(REPLICA_SETS, a_workload(), NAMESPACE)
    world.run()
    world.server.delete(REPLICA_SETS, Key(NAMESPACE, "web"))
    world.run()
    assert list_pods(world) == []


def test_pods_are_available_only_after_min_ready_seconds() -> None:
    world = a_world()
    world.server.create(REPLICA_SETS, a_workload(minReadySeconds=30), NAMESPACE)
    world.run(seconds=20)
    assert status_of(world, REPLICA_SETS)["readyReplicas"] == 3
    assert "availableReplicas" not in status_of(world, REPLICA_SETS)
    world.run(seconds=20)
    assert status_of(world, REPLICA_SETS)["availableReplicas"] == 3


def test_scaling_down_spares_pods_by_their_deletion_cost() -> None:
    world = a_world()
    world.server.create(REPLICA_SETS, a_workload(), NAMESPACE)
    world.run()
    dear = names_of(list_pods(world))[1]
    cost = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "5"}}}
    merge(world, PODS, dear, cost)
    scale(world, REPLICA_SETS, 1)
    world.run()
    assert names_of(list_pods(world)) == [dear]


def test_pods_that_are_not_ready_go_before_ready_ones() -> None:
    world = a_world()
    world.server.create(REPLICA_SETS, a_workload(), NAMESPACE)
    world.run()
    sick = names_of(list_pods(world))[2]
    merge(world, PODS, sick, {"metadata": {"annotations": {"sim.novasphere.dev/never-ready": "true"}}})
    world.run()
    assert status_of(world, REPLICA_SETS)["readyReplicas"] == 2
    scale(world, REPLICA_SETS, 2)
    world.run()
    assert sick not in names_of(list_pods(world))


def test_of_crowded_nodes_the_pods_go_first() -> None:
    world = a_world(nodes=2)
    world.server.create(DEPLOYMENTS, a_workload(), NAMESPACE)
    world.run()
    scale(world, DEPLOYMENTS, 2)
    world.run()
    assert sorted(pod["spec"]["nodeName"] for pod in list_pods(world)) == ["n0", "n1"]


def test_a_set_that_nobody_owns_does_not_look_at_nodes() -> None:
    """As kube-controller-manager, which finds related pods by the set's owner: here the first pod goes, wherever."""
    world = a_world(nodes=2)
    world.server.create(REPLICA_SETS, a_workload(replicas=4), NAMESPACE)
    world.run()
    before = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in list_pods(world)}
    scale(world, REPLICA_SETS, 2)
    world.run()
    left = {before[name] for name in names_of(list_pods(world))}
    assert left == set(sorted(before.values())[2:])


def test_a_pod_whose_image_cannot_be_pulled_stays_pending() -> None:
    world = a_world()
    template = a_template(**{"sim.novasphere.dev/pull-fails": "true"})
    world.server.create(REPLICA_SETS, a_workload(replicas=1, template=template), NAMESPACE)
    world.run()
    (pod,) = list_pods(world)
    assert pod["status"]["phase"] == "Pending"
    assert pod["status"]["containerStatuses"][0]["state"] == {"waiting": {"reason": "ImagePullBackOff"}}


def test_a_set_that_can_make_no_pods_says_so_and_tries_again() -> None:
    world = a_world()
    template = a_template()
    template["spec"]["priorityClassName"] = "unheard-of"
    world.server.create(REPLICA_SETS, a_workload(template=template), NAMESPACE)
    world.run(seconds=30)
    (condition,) = status_of(world, REPLICA_SETS)["conditions"]
    assert (condition["type"], condition["reason"]) == ("ReplicaFailure", "FailedCreate")
    world.server.create(
        type(NODES)(kind="PriorityClass", group="scheduling.k8s.io", plural="priorityclasses", namespaced=False),
        {"metadata": {"name": "unheard-of"}, "value": 5},
    )
    world.run(seconds=600)
    assert status_of(world, REPLICA_SETS)["availableReplicas"] == 3
    assert "conditions" not in status_of(world, REPLICA_SETS)


def test_pods_of_a_node_that_is_gone_are_collected_after_forty_seconds() -> None:
    world = a_world(nodes=1)
    world.server.create(REPLICA_SETS, a_workload(replicas=1), NAMESPACE)
    world.run()
    gone = names_of(list_pods(world))
    world.server.delete(NODES, Key("", "n0"))
    world.run(seconds=39)
    assert names_of(list_pods(world)) == gone
    world.run(seconds=45)
    assert gone[0] not in names_of(list_pods(world))
    assert len(list_pods(world)) == 1


def test_a_deleted_namespace_is_emptied_and_ends() -> None:
    world = a_world()
    world.server.create(REPLICA_SETS, a_workload(), NAMESPACE)
    world.run()
    namespaces = type(NODES)(kind="Namespace", plural="namespaces", namespaced=False)
    world.server.delete(namespaces, Key("", NAMESPACE))
    assert world.run() == "quiet"
    assert list_pods(world) == []
    assert NAMESPACE not in names_of(world.server.list(namespaces).items)


def test_a_status_is_counted_again_after_a_foreign_edit() -> None:
    world = a_world()
    world.server.create(REPLICA_SETS, a_workload(), NAMESPACE)
    world.run()
    world.server.patch(
        REPLICA_SETS, Key(NAMESPACE, "web"), PatchBody("merge", {"status": {"readyReplicas": 1}}), "status"
    )
    world.run()
    assert get_object(world, REPLICA_SETS)["status"]["readyReplicas"] == 3
