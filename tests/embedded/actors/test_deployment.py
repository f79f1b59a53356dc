"""Deployments: rolling, recreating, paused, scaled in the middle, out of time."""

from __future__ import annotations

from typing import Any

import pytest

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
from wukong.api.kinds import DEPLOYMENTS, PODS, REPLICA_SETS
from wukong.api.meta import ObjectMeta
from wukong.api.resources import Key
from wukong.embedded.actors.deployment import sizes
from wukong.embedded.actors.deployment.revisions import revision_of
from wukong.embedded.actors.deployment.sizes import Limits, Version
from wukong.embedded.world.objects import ReplicaSet
from wukong.embedded.world.world import World
from wukong.ports import Document
from wukong.state import Change


class Extremes:
    """The fewest ready and the most not terminating pods since it began to look."""

    def __init__(self, world: World) -> None:
        self.world, self.least_ready, self.most = world, 10**6, 0
        world.listen(self.observe)

    def observe(self, change: Change) -> None:
        if change.kind != "Pod":
            return
        staying = [pod for pod in list_pods(self.world) if "deletionTimestamp" not in pod["metadata"]]
        self.least_ready = min(self.least_ready, sum(map(is_ready, staying)))
        self.most = max(self.most, len(staying))


def deploy(replicas: int = 4, nodes: int = 3, **spec: Any) -> World:
    world = a_world(nodes)
    world.server.create(DEPLOYMENTS, a_workload(replicas=replicas, **spec), NAMESPACE)
    world.run()
    assert status_of(world, DEPLOYMENTS).get("availableReplicas", 0) == replicas
    return world


def update(world: World, image: str = "app:2", **annotations: str) -> None:
    merge(world, DEPLOYMENTS, "web", {"spec": {"template": a_template(image, **annotations)}})


def build_strategy(surge: int | str, unavailable: int | str) -> Document:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def list_replica_sets(world: World) -> list[Document]:
    revision = "deployment.kubernetes.io/revision"
    items = world.server.list(REPLICA_SETS).items
    return sorted(items, key=lambda replica_set: int(replica_set["metadata"]["annotations"][revision]))


def conditions_of(world: World) -> dict[str, tuple[str, str]]:
    return {
        condition["type"]: (condition["status"], condition["reason"])
        for condition in status_of(world, DEPLOYMENTS)["conditions"]
    }


def test_a_first_version_becomes_available() -> None:
    world = deploy(3)
    counts = {name: value for name, value in status_of(world, DEPLOYMENTS).items() if name != "conditions"}
    assert counts == {
        "observedGeneration": 1,
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "terminatingReplicas": 0,
    }
    assert conditions_of(world) == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "NewReplicaSetAvailable"),
    }
    assert get_object(world, DEPLOYMENTS)["metadata"]["annotations"] == {"deployment.kubernetes.io/revision": "1"}


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "least", "most"),
    [
        (4, "25%", "25%", 3, 5),
        (3, "25%", "25%", 3, 4),
        (3, 0, 1, 2, 3),
        (10, "100%", 0, 10, 20),
        (5, 2, 2, 3, 7),
        (1, "25%", "25%", 1, 2),
        (1, 0, "25%", 0, 1),
    ],
)
def test_a_rollout_stays_within_surge_and_unavailability(
    replicas: int, surge: int | str, unavailable: int | str, least: int, most: int
) -> None:
    world = deploy(replicas, strategy=build_strategy(surge, unavailable))
    seen = Extremes(world)
    update(world)
    assert world.run() == "quiet"
    assert (seen.least_ready, seen.most) == (least, most)
    assert {pod["spec"]["containers"][0]["image"] for pod in list_pods(world)} == {"app:2"}
    assert [replica_set["spec"]["replicas"] for replica_set in list_replica_sets(world)] == [0, replicas]
    assert status_of(world, DEPLOYMENTS)["observedGeneration"] == 2
    assert conditions_of(world)["Progressing"] == ("True", "NewReplicaSetAvailable")


def test_recreate_waits_until_the_last_old_pod_is_gone() -> None:
    world = deploy(3, strategy={"type": "Recreate"})
    update(world)
    world.run(lambda state: len(state.objects["Pod"]) == 0)
    assert len(list_replica_sets(world)) == 1
    world.run()
    assert [replica_set["spec"]["replicas"] for replica_set in list_replica_sets(world)] == [0, 3]
    assert status_of(world, DEPLOYMENTS)["availableReplicas"] == 3


def test_a_paused_deployment_takes_no_new_version_but_scales() -> None:
    world = deploy(2)
    merge(world, DEPLOYMENTS, "web", {"spec": {"paused": True, "template": a_template("app:2")}})
    world.run()
    assert len(list_replica_sets(world)) == 1
    assert conditions_of(world)["Progressing"] == ("Unknown", "DeploymentPaused")
    scale(world, DEPLOYMENTS, 5)
    world.run()
    assert len(list_pods(world)) == 5
    merge(world, DEPLOYMENTS, "web", {"spec": {"paused": None}})
    world.run()
    assert [replica_set["spec"]["replicas"] for replica_set in list_replica_sets(world)] == [0, 5]


def test_a_version_that_never_gets_ready_times_out_and_nothing_is_rolled_back() -> None:
    world = deploy(4)
    update(world, **{"sim.novasphere.dev/never-ready": "true"})
    world.run(seconds=590)
    assert conditions_of(world)["Progressing"] == ("True", "ReplicaSetUpdated")
    assert world.run(seconds=60) == "quiet"
    assert conditions_of(world)["Progressing"] == ("False", "ProgressDeadlineExceeded")
    assert conditions_of(world)["Available"] == ("True", "MinimumReplicasAvailable")
    assert [replica_set["spec"]["replicas"] for replica_set in list_replica_sets(world)] == [3, 2]


def test_scaling_in_the_middle_of_a_rollout_keeps_the_proportion() -> None:
    world = deploy(10, strategy=build_strategy(3, 2))
    update(world, **{"sim.novasphere.dev/never-ready": "true"})
    world.run(seconds=5)
    assert [replica_set["spec"]["replicas"] for replica_set in list_replica_sets(world)] == [8, 5]
    scale(world, DEPLOYMENTS, 15)
    world.run(seconds=5)
    assert [replica_set["spec"]["replicas"] for replica_set in list_replica_sets(world)] == [11, 7]


def test_going_back_to_an_old_version_uses_its_set_again_with_a_new_revision() -> None:
    world = deploy(2)
    update(world)
    world.run()
    first = names_of(list_replica_sets(world))[0]
    update(world, "app:1")
    world.run()
    assert names_of(list_replica_sets(world))[-1] == first
    annotations = list_replica_sets(world)[-1]["metadata"]["annotations"]
    assert annotations["deployment.kubernetes.io/revision"] == "3"
    assert annotations["deployment.kubernetes.io/revision-history"] == "1"


def test_old_versions_beyond_the_history_are_deleted() -> None:
    world = deploy(1, revisionHistoryLimit=1)
    for number in range(2, 6):
        update(world, f"app:{number}")
        world.run()
    assert [
        replica_set["spec"]["template"]["spec"]["containers"][0]["image"] for replica_set in list_replica_sets(world)
    ] == [
        "app:4",
        "app:5",
    ]


@pytest.mark.parametrize("text", ["", "much", "²", "٣", "9" * 5000])
@pytest.mark.parametrize("annotation", ["revision", "max-replicas"])
def test_an_annotation_that_is_no_number_holds_up_no_rollout(annotation: str, text: str) -> None:
    world = deploy(4)
    update(world)
    world.run(seconds=2)
    for replica_set in names_of(list_replica_sets(world)):
        annotations = {f"deployment.kubernetes.io/{annotation}": text}
        merge(world, REPLICA_SETS, replica_set, {"metadata": {"annotations": annotations}})
    scale(world, DEPLOYMENTS, 3)
    world.run()
    status = status_of(world, DEPLOYMENTS)
    assert (status["updatedReplicas"], status["availableReplicas"], status["replicas"]) == (3, 3, 3)


@pytest.mark.parametrize(
    ("text", "revision"), [("3", 3), ("+3", 3), ("-3", -3), (str(2**63), 0), ("²", 0), ("٣", 0), ("9" * 5000, 0)]
)
def test_a_revision_is_read_like_go_reads_numbers(text: str, revision: int) -> None:
    annotated = ReplicaSet(metadata=ObjectMeta(name="web", annotations={"deployment.kubernetes.io/revision": text}))
    assert revision_of(annotated) == revision


def test_min_ready_seconds_slow_a_rollout_down() -> None:
    world = deploy(2, minReadySeconds=30, strategy=build_strategy(0, 1))
    began = world.clock.now()
    update(world)
    world.run()
    assert world.clock.now() - began >= 60


def test_old_pods_that_are_no_use_go_first() -> None:
    world = deploy(4, strategy=build_strategy(1, 1))
    sick = names_of(list_pods(world))[0]
    merge(world, PODS, sick, {"metadata": {"annotations": {"sim.novasphere.dev/never-ready": "true"}}})
    world.run()
    update(world)
    world.run(lambda state: any(pod.metadata.deletion_timestamp for pod in state.objects["Pod"].values()))
    leaving = [pod for pod in list_pods(world) if "deletionTimestamp" in pod["metadata"]]
    assert names_of(leaving) == [sick]


def test_a_deleted_deployment_takes_everything_along() -> None:
    world = deploy(2)
    world.server.delete(DEPLOYMENTS, Key(NAMESPACE, "web"))
    world.run()
    assert (list_replica_sets(world), list_pods(world)) == ([], [])


def test_a_rollout_that_anti_affinity_blocks_stays_stuck() -> None:
    """kubernetes#116891, with the scheduler replaced by one that never binds the new pods."""
    world = deploy(3)
    template = a_template("app:2")
    template["spec"]["schedulerName"] = "nobody"
    merge(world, DEPLOYMENTS, "web", {"spec": {"template": template}})
    world.run()
    assert [replica_set["spec"]["replicas"] for replica_set in list_replica_sets(world)] == [3, 1]
    assert conditions_of(world)["Progressing"] == ("False", "ProgressDeadlineExceeded")


@pytest.mark.parametrize(
    ("surge", "unavailable", "replicas", "expected"),
    [
        ("25%", "25%", 3, Limits(3, 1, 0)),
        ("25%", "25%", 4, Limits(4, 1, 1)),
        ("25%", "25%", 1, Limits(1, 1, 0)),
        (0, "10%", 5, Limits(5, 0, 1)),
        (0, 7, 5, Limits(5, 0, 5)),
        ("30%", "30%", 10, Limits(10, 3, 3)),
        (1, 0, 0, Limits(0, 1, 0)),
    ],
)
def test_surge_rounds_up_and_unavailable_down(
    surge: int | str, unavailable: int | str, replicas: int, expected: Limits
) -> None:
    assert sizes.resolve_limits(replicas, surge, unavailable) == expected


def test_the_rest_of_a_proportional_scaling_goes_to_the_largest() -> None:
    versions = [Version("old", 8, 8, 13), Version("new", 5, 0, 13)]
    assert sizes.scale_in_proportion(Limits(15, 3, 2), versions, 13) == {"old": 11, "new": 7}
    assert sizes.scale_in_proportion(Limits(0, 3, 0), versions, 13) == {"old": 0, "new": 0}


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        (Version("new", 5, 5, 0), [Version("old", 8, 8, 0)], {"old": 3}),
        (Version("new", 5, 2, 0), [Version("old", 8, 8, 0)], {"old": 6}),
        (Version("new", 5, 0, 0), [Version("old", 8, 8, 0)], {}),
        (Version("new", 5, 2, 0), [Version("old", 8, 6, 0)], {"old": 6}),  # those that are unavailable go first
        (Version("new", 7, 4, 0), [Version("old", 6, 8, 0)], {}),  # shrunk from 8, and its status does not show it yet
        (Version("new", 7, 5, 0), [Version("older", 2, 1, 0), Version("old", 4, 5, 0)], {"older": 1}),
        (Version("new", 8, 5, 0), [Version("gone", 0, 3, 0), Version("old", 5, 5, 0)], {"old": 0}),
    ],
)
def test_old_versions_shrink_by_what_is_not_needed(new: Version, old: list[Version], expected: dict[str, int]) -> None:
    assert sizes.shrink_old(Limits(10, 3, 2), new, old) == expected
