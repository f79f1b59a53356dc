"""The webhook for pods in an embedded cluster: shares hold at every step, and pods made alike stay cheap."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from wukong.api.core import Node, Pod
from wukong.api.kinds import DEPLOYMENTS, PLACEMENT_POLICIES, PODS
from wukong.api.resources import Key
from wukong.app.components.admission import ADMISSION
from wukong.app.components.scheduler import SCHEDULER
from wukong.app.embedded import Settings, build_cluster, build_world, choose_components, play_scenario
from wukong.embedded.faults import TYPES
from wukong.embedded.scenario import Scenario, play, read_scenario
from wukong.embedded.scenario.play.steps import Drains
from wukong.embedded.world.world import World
from wukong.placement.capacity import is_spot
from wukong.placement.pods import read_mark
from wukong.ports import Document, PatchBody

POLICY: Document = {
    "apiVersion": "placement.novasphere.dev/v1alpha1",
    "kind": "PlacementPolicy",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "capacity": {"strategy": "spot-preferred", "onDemandBase": 2, "spotPercent": 60, "fallback": "Wait"},
    },
}


def a_deployment(replicas: int = 10) -> Document:
    containers = [{"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "100m"}}}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}},
        },
    }


def a_scenario(*timeline: Document, **fields: Any) -> Scenario:
    """The scheduler asks no extender: what it obeys stands on the pods."""
    document = {
        "components": ["admission", "policy"],
        "extender": False,
        "nodes": [{"namePrefix": "spot-", "count": 3, "spot": True}, {"namePrefix": "own-", "count": 3}],
        "manifests": [POLICY, a_deployment()],
        "timeline": list(timeline),
        "until": "2m",
        **fields,
    }
    return read_scenario(json.dumps(document).encode())


def count_by_capacity(world: World) -> dict[str, int]:
    counts = {"spot": 0, "on-demand": 0, "": 0}
    for pod in world.state.all(Pod):
        node = world.state.get(Node, Key("", pod.spec.node_name))
        counts["" if node is None else "spot" if is_spot(node.metadata.labels) else "on-demand"] += 1
    return counts


def play_world(scenario: Scenario) -> World:
    drains = Drains()
    world = build_world(Settings(0, choose_components(scenario)), drains)
    play(world, scenario, drains)
    return world


def test_a_deployment_is_split_as_its_policy_says_without_an_extender() -> None:
    assert count_by_capacity(play_world(a_scenario())) == {"spot": 6, "on-demand": 4, "": 0}


def test_the_share_holds_as_it_grows() -> None:
    steps = [
        {"at": f"{10 * step}s", "scale": {"kind": "Deployment", "name": "web", "replicas": step * 5}}
        for step in range(3, 6)
    ]
    world = play_world(a_scenario(*steps))
    assert count_by_capacity(world) == {"spot": 15, "on-demand": 10, "": 0}


def test_a_scenario_that_does_not_name_it_leaves_pods_as_they_are() -> None:
    world = play_world(a_scenario(components=["policy"]))
    assert all(read_mark(pod.metadata.annotations) is None for pod in world.state.all(Pod))


def test_the_same_seed_tells_the_same_story() -> None:
    first, second = (list[str](), list[str]())
    for lines in (first, second):
        play_scenario(a_scenario(), seed=7, lines=lines.append)
    assert first == second


@pytest.mark.parametrize("seed", range(3))
def test_under_faults_every_promise_is_kept_and_all_pods_run(seed: int) -> None:
    story = play_scenario(a_scenario(until="30m"), seed, faults=tuple(TYPES))
    assert story.findings == []
    assert story.settled


def test_a_fork_decides_by_its_own_mirror() -> None:
    scenario = a_scenario()
    cluster = build_cluster(Settings(0, choose_components(scenario)), Drains())
    play(cluster.world, scenario, cluster.drains)
    assert count_by_capacity(cluster.world) == {"spot": 6, "on-demand": 4, "": 0}
    copy = cluster.fork()
    copy.world.server.patch(DEPLOYMENTS, Key("default", "web"), PatchBody("merge", {"spec": {"replicas": 20}}))
    copy.world.run()
    assert count_by_capacity(copy.world) == {"spot": 12, "on-demand": 8, "": 0}
    assert count_by_capacity(cluster.world) == {"spot": 6, "on-demand": 4, "": 0}


def test_pods_made_alike_share_one_stored_spec_for_each_capacity() -> None:
    world = play_world(a_scenario())
    specs = {id(document["spec"]["containers"]) for document in world.server.list(PODS).items}
    assert len(specs) <= 2


@pytest.mark.slow
def test_pods_made_alike_stay_cheap() -> None:
    """Beside the same without the webhook, in processor time of the same run."""

    def measure(components: tuple[Any, ...]) -> float:
        world = build_world(Settings(0, components, takes_time=False), Drains())
        if ADMISSION in components:
            world.server.create(PLACEMENT_POLICIES, POLICY, "default")
            world.run()
        pod = {**a_deployment()["spec"]["template"], "metadata": {"generateName": "web-", "labels": {"app": "web"}}}
        for _ in range(20):
            world.server.create(PODS, pod, "default")
        began = time.process_time()
        for _ in range(300):
            world.server.create(PODS, pod, "default")
        return time.process_time() - began

    measure((SCHEDULER,))
    plain = min(measure((SCHEDULER,)) for _ in range(3))
    admitted = min(measure((SCHEDULER, ADMISSION)) for _ in range(3))
    assert admitted < 4 * plain, f"{admitted / plain:.1f} times as much"
