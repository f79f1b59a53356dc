"""StatefulSets: order, names, revisions, and the volume claims of their pods."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.actors.actor_world import (
    LABELS,
    NAMESPACE,
    a_template,
    a_workload,
    a_world,
    is_ready,
    list_pods,
    merge,
    names_of,
    scale,
    status_of,
)
from wukong.actions import Create, Delete
from wukong.api.kinds import CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from wukong.api.resources import Key
from wukong.embedded.store.deletion import DeleteOptions
from wukong.embedded.world.world import World
from wukong.ports import Document

CLAIMS = PERSISTENT_VOLUME_CLAIMS
NEVER_READY = {"sim.novasphere.dev/never-ready": "true"}


def a_set(nodes: int = 3, **spec: Any) -> World:
    world = a_world(nodes)
    world.server.create(STATEFUL_SETS, a_workload(serviceName="web", **spec), NAMESPACE)
    world.run()
    return world


def list_images(world: World) -> list[str]:
    return [pod["spec"]["containers"][0]["image"] for pod in list_pods(world)]


def update(world: World, image: str, **annotations: str) -> None:
    merge(world, STATEFUL_SETS, "web", {"spec": {"template": a_template(image, **annotations)}})
    world.run()


def list_pod_actions(world: World) -> list[str]:
    """What the controller did with pods, in order."""
    actions = []
    for step in world.trace:
        if step.item.controller == "statefulset" and isinstance(step.action, Create) and step.action.resource == PODS:
            actions.append(f"+{step.action.body['metadata']['name']}")
        if step.item.controller == "statefulset" and isinstance(step.action, Delete) and step.action.resource == PODS:
            actions.append(f"-{step.action.key.name}")
    return actions


def test_a_stateful_set_makes_its_pods_one_after_the_other() -> None:
    world = a_world()
    world.server.create(STATEFUL_SETS, a_workload(serviceName="web"), NAMESPACE)
    world.run(lambda state: len(state.objects.get("Pod", {})) == 2)
    assert names_of(list_pods(world)) == ["web-0", "web-1"]
    assert is_ready(list_pods(world)[0])
    world.run()
    counts = status_of(world, STATEFUL_SETS)
    assert (counts["replicas"], counts["readyReplicas"], counts["availableReplicas"], counts["updatedReplicas"]) == (
        3,
        3,
        3,
        3,
    )
    assert counts["currentRevision"] == counts["updateRevision"]


def test_each_pod_has_its_own_host_name_and_the_service_as_its_subdomain() -> None:
    world = a_world()
    world.server.create(STATEFUL_SETS, a_workload(serviceName="peers", replicas=2), NAMESPACE)
    world.run()
    specs = [pod["spec"] for pod in list_pods(world)]
    assert [(spec["hostname"], spec["subdomain"]) for spec in specs] == [("web-0", "peers"), ("web-1", "peers")]


def test_without_a_service_pods_have_no_subdomain() -> None:
    world = a_world()
    world.server.create(STATEFUL_SETS, a_workload(replicas=1), NAMESPACE)
    world.run()
    (pod,) = list_pods(world)
    assert (pod["spec"]["hostname"], "subdomain" in pod["spec"]) == ("web-0", False)


def test_a_parallel_stateful_set_makes_them_all_at_once() -> None:
    world = a_world()
    workload = a_workload(serviceName="web", podManagementPolicy="Parallel")
    world.server.create(STATEFUL_SETS, workload, NAMESPACE)
    world.run(lambda state: len(state.objects.get("Pod", {})) == 3)
    assert not any(map(is_ready, list_pods(world)))


def test_a_stateful_set_shrinks_from_the_top() -> None:
    world = a_world()
    world.server.create(STATEFUL_SETS, a_workload(serviceName="web"), NAMESPACE)
    world.run()
    scale(world, STATEFUL_SETS, 1)
    world.run()
    assert names_of(list_pods(world)) == ["web-0"]


def test_a_partition_holds_lower_ordinals_back_even_when_they_are_made_again() -> None:
    world = a_world()
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    world.server.create(STATEFUL_SETS, a_workload(serviceName="web", updateStrategy=strategy), NAMESPACE)
    world.run()
    merge(world, STATEFUL_SETS, "web", {"spec": {"template": a_template("app:2")}})
    world.run()
    assert list_images(world) == ["app:1", "app:1", "app:2"]
    world.server.delete(PODS, Key(NAMESPACE, "web-0"))
    world.run()
    assert list_images(world) == ["app:1", "app:1", "app:2"]
    merge(world, STATEFUL_SETS, "web", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
    world.run()
    assert list_images(world) == ["app:2"] * 3


def test_an_update_goes_from_the_highest_ordinal_and_each_pod_before_its_successor() -> None:
    world = a_set()
    world.trace.clear()
    update(world, "app:2")
    assert list_pod_actions(world) == ["-web-2", "+web-2", "-web-1", "+web-1", "-web-0", "+web-0"]
    assert list_images(world) == ["app:2"] * 3


def test_an_update_that_never_gets_ready_stops_at_its_first_pod_and_rolling_back_does_not_mend_it() -> None:
    world = a_set()
    update(world, "app:2", **NEVER_READY)
    assert list_images(world) == ["app:1", "app:1", "app:2"]
    update(world, "app:1")
    assert list_images(world) == ["app:1", "app:1", "app:2"]  # kubernetes#67250: somebody has to delete it
    world.server.delete(PODS, Key(NAMESPACE, "web-2"))
    world.run()
    assert list_images(world) == ["app:1"] * 3


def test_in_parallel_pods_are_deleted_at_once_but_updated_one_by_one() -> None:
    world = a_set(podManagementPolicy="Parallel")
    world.trace.clear()
    update(world, "app:2")
    assert list_pod_actions(world) == ["-web-2", "+web-2", "-web-1", "+web-1", "-web-0", "+web-0"]
    world.trace.clear()
    scale(world, STATEFUL_SETS, 0)
    world.run()
    assert list_pod_actions(world) == ["-web-2", "-web-1", "-web-0"]
    deletions = {
        step.at for step in world.trace if isinstance(step.action, Delete) and step.item.controller != "kubelet"
    }
    assert len(deletions) == 1


def test_ordinals_may_begin_elsewhere() -> None:
    world = a_set(ordinals={"start": 5})
    assert names_of(list_pods(world)) == ["web-5", "web-6", "web-7"]
    merge(world, STATEFUL_SETS, "web", {"spec": {"ordinals": {"start": 6}}})
    world.run()
    assert names_of(list_pods(world)) == ["web-6", "web-7", "web-8"]


def test_min_ready_seconds_hold_the_next_pod_back() -> None:
    world = a_world()
    world.server.create(STATEFUL_SETS, a_workload(serviceName="web", minReadySeconds=30), NAMESPACE)
    world.run(seconds=29)
    assert names_of(list_pods(world)) == ["web-0"]
    world.run(seconds=5)
    assert names_of(list_pods(world)) == ["web-0", "web-1"]
    assert status_of(world, STATEFUL_SETS)["availableReplicas"] == 1


def test_where_nothing_rolls_who_is_deleted_comes_back_with_the_new_revision() -> None:
    world = a_set(updateStrategy={"type": "OnDelete"})
    update(world, "app:2")
    assert list_images(world) == ["app:1"] * 3
    world.server.delete(PODS, Key(NAMESPACE, "web-1"))
    world.run()
    assert list_images(world) == ["app:1", "app:2", "app:1"]


def test_a_pod_that_is_not_well_keeps_those_above_it_from_being_scaled_away() -> None:
    world = a_set()
    merge(world, PODS, "web-1", {"metadata": {"annotations": NEVER_READY}})
    world.run()
    scale(world, STATEFUL_SETS, 1)
    world.run()
    assert names_of(list_pods(world)) == ["web-0"]  # web-2 is well, then web-1 is the first that is not
    world = a_set()
    merge(world, PODS, "web-0", {"metadata": {"annotations": NEVER_READY}})
    world.run()
    scale(world, STATEFUL_SETS, 1)
    world.run()
    assert names_of(list_pods(world)) == ["web-0", "web-1", "web-2"]


def list_revisions(world: World) -> list[int]:
    return sorted(revision["revision"] for revision in world.server.list(CONTROLLER_REVISIONS).items)


def test_a_revision_that_comes_back_is_the_latest_again() -> None:
    world = a_set()
    update(world, "app:2")
    assert list_revisions(world) == [1, 2]
    update(world, "app:1")
    assert list_revisions(world) == [2, 3]
    assert list_images(world) == ["app:1"] * 3


def test_old_revisions_beyond_the_history_are_forgotten() -> None:
    world = a_set(revisionHistoryLimit=1)
    for number in range(2, 6):
        update(world, f"app:{number}")
    assert list_revisions(world) == [4, 5]


def test_orphans_of_the_right_name_are_adopted() -> None:
    world = a_set()
    world.server.delete(STATEFUL_SETS, Key(NAMESPACE, "web"), DeleteOptions(propagation="Orphan"))
    world.run()
    before = [pod["metadata"]["uid"] for pod in list_pods(world)]
    body = {**a_template(), "metadata": {"name": "stranger", "labels": LABELS}}
    world.server.create(PODS, body, NAMESPACE)
    world.server.create(STATEFUL_SETS, a_workload(serviceName="web"), NAMESPACE)
    world.run()
    owners = {pod["metadata"]["name"]: len(pod["metadata"].get("ownerReferences") or []) for pod in list_pods(world)}
    assert owners == {"stranger": 0, "web-0": 1, "web-1": 1, "web-2": 1}
    assert [pod["metadata"]["uid"] for pod in list_pods(world) if pod["metadata"]["name"] != "stranger"] == before


# Volume claims ---------------------------------------------------------------------------------------------------

DATA = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def list_claims(world: World) -> list[str]:
    return names_of(world.server.list(CLAIMS).items)


def retention_policy(when_scaled: str, when_deleted: str) -> Document:
    return {"whenScaled": when_scaled, "whenDeleted": when_deleted}


def test_each_pod_has_its_claim_before_it_is_made_and_finds_it_again() -> None:
    world = a_set(volumeClaimTemplates=[DATA])
    assert list_claims(world) == ["data-web-0", "data-web-1", "data-web-2"]
    volumes = [pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] for pod in list_pods(world)]
    assert volumes == list_claims(world)
    (claim, *_) = world.server.list(CLAIMS).items
    assert claim["metadata"]["labels"] == LABELS
    world.server.delete(PODS, Key(NAMESPACE, "web-1"))
    world.run()
    assert len(list_claims(world)) == 3
    assert status_of(world, STATEFUL_SETS)["availableReplicas"] == 3


@pytest.mark.parametrize(
    ("policy", "after_scaling", "after_deletion"),
    [
        (None, ["data-web-0", "data-web-1"], ["data-web-0", "data-web-1"]),
        ({}, ["data-web-0", "data-web-1"], ["data-web-0", "data-web-1"]),
        ({"whenScaled": "Delete"}, ["data-web-0"], ["data-web-0"]),
        (retention_policy("Retain", "Retain"), ["data-web-0", "data-web-1"], ["data-web-0", "data-web-1"]),
        (retention_policy("Delete", "Retain"), ["data-web-0"], ["data-web-0"]),
        (retention_policy("Retain", "Delete"), ["data-web-0", "data-web-1"], []),
        (retention_policy("Delete", "Delete"), ["data-web-0"], []),
    ],
    ids=[
        "says nothing",
        "is empty",
        "says half",
        "keeps all",
        "goes with scaling",
        "goes with the set",
        "goes with both",
    ],
)
def test_claims_stay_or_go_as_the_policy_says(
    policy: Document | None, after_scaling: list[str], after_deletion: list[str]
) -> None:
    more: Any = {} if policy is None else {"persistentVolumeClaimRetentionPolicy": policy}
    world = a_set(replicas=2, volumeClaimTemplates=[DATA], **more)
    scale(world, STATEFUL_SETS, 1)
    world.run()
    assert list_claims(world) == after_scaling
    world.server.delete(STATEFUL_SETS, Key(NAMESPACE, "web"))
    world.run()
    assert list_claims(world) == after_deletion
