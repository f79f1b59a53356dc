"""Deployments: rolling, recreating, paused, scaled in the middle, out of time."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.actors.playing import (
    NAMESPACE,
    a_template,
    a_workload,
    a_world,
    all_pods,
    get,
    is_ready,
    merging,
    names,
    scale,
    status,
)
from wukong.api.kinds import DEPLOYMENTS, PODS, REPLICA_SETS
from wukong.api.resources import Key
from wukong.embedded.actors.deployment import sizes
from wukong.embedded.actors.deployment.sizes import Limits, Version
from wukong.embedded.world.world import World
from wukong.ports import Document
from wukong.state import Change


class Extremes:
    """The fewest ready and the most not terminating pods since it began to look."""

    def __init__(self, world: World) -> None:
        self.world, self.least_ready, self.most = world, 10**6, 0
        world.listen(self.hear)

    def hear(self, change: Change) -> None:
        if change.kind != "Pod":
            return
        staying = [it for it in all_pods(self.world) if "deletionTimestamp" not in it["metadata"]]
        self.least_ready = min(self.least_ready, sum(map(is_ready, staying)))
        self.most = max(self.most, len(staying))


def deployed(replicas: int = 4, nodes: int = 3, **spec: Any) -> World:
    world = a_world(nodes)
    world.server.create(DEPLOYMENTS, a_workload(replicas=replicas, **spec), NAMESPACE)
    world.run()
    assert status(world, DEPLOYMENTS).get("availableReplicas", 0) == replicas
    return world


def update(world: World, image: str = "app:2", **annotations: str) -> None:
    merging(world, DEPLOYMENTS, "web", {"spec": {"template": a_template(image, **annotations)}})


def rolling(surge: int | str, unavailable: int | str) -> Document:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def sets(world: World) -> list[Document]:
    found = world.server.list(REPLICA_SETS).items
    return sorted(found, key=lambda it: int(it["metadata"]["annotations"]["deployment.kubernetes.io/revision"]))


def conditions(world: World) -> dict[str, tuple[str, str]]:
    return {it["type"]: (it["status"], it["reason"]) for it in status(world, DEPLOYMENTS)["conditions"]}


def test_a_first_version_becomes_available() -> None:
    world = deployed(3)
    told = {name: value for name, value in status(world, DEPLOYMENTS).items() if name != "conditions"}
    assert told == {
        "observedGeneration": 1,
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "terminatingReplicas": 0,
    }
    assert conditions(world) == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "NewReplicaSetAvailable"),
    }
    assert get(world, DEPLOYMENTS)["metadata"]["annotations"] == {"deployment.kubernetes.io/revision": "1"}


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
    world = deployed(replicas, strategy=rolling(surge, unavailable))
    seen = Extremes(world)
    update(world)
    assert world.run() == "quiet"
    assert (seen.least_ready, seen.most) == (least, most)
    assert {it["spec"]["containers"][0]["image"] for it in all_pods(world)} == {"app:2"}
    assert [it["spec"]["replicas"] for it in sets(world)] == [0, replicas]
    assert status(world, DEPLOYMENTS)["observedGeneration"] == 2
    assert conditions(world)["Progressing"] == ("True", "NewReplicaSetAvailable")


def test_recreate_waits_until_the_last_old_pod_is_gone() -> None:
    world = deployed(3, strategy={"type": "Recreate"})
    update(world)
    world.run(lambda state: len(state.objects["Pod"]) == 0)
    assert len(sets(world)) == 1
    world.run()
    assert [it["spec"]["replicas"] for it in sets(world)] == [0, 3]
    assert status(world, DEPLOYMENTS)["availableReplicas"] == 3


def test_a_paused_deployment_takes_no_new_version_but_scales() -> None:
    world = deployed(2)
    merging(world, DEPLOYMENTS, "web", {"spec": {"paused": True, "template": a_template("app:2")}})
    world.run()
    assert len(sets(world)) == 1
    assert conditions(world)["Progressing"] == ("Unknown", "DeploymentPaused")
    scale(world, DEPLOYMENTS, 5)
    world.run()
    assert len(all_pods(world)) == 5
    merging(world, DEPLOYMENTS, "web", {"spec": {"paused": None}})
    world.run()
    assert [it["spec"]["replicas"] for it in sets(world)] == [0, 5]


def test_a_version_that_never_gets_ready_times_out_and_nothing_is_rolled_back() -> None:
    world = deployed(4)
    update(world, **{"sim.novasphere.dev/never-ready": "true"})
    world.run(seconds=590)
    assert conditions(world)["Progressing"] == ("True", "ReplicaSetUpdated")
    assert world.run(seconds=60) == "quiet"
    assert conditions(world)["Progressing"] == ("False", "ProgressDeadlineExceeded")
    assert conditions(world)["Available"] == ("True", "MinimumReplicasAvailable")
    assert [it["spec"]["replicas"] for it in sets(world)] == [3, 2]


def test_scaling_in_the_middle_of_a_rollout_keeps_the_proportion() -> None:
    world = deployed(10, strategy=rolling(3, 2))
    update(world, **{"sim.novasphere.dev/never-ready": "true"})
    world.run(seconds=5)
    assert [it["spec"]["replicas"] for it in sets(world)] == [8, 5]
    scale(world, DEPLOYMENTS, 15)
    world.run(seconds=5)
    assert [it["spec"]["replicas"] for it in sets(world)] == [11, 7]


def test_going_back_to_an_old_version_uses_its_set_again_with_a_new_revision() -> None:
    world = deployed(2)
    update(world)
    world.run()
    first = names(sets(world))[0]
    update(world, "app:1")
    world.run()
    assert names(sets(world))[-1] == first
    told = sets(world)[-1]["metadata"]["annotations"]
    assert told["deployment.kubernetes.io/revision"] == "3"
    assert told["deployment.kubernetes.io/revision-history"] == "1"


def test_old_versions_beyond_the_history_are_deleted() -> None:
    world = deployed(1, revisionHistoryLimit=1)
    for number in range(2, 6):
        update(world, f"app:{number}")
        world.run()
    assert [it["spec"]["template"]["spec"]["containers"][0]["image"] for it in sets(world)] == ["app:4", "app:5"]


def test_min_ready_seconds_slow_a_rollout_down() -> None:
    world = deployed(2, minReadySeconds=30, strategy=rolling(0, 1))
    began = world.clock.now()
    update(world)
    world.run()
    assert world.clock.now() - began >= 60


def test_old_pods_that_are_no_use_go_first() -> None:
    world = deployed(4, strategy=rolling(1, 1))
    sick = names(all_pods(world))[0]
    merging(world, PODS, sick, {"metadata": {"annotations": {"sim.novasphere.dev/never-ready": "true"}}})
    world.run()
    update(world)
    world.run(lambda state: any(pod.metadata.deletion_timestamp for pod in state.objects["Pod"].values()))
    leaving = [it for it in all_pods(world) if "deletionTimestamp" in it["metadata"]]
    assert names(leaving) == [sick]


def test_a_deleted_deployment_takes_everything_along() -> None:
    world = deployed(2)
    world.server.delete(DEPLOYMENTS, Key(NAMESPACE, "web"))
    world.run()
    assert (sets(world), all_pods(world)) == ([], [])


def test_a_rollout_that_anti_affinity_blocks_stays_stuck() -> None:
    """kubernetes#116891, with the scheduler replaced by one that never binds the new pods."""
    world = deployed(3)
    template = a_template("app:2")
    template["spec"]["schedulerName"] = "nobody"
    merging(world, DEPLOYMENTS, "web", {"spec": {"template": template}})
    world.run()
    assert [it["spec"]["replicas"] for it in sets(world)] == [3, 1]
    assert conditions(world)["Progressing"] == ("False", "ProgressDeadlineExceeded")


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
    assert sizes.limits(replicas, surge, unavailable) == expected


def test_the_rest_of_a_proportional_scaling_goes_to_the_largest() -> None:
    versions = [Version("old", 8, 8, 13), Version("new", 5, 0, 13)]
    assert sizes.in_proportion(Limits(15, 3, 2), versions, 13) == {"old": 11, "new": 7}
    assert sizes.in_proportion(Limits(0, 3, 0), versions, 13) == {"old": 0, "new": 0}
