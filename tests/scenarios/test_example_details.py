"""What the examples cannot say in `expect`: exact times, who was chosen, and the answers of the API server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from wukong.api.core import Pod
from wukong.api.profile import default_profile
from wukong.api.resources import Key
from wukong.app.embedded import Settings, build_world, play_scenario
from wukong.cli.inputs.sim_source import read_scenario_file
from wukong.embedded.scenario import Scenario, Story
from wukong.embedded.scenario.format.fields import TimelineEntry
from wukong.embedded.scenario.play import steps
from wukong.embedded.world.transport import perform
from wukong.embedded.world.world import World
from wukong.engine import Scheduler as Engine
from wukong.errors import ServerFailed, TooManyRequests
from wukong.rules import decide
from wukong.rules.cluster import Cluster

EXAMPLES = Path(__file__).parents[2] / "examples" / "sim"
SEEDS = range(5)


def example(name: str) -> Scenario:
    return read_scenario_file(str(EXAMPLES / f"{name}.yaml"))


def at(story: Story, subject: str, text: str) -> list[float]:
    return [event.at for event in story.events if event.subject == subject and event.text == text]


def trace_of(story: Story) -> list[dict[str, Any]]:
    return [json.loads(line) for line in story.trace]


def before(name: str, seconds: float) -> World:
    """The world of an example at this time, before anything that happens then. Drains are left out."""
    scenario = example(name)
    world = build_world(Settings(), steps.Drains())
    for action in [
        *steps.create_nodes(scenario.nodes),
        *steps.apply_documents(scenario.manifests, frozenset({"default"})),
    ]:
        perform(world.server, action)
    start = world.clock.now()
    for entry in scenario.timeline:
        if entry.seconds < seconds:
            world.run(deadline=start + entry.seconds)
            perform_entry(world, entry)
    world.run(deadline=start + seconds)
    return world


def perform_entry(world: World, entry: TimelineEntry) -> None:
    for action in steps.build_actions(entry, frozenset({"default"})):
        perform(world.server, action)


def pods_of(world: World, app: str) -> list[Pod]:
    return [pod for pod in world.state.all(Pod) if pod.metadata.labels.get("app") == app]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_silent_node_is_doubted_after_its_grace_and_emptied_three_hundred_seconds_later(seed: int) -> None:
    story = play_scenario(example("node-silent"), seed)
    (doubted,) = at(story, "node node-1", "not ready")
    (stopping,) = at(story, "default/web", "stopping")
    assert 100 <= doubted <= 115  # 50 s after a heartbeat that may be 10 s old, seen by a monitor that looks every 5
    assert stopping - doubted == pytest.approx(300, abs=1.001)  # times are written in whole seconds
    evicted = [step for step in trace_of(story) if step["by"] == "tainteviction" and step["action"]["type"] == "Delete"]
    assert [step["at"] for step in evicted] == [stopping]


def test_the_pod_of_a_dead_node_keeps_its_name_from_being_given_again() -> None:
    story = play_scenario(example("stateful-set-dead-node"))
    creation_times = [
        step["at"]
        for step in trace_of(story)
        if step["by"] == "statefulset" and step["action"]["type"] == "Create" and "db-0" in json.dumps(step["action"])
    ]
    assert len(creation_times) == 2
    assert creation_times[0] < 1
    assert 150 <= creation_times[1] < 151


def test_an_eviction_under_two_budgets_is_answered_with_500() -> None:
    world = before("two-budgets", 60)
    with pytest.raises(ServerFailed, match="This pod has more than one PodDisruptionBudget, which the") as caught:
        world.server.evict(Key("default", pods_of(world, "web")[0].metadata.name))
    assert caught.value.code == 500


def test_an_eviction_that_a_budget_has_no_room_for_is_answered_with_429() -> None:
    world = before("budget-waits", 60)
    with pytest.raises(TooManyRequests, match="Cannot evict pod as it would violate the pod's disruption budget"):
        world.server.evict(Key("default", pods_of(world, "web")[0].metadata.name))
    assert len(pods_of(world, "web")) == 2


@pytest.mark.parametrize("seed", SEEDS)
def test_a_drain_goes_on_as_soon_as_the_budget_allows_it(seed: int) -> None:
    story = play_scenario(example("budget-waits"), seed)
    (third,) = [seconds for seconds in at(story, "default/web", "ready") if 120 <= seconds < 120.5]
    (stopping,) = at(story, "default/web", "stopping")
    assert stopping - third < 0.3  # two controllers hear of a change and write: milliseconds each, no backoff


def test_preemption_chooses_the_victims_that_engine_and_rules_say() -> None:
    world = before("preemption", 30)
    young = sorted(pod.key for pod in pods_of(world, "cheap") if (pod.status.start_time or "") > "2026-01-01T00:00:10")
    perform_entry(world, example("preemption").timeline[-1])  # nobody has decided yet
    urgent = world.state.get(Pod, Key("default", "urgent"))
    assert urgent is not None
    by_engine = Engine(world.state.snapshot.fork()).decide(urgent).preemption
    by_rules = decide(Cluster(world.state.list_objects()), urgent, default_profile()).preemption
    assert by_engine is not None
    assert by_rules is not None
    assert (by_engine.node, sorted(by_engine.victims)) == (by_rules.node, young)
    assert sorted(by_rules.victims) == young
    marked = {}

    def hear(change: Any) -> None:
        if isinstance(change.new, Pod) and change.new.is_terminating:
            conditions = [
                condition for condition in change.new.status.conditions if condition.type == "DisruptionTarget"
            ]
            marked[change.new.key] = [(condition.status, condition.reason) for condition in conditions]

    world.listen(hear)
    world.run(seconds=60)
    assert sorted(marked) == sorted(by_engine.victims)
    assert set(map(str, marked.values())) == {"[('True', 'PreemptionByScheduler')]"}
    settled = world.state.get(Pod, Key("default", "urgent"))
    assert settled is not None
    assert settled.spec.node_name == by_engine.node == "node-3"


def test_pods_fall_back_to_on_demand_only_where_spot_is_full_or_leaving() -> None:
    story = play_scenario(example("spot-first"))
    bindings = [(step["at"], step["action"]["node"]) for step in trace_of(story) if step["action"]["type"] == "Bind"]
    assert all(node.startswith("spot") for seconds, node in bindings if seconds < 30)
    after = [node for seconds, node in bindings if seconds >= 30]
    assert "spot-1" not in after
    assert sum(node.startswith("steady") for node in after) >= 2


def test_daemons_come_to_cordoned_nodes_and_others_do_not() -> None:
    story = play_scenario(example("daemon-set-cordon"))
    bindings = [step["action"] for step in trace_of(story) if step["action"]["type"] == "Bind" and step["at"] > 40]
    apps = {(action["key"]["name"].split("-")[0], action["node"]) for action in bindings}
    assert {node for app, node in apps if app == "agent"} == {"node-1", "node-2", "node-3"}
    assert {node for app, node in apps if app == "logs"} == {"node-1", "node-2", "node-3"}
    assert {node for app, node in apps if app == "web"} == {"node-3"}


def test_a_partition_is_updated_from_the_top_and_what_is_below_comes_back_as_it_was() -> None:
    story = play_scenario(example("partition"))
    bodies = [
        step["action"]["body"]
        for step in trace_of(story)
        if step["action"]["type"] == "Create" and step["by"] == "statefulset"
    ]
    pods = [
        (body["metadata"]["name"], body["spec"]["containers"][0]["image"])
        for body in bodies
        if "containers" in body.get("spec", {})
    ]
    first, then, last = pods[:4], pods[4:7], pods[7:]
    assert first == [(f"db-{number}", "db:1") for number in range(4)]
    assert then == [("db-3", "db:2"), ("db-2", "db:2"), ("db-0", "db:1")]
    assert last == [("db-1", "db:2"), ("db-0", "db:2")]


def test_a_paused_rollout_makes_one_version_of_two_changes() -> None:
    story = play_scenario(example("paused"))
    sets = [step for step in trace_of(story) if step["by"] == "deployment" and step["action"]["type"] == "Create"]
    images = [step["action"]["body"]["spec"]["template"]["spec"]["containers"][0]["image"] for step in sets]
    assert images == ["web:1", "web:3"]
    assert sets[1]["at"] >= 70


def test_a_set_that_shrinks_lets_go_whom_it_misses_least() -> None:
    story = play_scenario(example("scale-down"))
    gone = [
        step["action"]["key"]["name"]
        for step in trace_of(story)
        if (step["by"], step["action"]["type"]) == ("replicaset", "Delete")
    ]
    assert [name for name in gone if name.startswith("health")] == ["health-lost", "health-stuck", "health-sick"]
    assert [name for name in gone if name.startswith("cost")] == ["cost-low", "cost-none"]
    assert len([name for name in gone if name.startswith("crowd")]) == 1
    assert [name for name in gone if name.startswith("age")] not in ([], ["age-old"])


def test_an_agent_of_the_soak_gets_its_room_back_on_a_node_that_others_have_filled() -> None:
    """Without a priority it would wait for ever, in Kubernetes too, and a seed in which that happens would fail."""
    scenario = example("soak")
    agents = [document for document in scenario.manifests if document["kind"] in ("PriorityClass", "DaemonSet")]
    (web,) = [document for document in scenario.manifests if document["metadata"]["name"] == "web"][:1]
    web["spec"]["template"]["spec"].pop("topologySpreadConstraints")
    (node,) = scenario.nodes[:1]
    scenario.nodes, scenario.manifests = [msgspec.structs.replace(node, count=1)], [web]  # 4 pods fill it
    scenario.timeline = [TimelineEntry("60s", apply=agents)]
    story = play_scenario(scenario)
    assert (story.workloads["default/agent"].available, story.workloads["default/web"].available) == (1, 3)
