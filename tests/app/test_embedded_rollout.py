"""The component rollout in an embedded cluster: the rows of what was seen with other tools, and all faults.

Nodes have room for six pods, and a cluster autoscaler buys and removes them. Eight pods run; versions replace others.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from rollouts import (
    PREFERRED,
    REQUIRED,
    a_rollout,
    a_scenario,
    a_service,
    annotate,
    blue_green,
    canary,
    play_rollout,
    the_rollout,
)
from wukong.api.apps import ReplicaSet
from wukong.api.core import Pod, Service
from wukong.api.resources import Key
from wukong.api.rollout import HASH, RULE
from wukong.controllers.rollout.node_order import COST
from wukong.embedded.faults import TYPES
from wukong.embedded.world.world import World
from wukong.ports import Document

PAUSED = blue_green(antiAffinity=REQUIRED, autoPromotionEnabled=False)
STEPS = ({"setWeight": 25}, {"pause": {"duration": 20}}, {"setWeight": 50}, {"pause": {"duration": "20s"}})


def update(strategy: Document, at: str, image: str, **spec: object) -> Document:
    return {"at": at, "apply": a_rollout(strategy, image, "web", **spec)}


def selected_hash(world: World, service: str = "web") -> str:
    present = world.state.get(Service, Key("default", service))
    assert present is not None
    return (present.spec.selector or {}).get(HASH, "")


def sizes_of(world: World) -> dict[str, int]:
    return {one.metadata.labels[HASH]: one.spec.replicas or 0 for one in world.state.all(ReplicaSet)}


# start layout is four and four: strategy → nodes at most, pods restarted by the autoscaler, fewest available
ROWS = {
    "blue/green without a rule": (blue_green(), 3, 2, 6),
    "blue/green required": (blue_green(antiAffinity=REQUIRED), 4, 0, 8),
    "blue/green preferred": (blue_green(antiAffinity=PREFERRED), 3, 2, 6),
    "canary without a rule": (canary(*STEPS), 2, 0, 8),
    "canary required": (canary(*STEPS, maxSurge="100%", antiAffinity=REQUIRED), 3, 0, 8),
    "canary required, a quarter at a time": (canary(antiAffinity=REQUIRED), 3, 0, 8),
}


@pytest.mark.parametrize(
    "name", [name if name == "blue/green required" else pytest.param(name, marks=pytest.mark.slow) for name in ROWS]
)
def test_a_new_version_replaces_the_old_one(name: str) -> None:
    strategy, nodes, restarts, fewest = ROWS[name]
    world, story = play_rollout(a_scenario(strategy, [update(strategy, "20s", "web:2")]))
    assert (story.settled, story.findings) == (True, [])
    web = story.workloads["default/web"]
    assert (story.nodes.max, story.nodes.end) == (nodes, 2)
    assert (web.restarts, web.min_available, web.available) == (restarts, fewest, 8)
    rollout = the_rollout(world)
    assert (rollout.status.phase, rollout.status.revision) == ("Healthy", 2)
    assert sorted(sizes_of(world).values()) == [0, 8]
    assert sizes_of(world)[rollout.status.stable] == 8
    assert not any(RULE in one.metadata.annotations for one in world.state.all(ReplicaSet))
    templates = [one.spec.template for one in world.state.all(ReplicaSet)]
    assert all(template is not None and template.spec.affinity is None for template in templates)


@pytest.mark.slow
def test_a_third_version_waits_for_the_nodes_of_the_second() -> None:
    strategy = blue_green(antiAffinity=REQUIRED, autoPromotionSeconds=120)
    timeline = [update(strategy, "20s", "web:2"), update(strategy, "60s", "web:3")]
    world, story = play_rollout(a_scenario(strategy, timeline))
    web = story.workloads["default/web"]
    assert (story.settled, story.findings, web.restarts, web.min_available) == (True, [], 0, 8)
    assert (story.nodes.max, story.nodes.end) == (4, 2)
    assert the_rollout(world).status.revision == 3


@pytest.mark.slow
def test_without_room_the_new_version_waits_and_says_why() -> None:
    strategy = blue_green(antiAffinity=REQUIRED)
    scenario = a_scenario(strategy, [update(strategy, "20s", "web:2")], until="30m")
    scenario["nodeGroups"][0]["max"] = 3
    world, story = play_rollout(scenario)
    status = the_rollout(world).status
    assert story.workloads["default/web"].min_available == 8
    assert (status.phase, selected_hash(world)) == ("Degraded", status.stable)
    assert "didn't match pod anti-affinity rules" in status.message


@pytest.mark.slow
def test_nothing_is_promoted_before_somebody_says_so() -> None:
    timeline = [update(PAUSED, "20s", "web:2"), {"at": "5m", **annotate(promote="1")}]
    world, story = play_rollout(a_scenario(PAUSED, timeline))
    status = the_rollout(world).status
    assert (story.settled, status.phase, status.revision) == (True, "Paused", 2)
    assert selected_hash(world) == status.stable != status.current
    timeline.append({"at": "6m", **annotate(promote="2")})
    world, story = play_rollout(a_scenario(PAUSED, timeline))
    assert the_rollout(world).status.phase == "Healthy"
    assert selected_hash(world) == the_rollout(world).status.current


@pytest.mark.slow
def test_an_aborted_version_goes_and_comes_again_when_that_is_taken_back() -> None:
    timeline = [update(PAUSED, "20s", "web:2"), {"at": "60s", **annotate(abort="2")}]
    world, story = play_rollout(a_scenario(PAUSED, timeline))
    status = the_rollout(world).status
    assert (story.settled, status.phase, sizes_of(world)[status.current]) == (True, "Aborted", 0)
    timeline.append({"at": "2m", **annotate(abort=None)})
    world, _ = play_rollout(a_scenario(PAUSED, timeline))
    assert (the_rollout(world).status.phase, set(sizes_of(world).values())) == ("Paused", {8})


@pytest.mark.slow
def test_a_version_that_comes_again_is_not_aborted_for_what_was_said_of_it_before() -> None:
    timeline = [
        update(PAUSED, "20s", "web:2"),
        {"at": "60s", **annotate(abort="2")},
        update(PAUSED, "90s", "web:1"),
        update(PAUSED, "2m", "web:2"),
    ]
    world, _ = play_rollout(a_scenario(PAUSED, timeline))
    assert (the_rollout(world).status.phase, the_rollout(world).status.revision) == ("Paused", 4)


@pytest.mark.slow
def test_going_back_within_the_delay_is_a_switch_and_nothing_else() -> None:
    strategy = blue_green(scaleDownDelaySeconds=600)
    later = blue_green(scaleDownDelaySeconds=600, autoPromotionEnabled=False)
    timeline = [update(strategy, "20s", "web:2"), update(later, "2m", "web:1")]
    scenario = a_scenario(strategy, timeline, until="5m")
    world, story = play_rollout(scenario)
    status = the_rollout(world).status
    assert selected_hash(world) == status.current == status.stable
    created = [event for event in story.events if event.text == "created" and event.at > 100]
    assert created == []


@pytest.mark.slow
def test_a_canary_stops_at_a_pause_and_goes_back_when_it_is_aborted() -> None:
    strategy = canary({"setWeight": 50}, {"pause": {}})
    timeline = [update(strategy, "20s", "web:2")]
    world, story = play_rollout(a_scenario(strategy, timeline))
    status = the_rollout(world).status
    assert (story.settled, status.phase, status.step) == (True, "Paused", 1)
    assert set(sizes_of(world).values()) == {4}
    aborted, story = play_rollout(a_scenario(strategy, [*timeline, {"at": "2m", **annotate(abort="2")}]))
    assert sizes_of(aborted) == {status.stable: 8, status.current: 0}
    assert story.workloads["default/web"].min_available == 8
    promoted, story = play_rollout(a_scenario(strategy, [*timeline, {"at": "2m", **annotate(promote="2/1")}]))
    assert sizes_of(promoted) == {status.stable: 0, status.current: 8}


@pytest.mark.slow
def test_services_of_a_canary_select_one_version_each() -> None:
    strategy = canary({"setWeight": 50}, {"pause": {}}, stableService="stable", canaryService="canary")
    scenario = a_scenario(strategy, [update(strategy, "20s", "web:2")])
    scenario["manifests"] += [a_service("stable"), a_service("canary")]
    world, _ = play_rollout(scenario)
    status = the_rollout(world).status
    assert (selected_hash(world, "stable"), selected_hash(world, "canary")) == (status.stable, status.current)


@pytest.mark.slow
@pytest.mark.parametrize(("choice", "phase"), [("Yield", "Degraded"), ("Promote", "Healthy")])
def test_after_a_lost_node_the_active_version_is_whole_again(choice: str, phase: str) -> None:
    """Its replacements are kept away by the rule of the preview, which sits on the only node that is left."""
    strategy = blue_green(autoPromotionEnabled=False, antiAffinity=REQUIRED, onDeadlock=choice)
    first, second = (a_rollout(strategy, image, replicas=3) for image in ("web:1", "web:2"))
    scenario: Document = {
        "components": ["rollout"],
        "nodes": [{"name": "n1", "capacity": {"cpu": 6}}, {"name": "n2", "capacity": {"cpu": 6}}],
        "manifests": [a_service(), first],
        "timeline": [
            {"at": "0s", "cordon": "n2"},
            {"at": "15s", "uncordon": "n2"},
            {"at": "20s", "apply": second},
            {"at": "60s", "kill": "n1"},
        ],
        "until": "20m",
    }
    world, story = play_rollout(scenario)
    status = the_rollout(world).status
    assert (status.phase, status.available_replicas, story.findings) == (phase, 3, [])
    assert selected_hash(world) == status.stable
    assert (status.stable == status.current) == (choice == "Promote")
    assert story.workloads["default/web"].unavailable_seconds < 60


@pytest.mark.slow
def test_a_users_own_terms_stay_and_one_without_a_selector_stops_nothing() -> None:
    terms = [{"topologyKey": "kubernetes.io/hostname"}]
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    strategy = blue_green(antiAffinity=REQUIRED)
    scenario = a_scenario(strategy, [])
    scenario["manifests"][1]["spec"]["template"]["spec"]["affinity"] = affinity
    second = a_rollout(strategy, "web:2")
    second["spec"]["template"]["spec"]["affinity"] = affinity
    scenario["timeline"] = [{"at": "20s", "apply": second}]
    world, story = play_rollout(scenario)
    assert (story.settled, the_rollout(world).status.revision) == (True, 2)
    for replica_set in world.state.all(ReplicaSet):
        template = replica_set.spec.template
        assert template is not None
        assert template.spec.affinity is not None
        assert template.spec.affinity.pod_anti_affinity is not None
        assert len(template.spec.affinity.pod_anti_affinity.required) == 1


@pytest.mark.slow
def test_the_rule_can_be_switched_on_in_the_middle_and_off_again() -> None:
    plain = blue_green(autoPromotionEnabled=False)
    timeline = [update(plain, "20s", "web:2"), update(PAUSED, "60s", "web:2")]
    world, _ = play_rollout(a_scenario(plain, timeline))
    status = the_rollout(world).status
    rules = {one.metadata.labels[HASH]: one.metadata.annotations.get(RULE, "") for one in world.state.all(ReplicaSet)}
    assert status.stable in rules[status.current]
    assert rules[status.stable] == ""
    world, _ = play_rollout(a_scenario(plain, [*timeline, update(plain, "2m", "web:2")]))
    assert not any(RULE in one.metadata.annotations for one in world.state.all(ReplicaSet))
    assert the_rollout(world).status.revision == 2


@pytest.mark.slow
def test_old_versions_are_kept_up_to_the_limit() -> None:
    strategy = canary(maxSurge="100%")
    timeline = [update(strategy, f"{20 * number}s", f"web:{number}", revisionHistoryLimit=2) for number in range(2, 8)]
    world, story = play_rollout(a_scenario(strategy, timeline))
    assert (story.settled, len(sizes_of(world))) == (True, 3)


@pytest.mark.slow
def test_an_autoscaler_sets_its_size() -> None:
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {
            "minReplicas": 10,
            "maxReplicas": 12,
            "scaleTargetRef": {"apiVersion": "placement.novasphere.dev/v1alpha1", "kind": "Rollout", "name": "web"},
        },
    }
    world, story = play_rollout(a_scenario(blue_green(), [{"at": "20s", "apply": autoscaler}]))
    assert (story.settled, the_rollout(world).spec.replicas) == (True, 10)
    assert the_rollout(world).status.available_replicas == 10


def draw_history(seed: int) -> Document:
    """Versions come and go, requests are right, wrong or late, nodes are drained; in the end all is sensible."""
    draw = Random(seed)
    rule = draw.choice([{}, {"antiAffinity": REQUIRED}, {"antiAffinity": PREFERRED}])
    strategy = draw.choice(
        [
            blue_green(scaleDownDelaySeconds=draw.choice([0, 30]), **rule),
            blue_green(autoPromotionSeconds=30, previewReplicas=draw.choice([1, 8]), **rule),
            canary(*STEPS, maxUnavailable=draw.choice([0, 1]), **rule),
            canary(maxSurge=0, maxUnavailable=2, **rule),
        ]
    )
    timeline: list[Document] = []
    for at in sorted(draw.sample(range(5, 240), draw.randrange(3, 9))):
        revision = str(draw.randrange(1, 5))
        event = draw.choice(
            [
                {"apply": a_rollout(strategy, f"web:{draw.randrange(1, 4)}", replicas=draw.choice([3, 8]))},
                {"apply": a_rollout(strategy, f"web:{draw.randrange(1, 4)}")},
                annotate(abort=revision),
                annotate(promote=draw.choice([revision, f"{revision}/full", f"{revision}/1", "nonsense"])),
                {"drain": "workers-1"},
            ]
        )
        timeline.append({"at": f"{at}s", **event})
    final = a_rollout(strategy, "web:9")
    timeline.append({"at": "260s", "uncordon": "workers-1"})  # else a stranger who uncordons it keeps the drain busy
    timeline += [{"at": "300s", "apply": final}, {"at": "301s", **annotate(abort=None, promote=None)}]
    return a_scenario(strategy, timeline)


def check_history(seed: int, faults: list[str]) -> None:
    world, story = play_rollout(draw_history(seed), seed, faults)
    assert (story.settled, story.findings) == (True, []), (story.stuck, story.findings)
    status = the_rollout(world).status
    assert (status.phase, status.available_replicas, status.stable) == ("Healthy", 8, status.current)
    sizes = sizes_of(world)
    assert {name: size for name, size in sizes.items() if size} == {status.current: 8}
    assert {pod.metadata.labels[HASH] for pod in world.state.all(Pod)} == {status.current}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_last_version_gets_all_pods_whatever_happens(seed: int) -> None:
    check_history(seed, [])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 112))
def test_the_last_version_gets_all_pods_under_all_faults(seed: int) -> None:
    check_history(seed, list(TYPES))


@pytest.mark.slow
def test_the_same_seed_gives_the_same_trace() -> None:
    first, second = (play_rollout(draw_history(7), 7, list(TYPES))[1].digest for _ in range(2))
    assert first == second


@pytest.mark.slow
def test_an_aborted_canary_takes_the_order_of_nodes_away() -> None:
    strategy = canary({"setWeight": 25}, {"pause": {}}, maxSurge="100%", antiAffinity=REQUIRED)
    timeline = [update(strategy, "20s", "web:2")]
    world, _ = play_rollout(a_scenario(strategy, timeline, until="2m"))
    stable = the_rollout(world).status.stable
    old = [pod for pod in world.state.all(Pod) if pod.metadata.labels[HASH] == stable]
    assert sorted(Counter(pod.spec.node_name for pod in old).values()) == [2, 4]
    assert {COST in pod.metadata.annotations for pod in old} == {True, False}
    world, _ = play_rollout(a_scenario(strategy, [*timeline, {"at": "2m", **annotate(abort="2")}]))
    assert len(world.state.all(Pod)) == 8
    assert not any(COST in pod.metadata.annotations for pod in world.state.all(Pod))
