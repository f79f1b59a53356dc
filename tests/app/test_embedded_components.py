"""Components in an embedded cluster, named by a scenario: they do what they do on a real one, under all faults."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
import yaml

from wukong.api.core import Node, Pod
from wukong.api.kubevirt import VirtualMachine
from wukong.api.placement import PlacementPolicy
from wukong.api.resources import Key
from wukong.api.vm import Wukong
from wukong.app.components.extender import EXTENDER
from wukong.app.components.kube_scheduler import KUBE_SCHEDULER
from wukong.app.components.load import LOAD
from wukong.app.components.policy import POLICY
from wukong.app.components.scheduler import SCHEDULER
from wukong.app.embedded import (
    Settings,
    build_world,
    choose_components,
    faults_of,
    play_scenario,
    read_component_options,
)
from wukong.embedded.faults import TYPES
from wukong.embedded.scenario import Scenario, Story, play, read_scenario
from wukong.embedded.scenario.expectations import find_differences
from wukong.embedded.scenario.play.steps import Drains
from wukong.embedded.world.world import World
from wukong.errors import InputError
from wukong.placement.vm import VmSettings, build_virtual_machine

LABEL = "usage.novasphere.dev"
BUSY = """
components: [load, policy]
nodes:
  - {namePrefix: n, count: 3, spot: true}
manifests:
  - apiVersion: placement.novasphere.dev/v1alpha1
    kind: PlacementPolicy
    metadata: {name: good}
    spec: {selector: {matchLabels: {app: web}}, capacity: {strategy: spot-first}}
  - apiVersion: placement.novasphere.dev/v1alpha1
    kind: PlacementPolicy
    metadata: {name: bad}
    spec: {scheduling: {schedulingPolicy: {rules: [{name: no-such-rule, type: score}]}}}
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec:
      replicas: 3
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec: {containers: [{name: web, image: "web:1", resources: {requests: {cpu: "1"}}}]}
timeline:
  - {at: 10s, usage: {node: n1, cpu: 35, memory: 50}}
  - {at: 20s, usage: {node: n2, cpu: 71}}
  - {at: 25s, usage: {node: n1, cpu: 80, memory: 51}}
  - at: 30s
    apply:
      apiVersion: placement.novasphere.dev/v1alpha1
      kind: PlacementPolicy
      metadata: {name: bad}
      spec: {scheduling: {schedulingPolicy: {rules: [{name: load-aware, type: score}]}}}
  - at: 40s
    apply:
      apiVersion: placement.novasphere.dev/v1alpha1
      kind: PlacementPolicy
      metadata: {name: good}
      spec: {scheduling: {schedulingPolicy: {rules: [{name: cost-awar, type: score}]}}}
  - {at: 50s, usage: {node: n2}}
  - {at: 60s, usage: {node: n3, storage: 12}}
until: 2h
"""


def played(scenario: Scenario, seed: int = 0, faults: list[str] | None = None) -> tuple[World, Story]:
    """The world at its end, and its story."""
    drains, injected = Drains(), faults_of(scenario, seed, faults or [])
    settings = Settings(seed, choose_components(scenario), options=read_component_options(scenario))
    world = build_world(settings, drains, fault_injection=injected)
    return world, play(world, scenario, drains, faults=injected)


def usage_labels(world: World) -> dict[str, dict[str, str]]:
    return {
        node.metadata.name: {
            name.removeprefix(f"{LABEL}/"): value
            for name, value in node.metadata.labels.items()
            if name.startswith(LABEL)
        }
        for node in world.state.all(Node)
    }


def acceptance(world: World, name: str) -> str:
    policy = world.state.get(PlacementPolicy, Key("default", name))
    assert policy is not None
    (condition,) = [condition for condition in policy.status.conditions if condition.type == "Accepted"]
    assert condition.observed_generation == policy.metadata.generation
    return condition.status


def check_outcome(world: World, story: Story) -> None:
    assert story.settled, story.stuck
    assert story.findings == []
    labels = usage_labels(world)
    assert labels["n1"] in ({"cpu": "80", "memory": "50"}, {}), labels  # {} after a reclaim: the node came again
    assert labels["n2"] == {}
    assert labels["n3"] in ({"storage": "10"}, {}), labels
    assert (acceptance(world, "good"), acceptance(world, "bad")) == ("False", "True")


def test_labels_follow_usage_and_policies_are_told_whether_they_are_understood() -> None:
    world, story = played(read_scenario(BUSY))
    check_outcome(world, story)
    assert usage_labels(world)["n1"] == {"cpu": "80", "memory": "50"}
    assert usage_labels(world)["n3"] == {"storage": "10"}
    events = [event.text for event in story.events if event.subject == "node n1"]
    assert [text for text in events if text.startswith(LABEL)] == [
        f"{LABEL}/cpu=35",
        f"{LABEL}/memory=50",
        f"{LABEL}/cpu=80",
    ]


@pytest.mark.parametrize("seed", range(1, 13))
def test_under_all_faults_labels_and_policies_come_to_the_same(seed: int) -> None:
    check_outcome(*played(read_scenario(BUSY), seed, list(TYPES)))


@pytest.mark.parametrize("seed", range(1, 4))
def test_the_same_seed_gives_the_same_trace(seed: int) -> None:
    stories = [played(read_scenario(BUSY), seed, list(TYPES))[1] for _ in range(2)]
    assert stories[0].digest == stories[1].digest


def a_deep_rule(levels: int) -> str:
    return f"{{name: label-match, type: filter, config: {'{a: ' * levels}1{'}' * levels}}}"


UNREADABLE = (
    BUSY.replace("name: bad}", "name: deep}")
    .replace("{name: no-such-rule, type: score}", a_deep_rule(20))
    .replace("{name: load-aware, type: score}", a_deep_rule(30))
)


@pytest.mark.parametrize("seed", range(4))
def test_a_policy_that_cannot_be_read_is_told_so_and_the_others_live_on_under_all_faults(seed: int) -> None:
    world, story = played(read_scenario(UNREADABLE), seed, list(TYPES) if seed else None)
    assert story.settled, story.stuck
    assert story.findings == []
    assert acceptance(world, "good") == "False"
    key = Key("default", "deep")
    assert world.state.get(PlacementPolicy, key) is None
    unreadable = world.state.get_unreadable(PlacementPolicy, key)
    assert unreadable is not None
    policy = unreadable.remains
    assert isinstance(policy, PlacementPolicy)
    (condition,) = policy.status.conditions
    assert (condition.status, condition.reason, condition.message) == ("False", "Unreadable", unreadable.problem)
    assert condition.observed_generation == policy.metadata.generation == 2


LOAD_AWARE = """
components: [extender]
nodes:
  - {namePrefix: n, count: 2}
manifests:
  - apiVersion: placement.novasphere.dev/v1alpha1
    kind: PlacementPolicy
    metadata: {name: quiet}
    spec:
      selector: {matchLabels: {app: web}}
      scheduling: {schedulingPolicy: {rules: [{name: load-aware, type: score, weight: 100}]}}
timeline:
  - {at: 10s, usage: {node: BUSY, cpu: 99, memory: 99}}
  - {at: 10s, usage: {node: QUIET, cpu: 1, memory: 1}}
  - at: 60s
    apply:
      apiVersion: v1
      kind: Pod
      metadata: {name: web, labels: {app: web}}
      spec: {containers: [{name: web, image: "web:1"}]}
"""


@pytest.mark.parametrize(("busy", "quiet"), [("n1", "n2"), ("n2", "n1")])
@pytest.mark.parametrize("faults", [[], ["stale", "reordered", "cut"]])
def test_the_extender_decides_by_the_usage_that_a_scenario_says(busy: str, quiet: str, faults: list[str]) -> None:
    scenario = read_scenario(LOAD_AWARE.replace("BUSY", busy).replace("QUIET", quiet))
    world, story = played(scenario, 1, faults)
    assert [key.name for key in world.state.pods.on_node(quiet)] == ["web"]
    assert story.findings == []


WUKONG = """
components: [load]
options: {wukongs: {resourceAffinity: MODE}, load: {quietSeconds: 5}}
nodes:
  - {namePrefix: n, count: 2, allocatable: {cpu: "8", memory: 32Gi, pods: "110"}}
manifests:
  - apiVersion: vm.novasphere.dev/v1alpha1
    kind: Wukong
    metadata: {name: db}
    spec:
      replicas: 0  # its pods are made here, by hand
      scheduling:
        resourceAffinity:
          preferredCPU: {weight: 80, threshold: "70%"}
          requiredResources: [{resourceType: cpu, minAvailable: "6"}]
timeline:
  - {at: 10s, usage: {node: n1, cpu: 99, memory: 99}}
  - {at: 10s, usage: {node: n2, cpu: 1, memory: 1}}
  - {at: 60s, apply: {apiVersion: v1, kind: Pod, metadata: {name: quiet, labels: {wukong.novasphere.dev/name: db}},
     spec: &spec {AFFINITY containers: [{name: vm, image: "vm:1", resources: {requests: {cpu: 100m}}}]}}}
  - {at: 70s, apply: {apiVersion: v1, kind: Pod, metadata: {name: filler},
     spec: {nodeName: n2, containers: [{name: f, image: "f:1", resources: {requests: {cpu: "3"}}}]}}}
  - {at: 80s, apply: {apiVersion: v1, kind: Pod, metadata: {name: pressed, labels: {wukong.novasphere.dev/name: db}},
     spec: *spec}}
  - {at: 90s, delete: {kind: Pod, name: filler}}
  - {at: 180s, apply: {apiVersion: v1, kind: Pod, metadata: {name: calm, labels: {wukong.novasphere.dev/name: db}},
     spec: *spec}}
"""


def play_wukong(mode: str, carries_affinity: bool, seed: int = 1, faults: list[str] | None = None) -> dict[str, str]:
    """Where the pods went whose virtual machines the Wukong db asks for; as labels have it, or with the label alone."""
    document = yaml.safe_load(WUKONG.replace("AFFINITY", ""))
    wukong = msgspec.convert(document["manifests"][0], Wukong)
    affinity = build_virtual_machine(wukong, "db", VmSettings())["spec"]["template"]["spec"]["affinity"]
    carried = f"affinity: {json.dumps(affinity)}," if carries_affinity else ""
    world, story = played(read_scenario(WUKONG.replace("AFFINITY", carried).replace("MODE", mode)), seed, faults)
    assert story.findings == []
    return {pod.metadata.name: pod.spec.node_name for pod in world.state.all(Pod)}


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "carries_affinity"), [("labels", True), ("scheduler", False), ("extender", False)])
@pytest.mark.parametrize("faults", [[], ["stale", "reordered", "cut"]])
def test_what_a_wukong_says_of_resources_is_obeyed_in_every_mode(
    mode: str, carries_affinity: bool, faults: list[str]
) -> None:
    """The quiet node; the busy one while the quiet one has too little free; the quiet one again."""
    places = play_wukong(mode, carries_affinity, faults=faults)
    assert places == {"quiet": "n2", "pressed": "n1", "calm": "n2"}


MACHINES = (Path(__file__).parents[2] / "examples" / "sim" / "vm-usage.yaml").read_text("utf-8")


@pytest.mark.parametrize("mode", ["labels", "extender", "scheduler"])
def test_virtual_machines_keep_away_from_busy_nodes_and_nothing_counts_twice(mode: str) -> None:
    """From the Wukong to the node: only by labels do virtual machines carry node affinity for resources."""
    text = MACHINES.replace("resourceAffinity: labels", f"resourceAffinity: {mode}")
    scenario = read_scenario(text)
    world, story = played(scenario, seed=3)
    assert story.findings == []
    assert find_differences(scenario.expect, story) == []
    machines = [json.dumps(vm.spec) for vm in world.state.all(VirtualMachine)]
    assert len(machines) == 3
    assert {"free.novasphere.dev/cpu" in machine for machine in machines} == {mode == "labels"}
    assert {"usage.novasphere.dev/cpu" in machine for machine in machines} == {mode == "labels"}


@pytest.mark.parametrize(("mode", "place"), [("labels", "n2"), ("scheduler", "n1")])
def test_by_labels_our_scheduler_leaves_out_what_a_wukong_says_of_resources(mode: str, place: str) -> None:
    """One node is quiet and has less room by requests, the other is busy and has more: which counts is told apart."""
    swapped = {"n1, cpu: 99, memory: 99": "n2, cpu: 99, memory: 99", "n2, cpu: 1, memory: 1": "n1, cpu: 1, memory: 1"}
    text = (
        WUKONG.replace("AFFINITY", "")
        .replace("MODE", mode)
        .replace('"6"', '"1"')
        .replace("nodeName: n2", "nodeName: n1")
    )
    for before, after in swapped.items():
        text = text.replace(before, after)
    world, _ = played(read_scenario(f"extender: true\n{text}"))
    pressed = world.state.get(Pod, Key("default", "pressed"))
    assert pressed is not None
    assert pressed.spec.node_name == place


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"lod": {}}, "$.options: unknown component 'lod'. Did you mean \"load\"?"),
        ({"load": {"labelStp": 5}}, "$.options.load.labelStp: unknown field."),
        ({"load": {"labelStep": 500}}, "$.options.load.labelStep: expected an integer from 1 to 50, got 500."),
        ({"wukongs": {"resourceAffinity": "both"}}, "expected one of extender, labels, scheduler, got 'both'."),
        ({"load": 5}, "$.options.load: expected a mapping of fields, got 5."),
    ],
)
def test_options_of_a_scenario_that_make_no_sense_are_refused(options: dict[str, object], problem: str) -> None:
    with pytest.raises(InputError) as refused:
        play_scenario(Scenario(options=options))
    assert problem in str(refused.value)


def test_kube_scheduler_is_always_there_and_ours_and_the_extender_where_they_are_asked_for() -> None:
    assert choose_components(Scenario()) == (KUBE_SCHEDULER,)
    assert choose_components(Scenario(extender=True)) == (KUBE_SCHEDULER, EXTENDER)
    assert choose_components(Scenario(components=["load", "extender", "policy"])) == (
        KUBE_SCHEDULER,
        EXTENDER,
        LOAD,
        POLICY,
    )
    assert choose_components(Scenario(components=["scheduler", "load"])) == (KUBE_SCHEDULER, SCHEDULER, LOAD)
    assert choose_components(read_scenario(BUSY)) == (KUBE_SCHEDULER, EXTENDER, LOAD, POLICY)


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        (Scenario(components=["lod"]), "$.components: unknown component 'lod'. Did you mean \"load\"?"),
        (Scenario(components=["usage"]), "$.components: unknown component 'usage'."),
        (Scenario(components=["extender"], extender=False), "$.extender: is false, and components names the extender."),
    ],
)
def test_a_wrong_name_and_a_contradiction_are_told(scenario: Scenario, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        play_scenario(scenario)
    assert str(caught.value).startswith(expected)
